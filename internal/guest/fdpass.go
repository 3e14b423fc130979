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

// The stdio bridge passes its standard input and output as descriptors to
// process 1, which uses them as the wire: bytes that the bridge copied would wait
// for one more process to wake up, each way. The connection between the two stays
// open as a control connection; when either side closes it, the wire ends.
//
// The bridge sends fdPassGreeting instead of a host's hello, and reads
// fdPassAnswer. A process 1 of another build does not answer so, and the bridge
// copies bytes.
const (
	fdPassGreeting = "atollfd\n"
	fdPassAnswer   = "taken\n"
)

var errFDPassRefused = errors.New("process 1 does not take descriptors")

// passFiles sends the descriptors of in and out over the control connection.
func passFiles(control *net.UnixConn, in, out *os.File) error {
	rights := unix.UnixRights(int(in.Fd()), int(out.Fd()))
	if _, _, err := control.WriteMsgUnix([]byte(fdPassGreeting), rights, nil); err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Now().Add(wire.HelloTimeout))
	var answer [len(fdPassAnswer)]byte
	if _, err := io.ReadFull(control, answer[:]); err != nil || string(answer[:]) != fdPassAnswer {
		return errors.Join(errFDPassRefused, err)
	}
	return control.SetReadDeadline(time.Time{})
}

// isFDPass reports whether a connection begins with fdPassGreeting. It leaves the
// bytes in the socket.
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

// receiveConn returns a connection over the descriptors that a bridge passes.
func receiveConn(control *net.UnixConn) (net.Conn, error) {
	var greeting [len(fdPassGreeting)]byte
	rights := make([]byte, unix.CmsgSpace(2*4))
	_, n, _, _, err := control.ReadMsgUnix(greeting[:], rights)
	if err != nil {
		return nil, err
	}
	files, err := receivedFiles(rights[:n])
	if err != nil {
		return nil, err
	}
	h := &passedConn{control: control, in: files[0], out: files[1]}
	if _, err := control.Write([]byte(fdPassAnswer)); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	_ = control.SetReadDeadline(time.Time{})
	quick, err := socket.WrapFiles(h, h.in, h.out)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	go h.watch()
	return quick, nil
}

// receivedFiles returns the two descriptors in a message, non-blocking.
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
		files[i] = os.NewFile(uintptr(fd), "passed descriptor")
	}
	return files, nil
}

// passedConn is a connection over descriptors that a bridge passed.
type passedConn struct {
	control net.Conn
	in, out *os.File
}

// watch closes the connection when the control connection ends.
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
