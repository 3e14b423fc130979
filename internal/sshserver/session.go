package sshserver

import (
	"context"
	"crypto/rand"
	"strings"

	"golang.org/x/crypto/ssh"
)

// loginShell starts bash where the sandbox has it, else the shell that every one has.
const loginShell = `exec "$(command -v bash || echo /bin/sh)" -l`

// session is one command: what the client says of it, then the command itself.
type session struct {
	*conn
	channel ssh.Channel
	command Command
	resize  chan Size
	started bool
	done    chan struct{} // closed when the command has ended
}

// session handles a session channel until its command has ended and it is closed.
func (c *conn) session(nc ssh.NewChannel) {
	channel, requests, err := nc.Accept()
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	s := &session{conn: c, channel: channel, done: make(chan struct{}), resize: make(chan Size, 1)}
	s.command.ID = strings.ToLower(rand.Text())
	for q := range requests {
		ok := s.handle(ctx, q)
		if q.WantReply {
			_ = q.Reply(ok, nil) // an error means that the client has left: requests ends
		}
		if ok && s.starts(q.Type) {
			go s.run(ctx)
		}
	}
	cancel() // the client has closed the channel
	if s.started {
		<-s.done
	}
}

// starts reports whether a request of this kind starts the command, once.
func (s *session) starts(kind string) bool {
	switch kind {
	case "shell", "exec", "subsystem":
		s.started = true
		return true
	}
	return false
}

// handle does what a request asks for, and reports whether it could.
func (s *session) handle(ctx context.Context, q *ssh.Request) bool {
	switch q.Type {
	case "env":
		return !s.started && s.setEnv(q.Payload)
	case "pty-req":
		return !s.started && s.setTerminal(q.Payload)
	case "shell":
		return !s.started && s.setArgv("/bin/sh", "-c", loginShell)
	case "exec":
		return !s.started && s.setExec(q.Payload)
	case "subsystem":
		return !s.started && s.setSubsystem(q.Payload)
	case "window-change":
		return s.setSize(q.Payload)
	case "signal":
		return s.started && s.sendSignal(ctx, q.Payload)
	}
	return false
}

func (s *session) setArgv(argv ...string) bool {
	s.command.Argv = argv
	return true
}

// setExec takes the command line that the client sends, for the shell inside.
func (s *session) setExec(payload []byte) bool {
	var q struct{ Command string }
	return ssh.Unmarshal(payload, &q) == nil && s.setArgv("/bin/sh", "-c", q.Command)
}

func (s *session) setSubsystem(payload []byte) bool {
	var q struct{ Name string }
	return ssh.Unmarshal(payload, &q) == nil && q.Name == "sftp" && s.setArgv(s.SFTP...)
}

// run runs the command, reports how it ended and closes the channel.
func (s *session) run(ctx context.Context) {
	defer close(s.done)
	defer s.channel.Close()
	s.command.Stdin, s.command.Stdout, s.command.Stderr = s.channel, s.channel, s.channel.Stderr()
	if s.command.TTY != nil {
		s.command.Resize = s.resize
	}
	result, err := s.Exec(ctx, &s.command)
	if ctx.Err() != nil {
		return // nobody is there to be told
	}
	if err != nil {
		s.Log.DebugContext(ctx, "ssh: command failed", "error", err)
		_, _ = s.channel.Stderr().Write([]byte("atoll: " + err.Error() + "\r\n"))
		s.exitStatus(exitCode(result))
		return
	}
	s.report(result)
}

// report sends the exit status of a command, or the signal that ended it.
func (s *session) report(r *Result) {
	if name, ok := signalName(r.Signal); ok {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(&struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}{Signal: name, Message: r.Reason}))
		return
	}
	s.exitStatus(r.ExitCode)
}

func (s *session) exitStatus(code int) {
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(&struct{ Status uint32 }{uint32(code)}))
}

// exitCode returns the exit code of a command that failed.
func exitCode(r *Result) int {
	if r == nil {
		return exitNotStarted
	}
	return r.ExitCode
}
