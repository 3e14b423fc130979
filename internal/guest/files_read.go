package guest

import (
	"bytes"
	"io"
	"net"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
	"golang.org/x/sys/unix"
)

// smallAnswer is a read that is gathered and sent in one message.
const smallAnswer = 32 << 10

// fileRead sends a part of a file.
func (c *fileCall) fileRead(f *wire.File) error {
	return wire.WithPart(f.Read, func(part *wire.FileRead) error {
		r, err := c.files.openPart(&f.RootedPath, part)
		if err != nil {
			return err
		}
		defer r.files.close(r.fd)
		if r.until-r.offset > smallAnswer {
			c.stopWhenHostLeaves()
			return r.send(c.stream, c.direct)
		}
		var answer bytes.Buffer
		if err := r.send(&answer, false); err != nil {
			return err
		}
		_, err = c.stream.Write(answer.Bytes())
		return err
	})
}

// part is a part of a file that is being read.
type part struct {
	files  *fileServer
	fd     int
	stat   *wire.FileStat
	offset int64
	until  int64
}

func (g *fileServer) openPart(place *wire.RootedPath, want *wire.FileRead) (*part, error) {
	p := &part{files: g, fd: -1}
	err := g.do(func() error {
		spot, err := g.locate(place)
		if err != nil {
			return err
		}
		defer spot.close()
		fd, facts, err := spot.openRegular()
		if err != nil {
			return err
		}
		p.fd, p.stat = fd, facts.stat()
		p.stat.Version = g.version(fd, facts)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.offset = want.Offset; p.offset < 0 {
		p.offset = max(0, p.stat.Size+p.offset)
	}
	p.offset = min(p.offset, p.stat.Size)
	if p.until = p.stat.Size; want.Limit > 0 && want.Limit < p.until-p.offset {
		p.until = p.offset + want.Limit
	}
	p.stat.Offset = p.offset
	return p, nil
}

// send sends the stat, the data and its end. Of a file that shrinks meanwhile
// it sends less than the stat promised; the host notices.
func (p *part) send(w io.Writer, large bool) error {
	if err := wire.WriteJSON(w, wire.FrameResult, p.stat); err != nil {
		return err
	}
	p.files.procs.raiseIf(p.until-p.offset >= largeTransfer)
	defer p.files.procs.releaseIf(p.until-p.offset >= largeTransfer)
	if conn := unixSocket(w); conn != nil && large {
		return p.files.spliceRange(conn, p.fd, p.offset, p.until)
	}
	data := wire.NewDataWriter(w)
	defer data.Close()
	if large {
		data.Large()
	}
	return p.files.sendRange(data, p.fd, p.offset, p.until)
}

// unixSocket is the socket that w writes to, if it is one.
func unixSocket(w io.Writer) *net.UnixConn {
	if quiet, ok := w.(*socket.Conn); ok {
		w = quiet.Conn
	}
	conn, _ := w.(*net.UnixConn)
	return conn
}

// sendRange sends the bytes of an open file from offset to until, and the end.
func (g *fileServer) sendRange(data *wire.DataWriter, fd int, offset, until int64) error {
	for offset < until {
		n, err := data.Next(func(b []byte) (n int, err error) {
			err = g.do(func() error {
				n, err = pread(fd, b[:min(int64(len(b)), until-offset)], offset)
				return err
			})
			return n, err
		})
		if err != nil {
			return fileError(err)
		}
		if n == 0 {
			break
		}
		offset += int64(n)
	}
	return data.End()
}

func pread(fd int, b []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(fd, b, offset)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
