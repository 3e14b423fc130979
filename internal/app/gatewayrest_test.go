package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/gateway/terminal"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// restClient serves an installation over HTTP, as somebody.
func restClient(b *bureau, as access.Caller, adjust ...func(*rest.Options)) *client.Client {
	b.t.Helper()
	c, err := client.New(client.Options{URL: restServer(b, as, adjust...)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// restServer serves every request as one authenticated caller, and returns its base URL.
func restServer(b *bureau, as access.Caller, adjust ...func(*rest.Options)) string {
	b.t.Helper()
	options := serve.RESTOptions(b.app.Parts(), b.runs)
	options.Identify = func(*http.Request) (*access.Caller, error) { return &as, nil }
	made, err := serve.OpenSandboxes(b.t.Context(), b.app.Parts())
	if err != nil {
		b.t.Fatal(err)
	}
	options.Made = made
	for _, f := range adjust {
		f(&options)
	}
	server := rest.New(options)
	routes := http.NewServeMux()
	routes.Handle("/", server)
	shown := &terminal.Handler{Made: made}
	routes.HandleFunc(terminal.Path, func(w http.ResponseWriter, r *http.Request) {
		shown.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), &as)))
	})
	listener := httptest.NewServer(routes)
	b.t.Cleanup(func() { server.Close(); made.Close(); listener.CloseClientConnections(); listener.Close() })
	return listener.URL
}

// A task that is given over HTTP is carried out in a sandbox, asks a model, is
// told as it happens and paid by the account of the token.
func TestRESTRun(t *testing.T) {
	s := linuxSite(t)
	withLiteLLM(t, s)
	b := openBureau(s, execute.Options{})
	c := restClient(b, access.Caller{Token: "t", Scope: access.Run, Account: "acme"})
	agents, err := c.Agents(t.Context())
	if err != nil || !slices.ContainsFunc(agents.Agents, func(a api.Agent) bool { return a.GraphID == "sandbox:agent" && a.Name != "" && a.Description != "" }) {
		t.Fatalf("%+v, %v", agents, err)
	}
	begun, err := c.Start(t.Context(), &api.RunRequest{GraphID: "script", Message: strings.ReplaceAll(askOnce, "wget -qO /tmp/a --header 'Content-Type: application/json' --post-data", "curl -s -o /tmp/a -H 'Content-Type: application/json' -d")}, "once")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	over, err := c.Events(t.Context(), begun.ID, 0, func(e api.Event) error { types = append(types, e.Type); return nil })
	if err != nil || over.Text != "done" || over.Account != "acme" || over.Bill.Calls != 1 || over.Bill.MicroUSD == 0 {
		t.Fatalf("%+v, %v", over, err)
	}
	if !slices.Contains(types, "usage_report") || types[len(types)-1] != "done" {
		t.Errorf("%v", types)
	}
	costs, err := c.Costs(t.Context(), api.CostQuery{})
	if err != nil || len(costs.Accounts) != 1 || costs.Accounts[0].Account != "acme" || costs.Accounts[0].MicroUSD != over.Bill.MicroUSD {
		t.Errorf("%+v, %v", costs, err)
	}
	eventually(t, "the audit log has no record of the command and one of the call", func() bool { // it is written after the answer
		log, err := c.Audit(t.Context(), api.AuditQuery{Run: begun.ID})
		return err == nil && slices.Equal(auditKinds(t, log), []audit.Kind{audit.Exec, audit.Model})
	})
}

// auditKinds are the kinds of records, in their order.
func auditKinds(t *testing.T, log *api.Audit) (kinds []audit.Kind) {
	t.Helper()
	for _, record := range log.Records {
		var head struct {
			Kind audit.Kind `json:"kind"`
		}
		if err := json.Unmarshal(record, &head); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, head.Kind)
	}
	return kinds
}

