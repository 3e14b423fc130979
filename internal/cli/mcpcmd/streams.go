package mcpcmd

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// takeOutput returns standard output for the protocol alone: whatever else this process or
// its children write there goes to standard error from now on.
func (e *env) takeOutput() (io.WriteCloser, error) {
	if e.Out.Writer != os.Stdout {
		return nopCloser{e.Out}, nil
	}
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(int(os.Stderr.Fd()), int(os.Stdout.Fd()), 0); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "protocol"), nil
}

// nopCloser is a stream that others close.
type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }

// closable is standard input with a way to give it up.
func closable(in io.Reader) io.ReadCloser {
	if c, ok := in.(io.ReadCloser); ok {
		return c
	}
	return io.NopCloser(in)
}
