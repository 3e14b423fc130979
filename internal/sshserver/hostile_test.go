package sshserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/atoll-run/atoll/internal/sshserver"
)

// TestOtherKeysAreRefused logs in with a key that is not the client's, without a key, and
// with a password.
func TestOtherKeysAreRefused(t *testing.T) {
	for name, auth := range map[string]ssh.AuthMethod{
		"another key": ssh.PublicKeys(newKey(t)), "a password": ssh.Password("atoll"), "no key": nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, echo)
			config := &ssh.ClientConfig{User: sshserver.User, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
			if auth != nil {
				config.Auth = []ssh.AuthMethod{auth}
			}
			if _, _, _, err := ssh.NewClientConn(r.connect(t), "sandbox", config); err == nil {
				t.Error("logged in")
			}
		})
	}
}

// TestSessionsAreBounded opens sessions until one is refused: the limit holds, and a slot
// is free again when a session ends.
func TestSessionsAreBounded(t *testing.T) {
	client := newRig(t, untilCancelled).login(t)
	var open []*ssh.Session
	for len(open) <= sshserver.MaxSessions {
		s, err := client.NewSession()
		if err != nil {
			break
		}
		if err := s.Start("wait"); err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	if len(open) != sshserver.MaxSessions {
		t.Fatalf("%d sessions were open, want %d", len(open), sshserver.MaxSessions)
	}
	_ = open[0].Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		s, err := client.NewSession()
		if err == nil {
			_ = s.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no session after one ended: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestClientThatLeavesEndsItsCommands breaks the connection off in the middle of commands.
func TestClientThatLeavesEndsItsCommands(t *testing.T) {
	var running atomic.Int32
	r := newRig(t, func(ctx context.Context, c *sshserver.Command) (*sshserver.Result, error) {
		running.Add(1)
		defer running.Add(-1)
		return untilCancelled(ctx, c)
	})
	client := r.login(t)
	for range 5 {
		s, err := client.NewSession()
		if err == nil {
			err = s.Start("wait")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = client.Close()
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the server goes on")
	}
	if n := running.Load(); n != 0 {
		t.Errorf("%d commands go on", n)
	}
}

// TestWhatIsRefused asks for what would lead out of the sandbox, or into the client's
// machine.
func TestWhatIsRefused(t *testing.T) {
	client := newRig(t, echo).login(t)
	for _, host := range []string{"example.com:80", "10.0.0.1:22", "169.254.169.254:80", "0.0.0.0:80"} {
		conn, err := client.Dial("tcp", host)
		if err == nil {
			_ = conn.Close()
			t.Errorf("connected to %s", host)
		} else if !strings.Contains(err.Error(), "prohibited") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if l, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
		t.Error("the server listens for the sandbox")
	}
	for _, kind := range []string{"auth-agent@openssh.com", "x11", "tun@openssh.com", "direct-streamlocal@openssh.com"} {
		if ch, _, err := client.OpenChannel(kind, nil); err == nil {
			_ = ch.Close()
			t.Errorf("the channel %s was opened", kind)
		}
	}
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"auth-agent-req@openssh.com", "x11-req", "no-such-request"} {
		if ok, err := s.SendRequest(kind, true, nil); ok || err != nil {
			t.Errorf("request %s: %v, %v", kind, ok, err)
		}
	}
	for _, name := range []string{"LD_PRELOAD", "PATH", "LC_A=B", "LANG\x00X", "BASH_ENV"} {
		if s.Setenv(name, "x") == nil {
			t.Errorf("%q was set", name)
		}
	}
	if s.Setenv("LANG", strings.Repeat("x", 2000)) == nil {
		t.Error("a variable of 2,000 bytes was set")
	}
	if s.RequestSubsystem("netconf") == nil {
		t.Error("an unknown subsystem was started")
	}
}

// TestSilentClientIsBounded has clients that never log in: one says nothing, one something
// that is no SSH. Both are left after HandshakeTime.
func TestSilentClientIsBounded(t *testing.T) {
	r := newRig(t, echo)
	for _, said := range []string{"", "GET / HTTP/1.1\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			go func() {
				_, _ = io.WriteString(client, said)
				_, _ = io.Copy(io.Discard, client)
			}()
			began := time.Now()
			if err := r.server.Serve(t.Context(), server); err == nil {
				t.Error("it was served")
			}
			if took := time.Since(began); took != sshserver.HandshakeTime {
				t.Errorf("left after %v, want %v", took, sshserver.HandshakeTime)
			}
		})
	}
}

// TestCutPayloads sends requests whose payloads are cut off; the session stays usable.
func TestCutPayloads(t *testing.T) {
	client := newRig(t, echo).login(t)
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"env", "pty-req", "exec", "subsystem", "window-change", "signal"} {
		if ok, err := s.SendRequest(kind, true, []byte{0, 0, 0, 9, 'x'}); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
	if err := s.Run("true"); err != nil {
		t.Errorf("the session cannot be used any more: %v", err)
	}
}

// TestOneCommandForEachSession starts a second command in a session.
func TestOneCommandForEachSession(t *testing.T) {
	client := newRig(t, untilCancelled).login(t)
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("first"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"exec", "shell"} {
		if ok, err := s.SendRequest(kind, true, ssh.Marshal(struct{ C string }{"second"})); ok || err != nil {
			t.Errorf("a second %s: %v, %v", kind, ok, err)
		}
	}
}

// TestEnds reports exit codes, signals and commands that did not start.
func TestEnds(t *testing.T) {
	r := newRig(t, func(_ context.Context, c *sshserver.Command) (*sshserver.Result, error) {
		switch c.Argv[2] {
		case "code":
			return &sshserver.Result{ExitCode: 42}, nil
		case "killed":
			return &sshserver.Result{ExitCode: 137, Signal: "SIGKILL", Reason: "the command ran out of memory"}, nil
		}
		return &sshserver.Result{ExitCode: 127}, errors.New("program not found")
	})
	client := r.login(t)
	for command, want := range map[string]int{"code": 42, "absent": 127} {
		s, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		exit, ok := errors.AsType[*ssh.ExitError](s.Run(command))
		if !ok || exit.ExitStatus() != want {
			t.Errorf("%s: %v, want status %d", command, exit, want)
		}
	}
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	exit, ok := errors.AsType[*ssh.ExitError](s.Run("killed"))
	if !ok || exit.Signal() != "KILL" || exit.Msg() != "the command ran out of memory" {
		t.Errorf("killed: %v", exit)
	}
}
