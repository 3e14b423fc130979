package files

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// spliceRange is sendRange by sendfile: the bytes are not copied through this program.
func (g *Server) spliceRange(conn *net.UnixConn, fd int, offset, until int64) error {
	for offset < until {
		n := min(until-offset, wire.MaxData)
		var header [wire.HeaderSize]byte
		wire.PutHeader(header[:], wire.FrameData, int(n))
		if _, err := conn.Write(header[:]); err != nil {
			return err
		}
		done, err := g.splice(conn, fd, offset, offset+n)
		if err != nil { // the header is sent: fill the frame with zeros
			return errors.Join(fileError(err), pad(conn, offset+n-done))
		}
		offset += n
	}
	return wire.WriteFrame(conn, wire.FrameDataEnd, nil)
}

// splice sends a range of a file. It returns the offset that it reached.
func (g *Server) splice(conn *net.UnixConn, fd int, offset, end int64) (int64, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return offset, err
	}
	for offset < end {
		sent := 0
		waitErr := raw.Write(func(socket uintptr) bool {
			err = g.do(func() (err error) {
				sent, err = unix.Sendfile(int(socket), fd, &offset, int(end-offset))
				return err
			})
			return !errors.Is(err, unix.EAGAIN)
		})
		switch {
		case waitErr != nil:
			return offset, waitErr
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // not from this file system
			return g.copyTo(conn, fd, offset, end)
		case err != nil:
			return offset, err
		case sent == 0:
			return offset, refuse(wire.CodeChanged)
		}
	}
	return offset, nil
}

// copyTo is splice by read and write, where sendfile fails.
func (g *Server) copyTo(conn *net.UnixConn, fd int, offset, end int64) (int64, error) {
	c := contents.Get().(*[wire.DataFrame]byte)
	defer contents.Put(c)
	for offset < end {
		n := 0
		err := g.do(func() (err error) { n, err = pread(fd, c[:min(int64(len(c)), end-offset)], offset); return err })
		if err == nil && n == 0 {
			err = refuse(wire.CodeChanged)
		}
		if err != nil {
			return offset, err
		}
		if _, err := conn.Write(c[:n]); err != nil {
			return offset, err
		}
		offset += int64(n)
	}
	return offset, nil
}

// pad sends zeros.
func pad(conn *net.UnixConn, n int64) error {
	var zeros [4 << 10]byte
	for n > 0 {
		sent, err := conn.Write(zeros[:min(n, int64(len(zeros)))])
		if err != nil {
			return err
		}
		n -= int64(sent)
	}
	return nil
}
