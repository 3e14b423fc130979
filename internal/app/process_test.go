package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Some tests need processes of their own: to kill them, or to let many of them
// meet. They start the test binary again, with this variable telling it what to
// do instead of testing.
const orderVariable = "ATOLL_APP_TEST_ORDER"

// order is what such a process does: provide a session's sandbox, run a script
// in it, and then hold it until it is killed, or end.
type order struct {
	Config  string
	Env     map[string]string
	Session string
	DieAt   string // checkpoint at which it ends itself with SIGKILL
	Script  string
	Hold    bool
	Agent   string // a task for the agent, instead of all that
	Run     string // its id
	Branch  string // that its commits are for
	Gateway bool   // be a gateway
	Listen  string // where; "" chooses a port
	Grace   int64  // its grace, in nanoseconds
	Tasks   int    // so many sessions, each with two tasks, until it is killed
	Browser bool   // start the session's browser, and die then, if not before
	Port    int    // be a web server inside a sandbox, at this port
}

func obey(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := o.carryOut(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o *order) carryOut(ctx context.Context) error {
	if o.Port != 0 {
		return (&http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", o.Port), Handler: http.HandlerFunc(serveInside), ReadHeaderTimeout: patience}).ListenAndServe()
	}
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: func(name string) string { return o.Env[name] }, ConfigPath: o.Config})
	if err != nil {
		return err
	}
	defer a.Close()
	if o.DieAt != "" {
		a.Manager.Checkpoint = func(step string) {
			if step == o.DieAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	switch {
	case o.Gateway:
		return o.open(ctx, a)
	case o.Agent != "":
		return o.work(ctx, a)
	case o.Tasks > 0:
		return o.serve(ctx, a)
	case o.Browser:
		return o.browse(ctx, a)
	}
	got, err := a.Provide(ctx, provide.Subject{SessionKey: o.Session}, provide.Options{})
	if err != nil {
		return err
	}
	defer got.Release()
	if o.DieAt != "" {
		return fmt.Errorf("still alive: %q was not reached", o.DieAt)
	}
	out, code, err := runScript(ctx, got, o.Script)
	if err != nil || code != 0 {
		return fmt.Errorf("%s: exit code %d, %w", out, code, err)
	}
	fmt.Fprintf(os.Stdout, "created=%v %s\n", got.Created, out)
	if o.Hold {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// process prepares a process that carries out an order on the site.
func (s *site) process(o order) *exec.Cmd {
	s.t.Helper()
	o.Config, o.Env = s.configFile(), s.env
	text, err := json.Marshal(&o)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	return cmd
}

// die runs a process that must end by SIGKILL, its own or a test's.
func (s *site) die(cmd *exec.Cmd) {
	s.t.Helper()
	out, err := cmd.CombinedOutput()
	if !wasKilled(cmd) {
		s.t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
}

func wasKilled(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// hold starts a process that uses a session's sandbox until it is ended by the
// function that comes back, with SIGKILL.
func (s *site) hold(sessionKey string) (kill func()) {
	s.t.Helper()
	cmd := s.process(order{Session: sessionKey, Script: "true", Hold: true})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := false
	kill = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	s.t.Cleanup(kill)
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		kill()
		s.t.Fatalf("the holder did not get its sandbox: %v\n%s", errors.Join(err), line+stderr.String())
	}
	return kill
}
