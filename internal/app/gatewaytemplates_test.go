package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// The files of a sandbox that runs are given to another and kept as a template; what
// either does later changes its own.
func TestGatewayTemplates(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	box, err := g.CreateSandbox(ctx, &api.CreateSandbox{Env: map[string]string{"A": "from the first", "B": "kept"}, Limits: &api.SandboxLimits{Processes: 77}})
	if err != nil {
		t.Fatal(err)
	}
	counting, err := g.StartProcess(ctx, box.ID, &api.StartProcess{Command: "echo one >file; exec sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "no file", func() bool { _, err := g.StatFile(ctx, box.ID, "file"); return err == nil })
	fork, err := g.ForkSandbox(ctx, box.ID, &api.ForkSandbox{Metadata: map[string]string{"of": box.ID}, TimeoutSeconds: 60})
	if err != nil || fork.ID == box.ID || fork.Metadata["of"] != box.ID || !fork.Running || time.Until(fork.Deadline) > time.Minute {
		t.Fatalf("%+v, %v", fork, err)
	}
	if p, err := g.Process(ctx, box.ID, counting.ID, 0); err != nil || !p.Running {
		t.Errorf("the source does not go on: %+v, %v", p, err)
	}
	if result, err := g.Exec(ctx, fork.ID, shell(`cat file; echo "$A $B"; echo two >file`)); err != nil || result.Stdout != "one\nfrom the first kept\n" {
		t.Errorf("%+v, %v", result, err)
	}
	template, err := g.CreateSnapshot(ctx, box.ID, "base.v1")
	if err != nil || template.Name != "base.v1" {
		t.Fatalf("%+v, %v", template, err)
	}
	for name, code := range map[string]string{"base.v1": "template_exists", "": "invalid_request", "../x": "invalid_request", strings.Repeat("x", 65): "invalid_request"} {
		if _, err := g.CreateSnapshot(ctx, box.ID, name); !isProblem(err, code) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := g.RemoveSandbox(ctx, box.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := g.Sandboxes(ctx, api.SandboxQuery{}); err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].ID != fork.ID {
		t.Errorf("%+v, %v", list, err)
	}
	for range 2 {
		again, err := g.CreateSandbox(ctx, &api.CreateSandbox{Template: "base.v1", Env: map[string]string{"A": "mine"}})
		if err != nil || again.Template != "base.v1" {
			t.Fatalf("%+v, %v", again, err)
		}
		if result, err := g.Exec(ctx, again.ID, shell(`cat file; echo "$A $B"; echo changed >file`)); err != nil || result.Stdout != "one\nmine kept\n" {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := g.RemoveSandbox(ctx, again.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.CreateSandbox(ctx, &api.CreateSandbox{Template: "base.v1", Image: "host"}); !isProblem(err, "invalid_request") {
		t.Errorf("%v", err)
	}
	if _, err := g.RemoveTemplate(ctx, "base.v1", api.TemplateQuery{}); err != nil {
		t.Error(err)
	}
	if _, err := g.CreateSandbox(ctx, &api.CreateSandbox{Template: "base.v1"}); !isProblem(err, "template_not_found") {
		t.Errorf("%v", err)
	}
	if _, err := g.RemoveSandbox(ctx, fork.ID); err != nil {
		t.Error(err)
	}
	s.nothingMade(g)
}

// Templates belong to an account, and a quota counts them and forks.
func TestInvariant_TEMPLATE_OF_ONE_ACCOUNT(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	b := openBureau(linuxSite(t), execute.Options{})
	ctx := t.Context()
	mine := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	other := restClient(b, access.Caller{Token: "o", Scope: access.Run, Account: "other"})
	box, err := mine.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.CreateSnapshot(ctx, box.ID, "own"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.CreateSnapshot(ctx, box.ID, "stolen"); !isProblem(err, "sandbox_not_found") {
		t.Errorf("%v", err)
	}
	if _, err := other.ForkSandbox(ctx, box.ID, &api.ForkSandbox{}); !isProblem(err, "sandbox_not_found") {
		t.Errorf("%v", err)
	}
	if _, err := other.CreateSandbox(ctx, &api.CreateSandbox{Template: "own"}); !isProblem(err, "template_not_found") {
		t.Errorf("%v", err)
	}
	if _, err := other.RemoveTemplate(ctx, "own", api.TemplateQuery{}); !isProblem(err, "template_not_found") {
		t.Errorf("%v", err)
	}
	if list, err := other.Templates(ctx, api.TemplateQuery{}); err != nil || len(list.Templates) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := mine.Templates(ctx, api.TemplateQuery{}); err != nil || len(list.Templates) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
