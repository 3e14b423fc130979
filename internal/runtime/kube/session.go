package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tailbuf"
	"github.com/atoll-run/atoll/internal/wire"
)

// session is one exec of the API server in a pod, which carries every connection that
// this process has to the guest of that pod.
type session struct {
	mux    *wire.Mux
	cancel context.CancelFunc
	over   chan struct{} // closed when the exec is
	heard  atomic.Bool   // bytes have come from the guest's bridge
	used   atomic.Int64  // when bytes last went over it, in Unix nanoseconds
	sessionOptions

	mu  sync.Mutex
	err error // why it is over
}

// sessionOptions say how a session is used.
type sessionOptions struct {
	epoch uint64         // of the gateway, for the guest
	idle  time.Duration  // after which it is closed if it is not used
	ended func(*session) // is called when it is over
}

// idleTimeout is how long a session without use is kept: balancers before API servers cut
// what is silent for five minutes, and each session costs the API server and the node.
const idleTimeout = 4 * time.Minute

// errIdle is the end of a session that was not used.
var errIdle = errors.New("it was not used")

// maxComplaint bounds what is kept of the last words of the program inside.
const maxComplaint = 1000

// openSession starts the guest's bridge in a pod. Whether the API server lets us is known
// when the first connection is used.
func openSession(c *cluster, pod string, o sessionOptions) (*session, error) {
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
	s := &session{cancel: cancel, over: make(chan struct{}), sessionOptions: o}
	if s.mux, err = wire.HostMux(ours); err != nil {
		cancel()
		return nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	s.used.Store(time.Now().UnixNano())
	go s.run(ctx, executor, theirs)
	go s.closeWhenIdle()
	return s, nil
}

// closeWhenIdle ends the session when no bytes have gone over it for a while. A wire with a
// request under way is not silent: the machine pings its guest then.
func (s *session) closeWhenIdle() {
	for {
		left := s.idle - time.Since(time.Unix(0, s.used.Load()))
		if left <= 0 {
			s.setCause(&transportError{errIdle})
			s.close()
			return
		}
		select {
		case <-s.over:
			return
		case <-time.After(left):
		}
	}
}

// run carries bytes until the exec is over.
func (s *session) run(ctx context.Context, executor remotecommand.Executor, conn net.Conn) {
	defer s.ended(s)
	defer close(s.over)
	defer conn.Close()
	words := &tailbuf.Writer{Most: maxComplaint}
	err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: conn, Stdout: &stdout{conn, s}, Stderr: words})
	if left, ok := errors.AsType[exec.CodeExitError](err); ok {
		s.setCause(bridgeEnded(left.Code, short(string(words.Bytes()))))
		return
	}
	// Without an error the bridge has found its input ended, which is the transport's doing
	// (guest.BridgeMany), or the exec has reported no exit code.
	s.setCause(&transportError{explain(err)})
}

// bridgeEnded is the end of the program that carries the wire into the pod. It has the user
// of the sandbox, whose processes can end it.
func bridgeEnded(code int, words string) error {
	if code == 128+int(unix.SIGKILL) {
		return errors.New("the guest's bridge was killed, as processes of the sandbox and a lack of memory can do")
	}
	return fmt.Errorf("the guest's bridge ended with %d: %s", code, words)
}

// setCause keeps the first reason for the end of the session.
func (s *session) setCause(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// stdout is what the bridge writes; it hides everything of a connection but Write.
type stdout struct {
	to      io.Writer
	session *session
}

func (w *stdout) Write(p []byte) (int, error) {
	w.session.heard.Store(true)
	return w.to.Write(p)
}

// errSilent is a session on which the guest's bridge never said anything: the node, or what runs
// its containers, may have been away.
var errSilent = errors.New("the node does not answer yet")

// awaitAnswer waits until the guest's bridge answers, and ends a session on which it does not
// within wire.WriteTimeout.
func (s *session) awaitAnswer() {
	if s.mux.Ping() != nil {
		s.setCause(&transportError{errSilent})
		s.close()
	}
}

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
	case <-s.over:
		return false
	default:
		return true
	}
}

func (s *session) close() {
	_ = s.mux.Close()
	s.cancel()
}

// open returns one more connection to the guest. A session that has just ended says nothing
// about the guest: another one will.
func (s *session) open() (net.Conn, error) {
	s.use()
	stream, err := s.mux.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", machine.ErrTransport, errors.Join(s.cause(), err))
	}
	return &conn{Conn: stream, session: s}, nil
}

// conn is a connection to the guest that shares a session with others.
type conn struct {
	net.Conn
	session *session
}

func (s *session) use() { s.used.Store(time.Now().UnixNano()) }

// Fence implements machine.Fenced.
func (c *conn) Fence() uint64 { return c.session.epoch }

// Write notes that the session is used.
func (c *conn) Write(p []byte) (int, error) {
	c.session.use()
	return c.Conn.Write(p)
}

// endedTimeout is how long an error of a stream waits for the end of its session, which
// says more.
const endedTimeout = 200 * time.Millisecond

// Read adds why the session is over.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.session.use()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return n, errors.Join(os.ErrDeadlineExceeded, err)
	}
	if err != nil {
		err = errors.Join(c.EndErr(), err)
	}
	return n, err
}

// TransportErr implements machine.Transport.
func (c *conn) TransportErr() error {
	switch {
	case c.session.alive() && !c.session.heard.Load():
		return &transportError{errSilent}
	case c.session.alive():
		return nil
	}
	lost, _ := errors.AsType[*transportError](c.EndErr())
	if lost == nil {
		return nil
	}
	return lost
}

// EndErr implements machine.Transport: it is why the session is over; nil while it is not.
func (c *conn) EndErr() error {
	if c.session.alive() {
		return nil
	}
	select {
	case <-c.session.over:
	case <-time.After(endedTimeout):
	}
	return c.session.cause()
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
