package files

import (
	"bytes"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// smallAnswer is the largest read that is sent in one message.
const smallAnswer = 32 << 10

// read sends a range of a file.
func (c *Call) read(f *wire.File) error {
	return wire.WithPart(f.Read, func(part *wire.FileRead) error {
		r, err := c.files.openPart(&f.RootedPath, part)
		if err != nil {
			return err
		}
		defer r.files.close(r.fd)
		if r.until-r.offset > smallAnswer {
			c.stopWhenHostLeaves()
			return r.send(c.Stream, c.Direct)
		}
		var answer bytes.Buffer
		if err := r.send(&answer, false); err != nil {
			return err
		}
		_, err = c.Stream.Write(answer.Bytes())
		return err
	})
}

// part is a range of an open file.
type part struct {
	files  *Server
	fd     int
	stat   *wire.FileStat
	offset int64
	until  int64
}

func (g *Server) openPart(place *wire.RootedPath, want *wire.FileRead) (*part, error) {
	p := &part{files: g, fd: -1}
	err := g.do(func() error {
		loc, err := g.locate(place)
		if err != nil {
			return err
		}
		defer loc.close()
		fd, info, err := loc.openRegular()
		if err != nil {
			return err
		}
		p.fd, p.stat = fd, info.wireStat()
		p.stat.Version = g.version(fd, info)
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

// send sends the attributes, the data and its end. If the file shrinks meanwhile it
// sends less than announced, which the host detects.
func (p *part) send(w io.Writer, large bool) error {
	if err := wire.WriteJSON(w, wire.FrameResult, p.stat); err != nil {
		return err
	}
	p.files.procs.RaiseIf(p.until-p.offset >= maxprocs.LargeTransfer)
	defer p.files.procs.ReleaseIf(p.until-p.offset >= maxprocs.LargeTransfer)
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

// unixSocket returns the Unix socket that w writes to, or nil.
func unixSocket(w io.Writer) *net.UnixConn {
	if quiet, ok := w.(*socket.Conn); ok {
		w = quiet.Conn
	}
	conn, _ := w.(*net.UnixConn)
	return conn
}

// sendRange sends the bytes of an open file from offset to until, and the end.
func (g *Server) sendRange(data *wire.DataWriter, fd int, offset, until int64) error {
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
