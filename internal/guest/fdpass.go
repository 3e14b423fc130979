package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
	"golang.org/x/sys/unix"
)

// A Pass hands its standard input and output over to process 1, where they are
// the wire: bytes that it passed itself would wait for one more process to wake
// up, each way. What is left between the two is a leash: whoever lets it go, by
// its end for instance, ends the wire.
//
// It says so instead of a host's greeting, and is told that it was understood.
// A process 1 of another build is not, and the Pass has to pass.
const (
	fdPassGreeting = "atollfd\n"
	fdPassAnswer   = "taken\n"
)

var errFDPassRefused = errors.New("process 1 does not take descriptors")

// passFiles gives in and out away.
func passFiles(leash *net.UnixConn, in, out *os.File) error {
	rights := unix.UnixRights(int(in.Fd()), int(out.Fd()))
	if _, _, err := leash.WriteMsgUnix([]byte(fdPassGreeting), rights, nil); err != nil {
		return err
	}
	_ = leash.SetReadDeadline(time.Now().Add(wire.HelloTimeout))
	var answer [len(fdPassAnswer)]byte
	if _, err := io.ReadFull(leash, answer[:]); err != nil || string(answer[:]) != fdPassAnswer {
		return errors.Join(errFDPassRefused, err)
	}
	return leash.SetReadDeadline(time.Time{})
}

// isFDPass looks at what a connection brings first, and leaves it there.
func isFDPass(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(wire.HelloTimeout))
	var first [len(fdPassGreeting)]byte
	n := 0
	err = raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), first[:], unix.MSG_PEEK)
		return !errors.Is(err, unix.EAGAIN)
	})
	return err == nil && string(first[:max(n, 0)]) == fdPassGreeting
}

// receiveConn makes a wire of what a Pass hands over.
func receiveConn(leash *net.UnixConn) (net.Conn, error) {
	var greeting [len(fdPassGreeting)]byte
	rights := make([]byte, unix.CmsgSpace(2*4))
	_, n, _, _, err := leash.ReadMsgUnix(greeting[:], rights)
	if err != nil {
		return nil, err
	}
	files, err := receivedFiles(rights[:n])
	if err != nil {
		return nil, err
	}
	h := &passedConn{control: leash, in: files[0], out: files[1]}
	if _, err := leash.Write([]byte(fdPassAnswer)); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	_ = leash.SetReadDeadline(time.Time{})
	quick, err := socket.WrapFiles(h, h.in, h.out)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	go h.watch()
	return quick, nil
}

// receivedFiles are the two descriptors in a message, ready to be waited for.
func receivedFiles(rights []byte) (files [2]*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return files, errors.Join(err, errFDPassRefused)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != len(files) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return files, errors.Join(err, fmt.Errorf("%d descriptors came, not %d", len(fds), len(files)))
	}
	for i, fd := range fds {
		_ = unix.SetNonblock(fd, true) // fails for nothing that an engine makes
		files[i] = os.NewFile(uintptr(fd), "handed over")
	}
	return files, nil
}

// passedConn is a wire over descriptors that were handed over.
type passedConn struct {
	control net.Conn
	in, out *os.File
}

// watch ends the wire when the leash is let go.
func (h *passedConn) watch() {
	var nothing [1]byte
	_, _ = h.control.Read(nothing[:])
	_ = h.Close()
}

// Read implements net.Conn.
func (h *passedConn) Read(p []byte) (int, error) { return h.in.Read(p) }

// Write implements net.Conn.
func (h *passedConn) Write(p []byte) (int, error) { return h.out.Write(p) }

// Close implements net.Conn.
func (h *passedConn) Close() error {
	return errors.Join(h.in.Close(), h.out.Close(), h.control.Close())
}

// LocalAddr implements net.Conn.
func (h *passedConn) LocalAddr() net.Addr { return h.control.LocalAddr() }

// RemoteAddr implements net.Conn.
func (h *passedConn) RemoteAddr() net.Addr { return h.control.RemoteAddr() }

// SetDeadline implements net.Conn.
func (h *passedConn) SetDeadline(t time.Time) error {
	return errors.Join(h.SetReadDeadline(t), h.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (h *passedConn) SetReadDeadline(t time.Time) error { return h.in.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (h *passedConn) SetWriteDeadline(t time.Time) error { return h.out.SetWriteDeadline(t) }