// Sandboxes of sessions are shown, judged and removed over HTTP, those of the
// caller's account alone.
func TestRESTSandboxes(t *testing.T) {
	s := linuxSite(t)
	b := openBureau(s, execute.Options{})
	for _, account := range []string{"acme", "other"} {
		got, err := b.app.Provide(t.Context(), provide.Subject{Account: account}, provide.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got.Release()
	}
	mine := restClient(b, access.Caller{Token: "t", Scope: access.Operator, Account: "acme"})
	list, err := mine.Sandboxes(t.Context(), api.SandboxQuery{})
	if err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].Account != "acme" || !list.Sandboxes[0].Running {
		t.Fatalf("%+v, %v", list, err)
	}
	name := list.Sandboxes[0].ContainerName
	if found, err := mine.Verify(t.Context(), name); err != nil || len(found.Verified) != 1 || !found.Verified[0].OK {
		t.Errorf("%+v, %v", found, err)
	}
	x, err := mine.Explain(t.Context(), api.ExplainQuery{Tool: "exec", Path: "/workspace/a"})
	if err != nil || x.ContainerName != name || !x.Sandboxed || x.Tool == nil || !x.Tool.Allowed || x.Path == nil || x.Path.Inside != "/workspace/a" {
		t.Errorf("%+v, %v", x, err)
	}
	if done, err := mine.Recreate(t.Context(), name, true); err != nil || done.ContainerName != name {
		t.Errorf("%+v, %v", done, err)
	}
	all := restClient(b, access.Caller{Token: "t", Scope: access.Admin})
	if list, err := all.Sandboxes(t.Context(), api.SandboxQuery{}); err != nil || len(list.Sandboxes) != 1 || list.Sandboxes[0].Account != "other" {
		t.Errorf("%+v, %v", list, err)
	}
	if pruned, err := all.Prune(t.Context(), false); err != nil || len(pruned.Removed) != 0 {
		t.Errorf("%+v, %v", pruned, err)
	}
}

// What is wrong on the host is told to those who run the gateway; a caller of one
// account learns that it is wrong, and no directory.
func TestHostPathsStayWithTheOperator(t *testing.T) {
	s := linuxSite(t)
	const outside = "/srv/secret-project"
	s.set("agents.defaults.sandbox.docker.binds", []string{outside + ":/x"})
	b := openBureau(s, execute.Options{})
	for account, told := range map[string]bool{"": true, "acme": false} {
		c := restClient(b, access.Caller{Token: "t", Scope: access.Operator, Account: account})
		x, err := c.Explain(t.Context(), api.ExplainQuery{Path: "/etc/passwd"})
		if err != nil || len(x.Refused) != 1 || !strings.Contains(x.Refused[0], "is outside of the allowed roots") {
			t.Fatalf("%+v, %v", x, err)
		}
		if got := strings.Contains(fmt.Sprint(x.Refused), outside); got != told {
			t.Errorf("account %q: %q", account, x.Refused)
		}
	}
}

// A catalogue says which agents cannot work here, and why; an agent of the
// configuration has the name that it was given.
//
// Seen to fail with a restVariants that does not ask.
func TestRESTAgentsSayWhetherTheyCanWork(t *testing.T) {
	s := linuxSite(t)
	s.set("runs.variants.mine", map[string]any{"name": "My agent", "argv": []string{"/bin/true"}, "read": "text"})
	b := openBureau(s, execute.Options{})
	list, err := restClient(b, access.Caller{Token: "t", Scope: access.Run, Account: "acme"}).Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Agents {
		switch a.GraphID {
		case "sandbox:openclaw": // its image is nowhere
			if a.Unavailable == "" {
				t.Errorf("%+v", a)
			}
		case "mine":
			if a.Name != "My agent" || a.Unavailable != "" {
				t.Errorf("%+v", a)
			}
		default:
			if a.Unavailable != "" {
				t.Errorf("%+v", a)
			}
		}
	}
}
