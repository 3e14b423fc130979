package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/atoll-run/atoll/internal/tailbuf"
	"github.com/atoll-run/atoll/internal/wire"
)

// session is one exec of the API server in a pod, which carries every connection that
// this process has to the guest of that pod.
type session struct {
	mux    *wire.Mux
	cancel context.CancelFunc
	ended  chan struct{} // closed when the exec is over

	mu  sync.Mutex
	err error // why it is over, if the transport was the reason
}

// maxComplaint bounds what is kept of the last words of the program inside.
const maxComplaint = 1000

// openSession starts the guest's bridge in a pod. Whether the API server lets us is known
// when the first connection is used.
func openSession(c *cluster, pod string) (*session, error) {
	target, err := c.execURL(pod, []string{guestTarget, "pass", "--many", "--socket", socketTarget})
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewWebSocketExecutor(rest.CopyConfig(c.config), "GET", target.String())
	if err != nil {
		return nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{cancel: cancel, ended: make(chan struct{})}
	go s.run(ctx, executor, theirs)
	if s.mux, err = wire.HostMux(ours); err != nil {
		s.cancel()
		return nil, errors.Join(err, ours.Close())
	}
	return s, nil
}

// run carries bytes until the exec is over.
func (s *session) run(ctx context.Context, executor remotecommand.Executor, conn net.Conn) {
	defer close(s.ended)
	defer conn.Close()
	words := &tailbuf.Writer{Most: maxComplaint}
	err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: conn, Stdout: writer{conn}, Stderr: words})
	s.mu.Lock()
	defer s.mu.Unlock()
	if left, ok := errors.AsType[exec.CodeExitError](err); ok {
		s.err = fmt.Errorf("the guest's bridge ended with %d: %s", left.Code, short(string(words.Bytes())))
		return
	}
	s.err = &transportError{explain(err)}
}

// writer hides everything of a connection but Write.
type writer struct{ io.Writer }

// transportError is a session that the API server or the way to it ended, not the guest.
type transportError struct{ err error }

func (e *transportError) Error() string {
	if e.err == nil {
		return "the API server ended the connection"
	}
	return "the connection through the API server: " + e.err.Error()
}

func (e *transportError) Unwrap() error { return e.err }

// cause is why the session is over; nil while it is not.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *session) alive() bool {
	select {
	case <-s.mux.Done():
		return false
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *session) close() {
	_ = s.mux.Close()
	s.cancel()
}

// open returns one more connection to the guest.
func (s *session) open() (net.Conn, error) {
	stream, err := s.mux.Open()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: stream, session: s}, nil
}

// conn is a connection to the guest that shares a session with others.
type conn struct {
	net.Conn
	session *session
}

// endedTimeout is how long an error of a stream waits for the end of its session, which
// says more.
const endedTimeout = 200 * time.Millisecond

// Read adds why the session is over.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.Join(c.TransportErr(), err)
	}
	return n, err
}

// TransportErr implements machine.Transport.
func (c *conn) TransportErr() error {
	if c.session.alive() {
		return nil
	}
	select {
	case <-c.session.ended:
	case <-time.After(endedTimeout):
	}
	lost, _ := errors.AsType[*transportError](c.session.cause())
	if lost == nil {
		return nil
	}
	return lost
}

// socketPair returns two connections that are each other's peers.
func socketPair() (a, b net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if a, err = fileConn(fds[0]); err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	if b, err = fileConn(fds[1]); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

func fileConn(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "session")
	defer file.Close()
	return net.FileConn(file)
}
