package sshserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// The limits of one connection.
const (
	HandshakeTime = 30 * time.Second // until a client has logged in
	MaxSessions   = 64               // at once
	MaxForwards   = 256              // connections to ports inside, at once
	maxAuthTries  = 6                // an agent may offer keys of its own first
)

// User is the name that clients log in as; there is no other.
const User = "atoll"

// Server is an SSH server for one sandbox.
type Server struct {
	HostKey ssh.Signer
	Client  ssh.PublicKey // the key that may log in
	// Exec runs a command in the sandbox and waits for its end. The server sets what to
	// run, the input and outputs, the terminal, and the variables that the client sent.
	// With an error the result may have the exit code that is reported.
	Exec func(ctx context.Context, command *Command) (*Result, error)
	// Signal sends a signal to a command that Exec runs.
	Signal func(ctx context.Context, id, signal string) error
	// Dial connects to a port of the sandbox's loopback interface; ErrRefused if nothing
	// listens there.
	Dial func(ctx context.Context, port int) (net.Conn, error)
	// SFTP is the program inside that speaks the protocol on its input and output.
	SFTP []string
	Log  *slog.Logger
}

// Serve serves one client until it leaves or ctx ends; then every command that it
// started and still waits for is ended.
func (s *Server) Serve(ctx context.Context, nc net.Conn) error {
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	timer := time.AfterFunc(HandshakeTime, func() { _ = nc.Close() })
	sc, channels, requests, err := ssh.NewServerConn(nc, s.config())
	if !timer.Stop() && err != nil {
		return fmt.Errorf("no client logged in within %v", HandshakeTime)
	}
	if err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	c := &conn{Server: s, sessions: make(chan struct{}, MaxSessions), forwards: make(chan struct{}, MaxForwards)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.serve(sc, channels, requests)
	return nil
}

// errOtherKey refuses a key that is not the one that may log in.
var errOtherKey = errors.New("this key may not log in")

func (s *Server) config() *ssh.ServerConfig {
	allowed := s.Client.Marshal()
	config := &ssh.ServerConfig{
		MaxAuthTries:  maxAuthTries,
		ServerVersion: "SSH-2.0-atoll",
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), allowed) {
				return nil, errOtherKey
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(s.HostKey)
	return config
}

// conn is one client that has logged in.
type conn struct {
	*Server
	ctx                context.Context // ends with the connection
	cancel             context.CancelFunc
	sessions, forwards chan struct{} // a slot for each that is open
	wg                 sync.WaitGroup
}

// serve handles channels until the client leaves, and returns when all are done.
func (c *conn) serve(sc *ssh.ServerConn, channels <-chan ssh.NewChannel, requests <-chan *ssh.Request) {
	c.wg.Go(func() { ssh.DiscardRequests(requests) })
	for nc := range channels {
		c.accept(nc)
	}
	c.cancel()
	_ = sc.Close()
	c.wg.Wait()
}

// accept opens a channel of a kind that is known, if there is a slot for it.
func (c *conn) accept(nc ssh.NewChannel) {
	switch nc.ChannelType() {
	case "session":
		c.start(nc, c.sessions, c.session)
	case "direct-tcpip":
		c.start(nc, c.forwards, c.forward)
	default:
		_ = nc.Reject(ssh.UnknownChannelType, "not offered by a sandbox")
	}
}

// start handles a channel beside the others.
func (c *conn) start(nc ssh.NewChannel, slots chan struct{}, handle func(ssh.NewChannel)) {
	select {
	case slots <- struct{}{}:
	default:
		_ = nc.Reject(ssh.ResourceShortage, fmt.Sprintf("%d are open, which is the limit", cap(slots)))
		return
	}
	c.wg.Go(func() {
		defer func() { <-slots }()
		handle(nc)
	})
}
