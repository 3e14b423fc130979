// Package remote lets an SSH server on this machine work in a sandbox of a gateway
// elsewhere, over the gateway's HTTP interface.
package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sshserver"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
)

const (
	maxInput = 64 << 10         // bytes of input that are sent at once
	endTime  = 20 * time.Second // for the end of a command whose client has left
	notFound = 127              // exit code of a program that is not there
)

// Sandbox is a sandbox of a gateway.
type Sandbox struct {
	Client *client.Client
	ID     string // or its name
	Log    *slog.Logger

	started sync.Map // process of the gateway, by the id of the session's command
}

// Serve serves one SSH connection to the sandbox.
func (s *Sandbox) Serve(ctx context.Context, files *clientconfig.Files, conn net.Conn) error {
	server := &sshserver.Server{
		HostKey: files.Server, Client: files.Client, Log: s.Log, SFTP: []string{policy.InternalTarget + "/guest", "sftp"},
		Exec: s.exec, Signal: s.signal, Dial: s.dial,
	}
	return server.Serve(ctx, conn)
}

// exec runs a command until it ends. One whose client leaves is ended.
func (s *Sandbox) exec(ctx context.Context, c *sshserver.Command) (*sshserver.Result, error) {
	q := &api.StartProcess{Argv: c.Argv, Env: map[string]string{}, Stdin: true}
	for _, e := range c.Env {
		name, value, _ := strings.Cut(e, "=")
		q.Env[name] = value
	}
	if c.TTY != nil {
		q.Terminal = sizeOf(*c.TTY)
	}
	p, err := s.Client.StartProcess(ctx, s.ID, q)
	if err != nil {
		return startError(err)
	}
	s.started.Store(c.ID, p.ID)
	defer s.end(ctx, c.ID, p.ID)
	go s.input(ctx, p.ID, c)
	go s.resize(ctx, p.ID, c.Resize)
	r, err := s.Client.FollowProcess(ctx, s.ID, p.ID, client.Output{Stdout: c.Stdout, Stderr: c.Stderr})
	if err != nil {
		return nil, err
	}
	result := &sshserver.Result{ExitCode: r.ExitCode, Signal: r.Signal, Reason: r.QuotaFull}
	if r.OOM {
		result.Reason = "the command ran out of memory"
	}
	return result, nil
}

// startError gives a program that is not there the exit code of shells.
func startError(err error) (*sshserver.Result, error) {
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusUnprocessableEntity {
		return &sshserver.Result{ExitCode: notFound}, err
	}
	return nil, err
}

// end ends a command and has the gateway forget it.
func (s *Sandbox) end(ctx context.Context, id, process string) {
	s.started.Delete(id)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if _, err := s.Client.EndProcess(ctx, s.ID, process); err != nil {
		s.Log.DebugContext(ctx, "ssh: a command was not ended", "error", err)
	}
}

// input passes on what the client sends, and its end unless there is a terminal.
func (s *Sandbox) input(ctx context.Context, process string, c *sshserver.Command) {
	buffer := make([]byte, maxInput)
	for {
		n, err := c.Stdin.Read(buffer)
		ended := err != nil && c.TTY == nil
		if n > 0 || ended {
			if err := s.Client.WriteProcess(ctx, s.ID, process, buffer[:n], ended); err != nil {
				_, _ = io.Copy(io.Discard, c.Stdin) // nobody reads it any more
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// resize passes sizes of the terminal on.
func (s *Sandbox) resize(ctx context.Context, process string, sizes <-chan sshserver.Size) {
	for {
		select {
		case size := <-sizes:
			if err := s.Client.ResizeProcess(ctx, s.ID, process, *sizeOf(size)); err != nil {
				s.Log.DebugContext(ctx, "ssh: the terminal was not resized", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// maxSide is the most rows or columns that a gateway takes.
const maxSide = 1000

func sizeOf(size sshserver.Size) *api.TerminalSize {
	return &api.TerminalSize{Rows: min(int(size.Rows), maxSide), Cols: min(int(size.Cols), maxSide)}
}

// signal sends a signal to a command that runs.
func (s *Sandbox) signal(ctx context.Context, id, signal string) error {
	process, ok := s.started.Load(id)
	if !ok {
		return errors.New("the command does not run")
	}
	return s.Client.SignalProcess(ctx, s.ID, process.(string), api.ProcessSignal{Signal: signal})
}

// dial refuses: a gateway passes on HTTP only, at the host names of ports.
func (s *Sandbox) dial(context.Context, int) (net.Conn, error) {
	return nil, errors.New("ports of a sandbox of a gateway elsewhere cannot be forwarded")
}
