package app_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
)

// egressSite is an installation with a sandbox and an internet, on one backend.
type egressSite struct {
	*site
	app *app.App
	box *provide.ReadySandbox
	net *internettest.Internet
}

// onBackends runs a test with an engine and without.
func onBackends(t *testing.T, handler http.Handler, test func(*testing.T, *egressSite)) {
	for _, backend := range []string{"docker", "linux"} {
		t.Run(backend, func(t *testing.T) {
			s := &egressSite{site: newSite(t)}
			var err error
			if s.net, err = internettest.Start(handler); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.net.Close() })
			s.set("agents.defaults.sandbox.backend", backend)
			if backend == "linux" {
				s.set("agents.defaults.sandbox.docker.image", provide.HostImage)
			}
			s.set("agents.defaults.sandbox.egress.upstream", s.net.Proxy)
			s.app = s.open()
			if s.box, err = s.app.Provide(t.Context(), session("egress"), provide.Options{}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				s.box.Release()
				if err := s.app.Manager.ForceRemove(context.WithoutCancel(t.Context()), s.box.Name); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

// openEgress opens egress of a mode, for a grant or one of its own.
func (s *egressSite) openEgress(t *testing.T, mode config.EgressMode, g *grant.Grant, rules ...string) *egress.Egress {
	t.Helper()
	wanted := func(p *plan.Plan) (*config.Egress, error) {
		c := egress.ConfigOf(p, policy.HalfIsolated)
		for _, r := range rules {
			if err := c.AllowRule(r); err != nil {
				return nil, err
			}
		}
		c.Mode = mode
		return &c, nil
	}
	e, err := s.app.Egress.Open(t.Context(), s.box.Handle, s.box.Plan, egress.Options{Config: wanted, Grant: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// sh runs a script under a grant, and returns its output and exit code.
func (s *egressSite) sh(t *testing.T, grant, script string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	result, err := s.box.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Grant: grant, Env: []string{"PATH=" + provide.DefaultPath}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String(), result.ExitCode
}

// fetch is a program that knows nothing of egress.
const fetch = "wget -q -O - http://shop.example/page"

// EGRESS_ONE_WIRE: whatever the rules are, a sandbox has its loopback interface, no route,
// and nothing that an address alone leads to.
func TestInvariant_EGRESS_ONE_WIRE(t *testing.T) {
	onBackends(t, internettest.Hello(), func(t *testing.T, s *egressSite) {
		e := s.openEgress(t, config.EgressPublic, nil)
		if out, code := s.sh(t, e.GrantID(), fetch); code != 0 || !strings.Contains(out, "GET shop.example/page") {
			t.Fatalf("code %d: %s", code, out)
		}
		if out, _ := s.sh(t, e.GrantID(), "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"); strings.TrimSpace(out) != "lo" {
			t.Errorf("interfaces: %q", out)
		}
		if out, _ := s.sh(t, e.GrantID(), "tail -n +2 /proc/net/route; grep -v ' lo$' /proc/net/ipv6_route"); strings.TrimSpace(out) != "" {
			t.Errorf("routes: %q", out)
		}
		for _, address := range []string{"192.0.2.1", "169.254.169.254", "10.0.0.1", "[2001:db8::1]"} {
			if out, code := s.sh(t, e.GrantID(), "wget -q -T 3 -O - http://"+address+"/"); code == 0 {
				t.Errorf("%s is reached: %s", address, out)
			}
		}
		for _, asked := range s.net.Asked() {
			if asked != "shop.example:80" {
				t.Errorf("the host connected to %s", asked)
			}
		}
	})
}

// EGRESS_ENDS_WITH_ITS_GRANT: connections, listeners and processes end with the grant, and
// callers of no grant never have any.
func TestInvariant_EGRESS_ENDS_WITH_ITS_GRANT(t *testing.T) {
	begun, ended := make(chan struct{}, 8), make(chan struct{}, 8)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			fmt.Fprintln(w, "page")
			return
		}
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	onBackends(t, slow, func(t *testing.T, s *egressSite) {
		grants := grant.NewGrants(s.box.Name, s.box.Machine, s.app.Locks)
		g, err := grants.Open(t.Context(), &grant.Terms{Until: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		s.openEgress(t, config.EgressEnforce, g, "shop.example:80")
		if out, code := s.sh(t, "", "wget -q -T 5 -O - http://shop.example/none"); code == 0 {
			t.Errorf("a caller of no grant is answered: %s", out)
		}
		id, err := s.box.Machine.Start(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", "wget -q -O - http://shop.example/slow"}, Grant: g.ID(), Env: []string{"PATH=" + provide.DefaultPath}})
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := s.box.Machine.Wait(ctx, id); err != nil {
			t.Errorf("the process goes on: %v", err)
		}
		select {
		case <-ended:
		case <-ctx.Done():
			t.Fatal("the connection is open after the grant")
		}
		if out, code := s.sh(t, "", "wget -q -T 5 -O - http://shop.example/after"); code == 0 {
			t.Errorf("reached after the end of the grant: %s", out)
		}
	})
}

// EGRESS_LEARN_NEVER_WIDENS: the mode learn adds no rule: connections that it allowed are
// refused once it has ended, and denied names are refused during it too.
func TestInvariant_EGRESS_LEARN_NEVER_WIDENS(t *testing.T) {
	onBackends(t, internettest.Hello(), func(t *testing.T, s *egressSite) {
		before, err := os.ReadFile(filepath.Join(s.dir, "atoll.json5"))
		if err != nil {
			t.Fatal(err)
		}
		e := s.openEgress(t, config.EgressLearn, nil)
		if out, code := s.sh(t, e.GrantID(), fetch); code != 0 {
			t.Fatalf("code %d: %s", code, out)
		}
		for _, name := range []string{"printer.local", "metadata.google.internal", "localhost.localdomain:8080"} {
			if out, code := s.sh(t, e.GrantID(), "wget -q -T 5 -O - http://"+name+"/"); code == 0 {
				t.Errorf("%s is reached while learning: %s", name, out)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = s.openEgress(t, config.EgressEnforce, nil)
		if out, code := s.sh(t, e.GrantID(), fetch); code == 0 {
			t.Errorf("reached after learning: %s", out)
		}
		if denied := strings.Join(e.AllDenials(), "\n"); !strings.Contains(denied, "shop.example:80 denied") {
			t.Errorf("denials: %q", denied)
		}
		if now, err := os.ReadFile(filepath.Join(s.dir, "atoll.json5")); err != nil || !bytes.Equal(now, before) {
			t.Errorf("the configuration changed: %s (%v)", now, err)
		}
	})
}
