package sshserver_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/atoll-run/atoll/internal/sshserver"
)

// newKey returns a key pair.
func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rig is a server with one connection, whose commands are functions of the test.
type rig struct {
	server *sshserver.Server
	key    ssh.Signer
	ended  chan error // what Serve returned
}

// newRig returns a server whose commands do what exec says.
func newRig(t *testing.T, exec func(context.Context, *sshserver.Command) (*sshserver.Result, error)) *rig {
	t.Helper()
	key := newKey(t)
	return &rig{key: key, ended: make(chan error, 1), server: &sshserver.Server{
		HostKey: newKey(t), Client: key.PublicKey(), Exec: exec, SFTP: []string{"sftp"}, Log: slog.New(slog.DiscardHandler),
		Signal: func(context.Context, string, string) error { return nil },
		Dial:   func(context.Context, int) (net.Conn, error) { return nil, sshserver.ErrRefused },
	}}
}

// connect serves one connection and returns the client's end of it.
func (r *rig) connect(t *testing.T) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a pipe without a buffer would block both ends at their first line
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.ended <- r.server.Serve(ctx, server) }()
	t.Cleanup(func() {
		cancel()
		_ = client.Close()
		<-done
	})
	return client
}

// login is connect with the key that may log in.
func (r *rig) login(t *testing.T) *ssh.Client {
	t.Helper()
	conn, channels, requests, err := ssh.NewClientConn(r.connect(t), "sandbox", &ssh.ClientConfig{
		User: sshserver.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(r.key)}, HostKeyCallback: ssh.FixedHostKey(r.server.HostKey.PublicKey()), Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ssh.NewClient(conn, channels, requests)
}

// echo copies a command's input to its output.
func echo(_ context.Context, command *sshserver.Command) (*sshserver.Result, error) {
	_, err := io.Copy(command.Stdout, command.Stdin)
	return &sshserver.Result{}, err
}

// untilCancelled runs until it is ended.
func untilCancelled(ctx context.Context, _ *sshserver.Command) (*sshserver.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
