// Package egressstage is a sandbox of the Linux runtime with egress to a web server of
// this host, for measurements: by splicing, by inspecting, and beside both a bare relay
// over the same wire.
package egressstage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/splice"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The ways to the same web server from inside.
const (
	spliced   = "https://spliced.example"
	inspected = "https://inspected.example"
	bareRelay = "https://127.0.0.1:9443" // without any decision
	relayPort = 9443
)

// Stage is the sandbox with all that serves it. Close it.
type Stage struct {
	Machine *machine.Machine
	Program string // of the sandbox: a copy of this one

	state   string
	web     *web
	app     *app.App
	session *provide.ReadySandbox
	log     *audit.Log
	server  *egress.Server
	relay   *machine.PortListener
}

// New makes one. self is this program.
func New(ctx context.Context, getenv func(string) string, self string) (s *Stage, err error) {
	s = &Stage{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.state, err = os.MkdirTemp("", "atoll"); err != nil {
		return s, err
	}
	if s.web, err = startWeb(ctx, s.state); err != nil {
		return s, err
	}
	if err := s.openSandbox(ctx, getenv, self); err != nil {
		return s, err
	}
	return s, errors.Join(s.openEgress(ctx), s.openRelay(ctx))
}

func (s *Stage) openSandbox(ctx context.Context, getenv func(string) string, self string) (err error) {
	own := func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return s.state
		}
		return getenv(name)
	}
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: own}); err != nil {
		return err
	}
	who := provide.Subject{Adjust: func(a *config.Agent) {
		a.Sandbox.Backend, a.Sandbox.Docker.ContainerPrefix = "linux", "bench-"+filepath.Base(s.state)+"-"
	}}
	if s.session, err = s.app.Provide(ctx, who, provide.Options{}); err != nil {
		return err
	}
	s.Machine, s.Program = s.session.Machine, s.session.Plan.Spec.Workdir+"/atoll-bench"
	return CopyProgram(filepath.Join(s.session.Plan.Layout.WorkspaceDir, "atoll-bench"), self)
}

// CopyProgram copies this program to a path.
func CopyProgram(path, self string) error {
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func (s *Stage) openEgress(ctx context.Context) error {
	host, err := outbound.NewHost(outbound.Options{Getenv: func(string) string { return "" }, CAFile: s.web.caFile})
	if err != nil {
		return err
	}
	inspector, err := inspect.Open(inspect.Options{Dir: filepath.Join(s.state, "bench-ca"), Host: host})
	if err != nil {
		return err
	}
	if s.log, err = audit.Open(filepath.Join(s.state, "bench-audit"), audit.Options{}); err != nil {
		return err
	}
	policy, err := Policy("spliced.example", `{host: "inspected.example", methods: ["GET"]}`)
	if err != nil {
		return err
	}
	s.server, err = egress.Open(ctx, egress.Options{
		Rules: egress.Rules{Policy: policy, Inspect: inspector}, Inside: inside{s.Machine}, Outbound: host, Network: s.web,
		Audit: func(e *audit.EgressEvent) error { return s.log.Append(e) },
	})
	return err
}

// Policy compiles rules with limits that no measurement reaches.
func Policy(rules ...string) (*rule.Policy, error) {
	e := &config.Egress{Mode: config.EgressEnforce, Limits: config.EgressLimits{
		Connections: 64, NewPerMinute: 1_000_000, BytesOut: 1 << 40, BytesIn: 1 << 40, IdleSeconds: 300, LifeSeconds: 3600,
	}}
	for _, text := range rules {
		if err := e.AllowRule(text); err != nil {
			return nil, err
		}
	}
	return rule.Compile(e, nil)
}

// openRelay copies the connections of a port to the web server and back.
func (s *Stage) openRelay(ctx context.Context) (err error) {
	s.relay, err = s.Machine.Listen(ctx, relayPort, everyone())
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := s.relay.Accept()
			if err != nil {
				return
			}
			go s.relayOne(conn)
		}
	}()
	return nil
}

func (s *Stage) relayOne(conn net.Conn) {
	up, err := (&net.Dialer{Timeout: time.Minute}).Dial("tcp", s.web.address)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = splice.Both(conn, up)
}

// Call runs this program inside with some arguments.
func (s *Stage) Call(ctx context.Context, out, errs io.Writer, args ...string) error {
	result, err := s.Machine.Exec(ctx, &machine.Command{Argv: append([]string{s.Program}, args...), Stdout: out, Stderr: errs})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("%v inside: exit code %d", args, result.ExitCode)
	}
	return err
}

// Close ends all of it.
func (s *Stage) Close() {
	if s.server != nil {
		_ = s.server.Close()
	}
	if s.relay != nil {
		_ = s.relay.Close()
	}
	if s.log != nil {
		_ = s.log.Close()
	}
	s.closeSandbox()
	if s.web != nil {
		s.web.close()
	}
	if s.state != "" {
		_ = os.RemoveAll(s.state)
	}
}

func (s *Stage) closeSandbox() {
	if s.app == nil {
		return
	}
	if s.session != nil {
		s.session.Release()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.app.Discard(ctx, s.session.Plan)
	}
	s.app.Close()
}
