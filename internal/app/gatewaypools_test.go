package app_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// awaitPool waits until as many sandboxes of an agent wait as are to.
func awaitPool(t *testing.T, g *client.Client, agent string, ready int) (p api.Pool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		all, err := g.Pools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p = api.Pool{}
		for _, one := range all.Pools {
			if one.Agent == agent {
				p = one
			}
		}
		if p.Ready == ready && p.Making == 0 {
			return p
		}
	}
	t.Fatalf("the pool of %s is %+v, and %d should wait", agent, p, ready)
	return p
}

// A gateway keeps sandboxes ready, programs get them, and they are replaced; when it ends
// none is left.
func TestGatewayPool(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("pools.api.size", 1)
	g := s.gateway(time.Minute)
	awaitPool(t, g.Client, "api", 1)
	for range 3 {
		awaitPool(t, g.Client, "api", 1)
		box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{Env: map[string]string{"GREETING": "hello"}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := g.Exec(t.Context(), box.ID, shell(`echo "$GREETING $(cat /proc/sys/kernel/hostname)"; ls -A; echo x >file; cat file`))
		if err != nil || result.Stdout != "hello sandbox\nx\n" {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := g.RemoveSandbox(t.Context(), box.ID); err != nil {
			t.Error(err)
		}
	}
	other, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{Limits: &api.SandboxLimits{Processes: 77}}) // of another shape
	if err != nil {
		t.Fatal(err)
	}
	if result, err := g.Exec(t.Context(), other.ID, shell("cat /proc/sys/kernel/hostname")); err != nil || result.Stdout == "sandbox\n" {
		t.Errorf("%+v, %v", result, err)
	}
	if p := awaitPool(t, g.Client, "api", 1); p.Claimed != 3 || p.Missed != 1 || p.Problem != "" {
		t.Errorf("%+v", p)
	}
	if _, err := g.ResizePool(t.Context(), "api", api.ResizePool{Size: 3}); err != nil {
		t.Error(err)
	}
	awaitPool(t, g.Client, "api", 3)
	if _, err := g.ResizePool(t.Context(), "nobody", api.ResizePool{Size: 1}); !isProblem(err, "agent_not_found") {
		t.Errorf("an unknown agent: %v", err)
	}
	if _, err := g.ResizePool(t.Context(), "api", api.ResizePool{Size: 65}); !isProblem(err, "invalid_request") {
		t.Errorf("65: %v", err)
	}
	g.signal(syscall.SIGTERM)
	if err := g.ended(); err != nil {
		t.Error(err)
	}
	a := s.open()
	rows, err := a.Registry.Pooled(t.Context())
	if err != nil || len(rows) != 0 {
		t.Errorf("%d are left, %v", len(rows), err)
	}
	if list, err := a.Registry.List(t.Context(), 0); err != nil || len(list) != 1 || strings.Contains(list[0].ContainerName, "pool") {
		t.Errorf("%v, %v", list, err)
	}
	a.Close()
	if p := awaitPool(t, s.gateway(time.Minute).Client, "api", 3); p.Size != 3 || p.Configured != 1 {
		t.Errorf("after a restart: %+v", p)
	}
}

// The size that an operator set stays when the configuration is read again, until that says
// another. Who changed it, and what was claimed, is in the audit log.
func TestPoolSizes(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("pools.api.size", 1)
	g, gateway := s.gatewayHere()
	reload := func() {
		t.Helper()
		settings, err := provide.Load(provide.LoadOptions{Getenv: s.getenv, ConfigPath: s.configFile()})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := gateway.Reload(t.Context(), settings); err != nil || len(report.Restart) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
	}
	awaitPool(t, g, "api", 1)
	if _, err := g.ResizePool(t.Context(), "api", api.ResizePool{Size: 2}); err != nil {
		t.Fatal(err)
	}
	reload()
	awaitPool(t, g, "api", 2)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	s.set("pools.api.size", 0)
	reload()
	if p := awaitPool(t, g, "api", 0); p.Size != 0 {
		t.Errorf("%+v", p)
	}
	eventually(t, "the audit log lacks the change or the claim", func() bool {
		log, err := g.Audit(t.Context(), api.AuditQuery{Kind: string(audit.Pool)})
		return err == nil && len(log.Records) == 2 &&
			strings.Contains(string(log.Records[0]), `"event":"resized"`) && strings.Contains(string(log.Records[0]), `"size":2`) &&
			strings.Contains(string(log.Records[1]), `"event":"claimed"`) && strings.Contains(string(log.Records[1]), box.ID)
	})
}
