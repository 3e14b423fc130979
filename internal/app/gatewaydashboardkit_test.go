package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// hostileText is what agents and callers of these tests write: script, escapes of
// terminals, and marks that turn the direction of text.
const hostileText = "<img src=x onerror=\"window.pwned=1\"> \x1b[31mred\x1b[0m\x1b]0;title\x07 \u202egnp.exe\u202c"

// dashboardSite is an installation with something on every page of the dashboard.
type dashboardSite struct {
	*site
	g     *gatewayProcess
	given map[string]any // what dashboard.mjs is told
}

func newDashboardSite(t *testing.T) *dashboardSite {
	t.Helper()
	use := func(command string) fakellm.Turn { return fakellm.Use("exec", `{"command": "`+command+`"}`) }
	s, _ := gatewaySite(t, use("printf 'package main\\n' > main.go && ls -l"), fakellm.Say("I wrote **main.go**.\n\n- it compiles\n- `go vet` is content"))
	s.set("agents.defaults.sandbox.scope", "session")
	server, hub := relaytest.NewGitServer(t, relayToken), relaytest.NewGitHub(t, relayToken, "org/project")
	s.env["GITHUB_TOKEN"] = relayToken
	s.mkdir(server.Dir("org"))
	s.set("relay.repository", server.Create(t, "org/project", map[string]string{"README.md": "hello\n", "src/main.go": "package main\n"}))
	s.set("relay.allowHTTP", true)
	s.set("relay.api", hub.URL)
	s.variants()
	d := &dashboardSite{site: s, g: s.gateway(time.Minute), given: map[string]any{"hostile": hostileText}}
	d.fill()
	return d
}

// variants adds agents that are programs: one asks a model, one fails, two commit.
func (s *site) variants() {
	ask := `curl -sS -H 'Content-Type: application/json' -d '{"model":"small","messages":[{"role":"user","content":"hi"}]}' http://127.0.0.1:8080/v1/chat/completions >/dev/null; `
	commit := func(file string) string {
		return ask + `mkdir -p "$(dirname ` + file + `)" && echo "# notes" > ` + file + ` && git add -A && git commit -qm "add ` + file + `" && echo committed`
	}
	for id, v := range map[string][2]string{
		"asks":    {"Reviewer", ask + "cat <<'X'\n" + hostileText + "\nX"},
		"fails":   {"Builder", ask + "exit 3"},
		"commits": {"Writer", commit("docs/notes.md")},
		"guarded": {"Maintainer", commit("AGENTS.md")},
		"waits":   {"Researcher", ask + "sleep 600"},
	} {
		s.set("runs.variants."+id, map[string]any{"name": v[0], "argv": []string{"/bin/sh", "-c", v[1]}, "read": "text"})
	}
}

// fill carries out runs, sends messages, and makes a sandbox and tokens.
func (d *dashboardSite) fill() {
	d.given["run"] = d.run("asks", "Review the parser "+hostileText, "")
	d.given["failed"] = d.run("fails", "Build the release", "")
	d.given["pushed"] = d.run("commits", "Write notes about the parser", "parser-notes")
	d.given["held"] = d.run("guarded", "Tell agents about the build", "agents-file")
	d.given["session"] = "agent:main:demo"
	d.say("agent:main:demo", "Write main.go")
	box, err := d.g.CreateSandbox(d.t.Context(), &api.CreateSandbox{TimeoutSeconds: 3600})
	if err != nil {
		d.t.Fatal(err)
	}
	d.given["sandbox"] = box.ID
	d.given["admin"] = d.token(access.Spec{Scope: access.Admin, Name: "admin"})
	d.given["reader"] = d.token(access.Spec{Scope: access.Read, Account: "somebody-else", Name: "reader"})
}

// run carries a run out and returns its id.
func (d *dashboardSite) run(agent, task, branch string) string {
	d.t.Helper()
	begun, err := d.g.Start(d.t.Context(), &api.RunRequest{GraphID: agent, Message: task, BranchName: branch}, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.g.Events(d.t.Context(), begun.ID, 0, func(api.Event) error { return nil }); err != nil {
		d.t.Fatal(err)
	}
	return begun.ID
}

// token makes a token and returns its text.
func (d *dashboardSite) token(spec access.Spec) string {
	d.t.Helper()
	text, _, err := serve.Tokens(d.open().Installation).Create(d.t.Context(), spec)
	if err != nil {
		d.t.Fatal(err)
	}
	return text.Reveal()
}

// say says something in a session and waits for the answer.
func (d *dashboardSite) say(key, message string) {
	d.t.Helper()
	task, err := d.g.Send(d.t.Context(), key, &api.SendRequest{Message: message}, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.g.TaskEvents(d.t.Context(), task.ID, 0, func(api.Event) error { return nil }); err != nil {
		d.t.Fatal(err)
	}
}

// filesBelow returns the files below a directory by their paths.
func (s *site) filesBelow(dir string) map[string][]byte {
	s.t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what is removed meanwhile holds nothing
		}
		if data, err := os.ReadFile(path); err == nil {
			all[path] = data
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// crowd puts ten thousand runs and sessions of one account into the database, one run
// with a hundred thousand events, and one whose answer is a line of ten megabytes.
func (d *dashboardSite) crowd() {
	d.t.Helper()
	db, err := store.Open(d.t.Context(), filepath.Join(d.state, "atoll.db"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	d.given["crowd"] = d.token(access.Spec{Scope: access.Run, Account: "crowd", Name: "crowd"})
	d.given["long"], d.given["wide"] = "run-00000000000000000000000001", "run-00000000000000000000000002"
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
	for _, statement := range []struct {
		text string
		args []any
	}{
		{numbers + `INSERT INTO runs SELECT printf('run-%026d', i), 'crowd', variant, request, step, json_set(receipt, '$.id', printf('run-%026d', i), '$.account', 'crowd'), created_at_ms - i * 60000, changed_at_ms FROM runs, n WHERE id = ?`, []any{10_000, d.given["pushed"]}},
		{numbers + `INSERT INTO sessions SELECT 'crowd', printf('agent:main:crowd-%d', i), agent, printf('crowd-%d', i), '', json_set(entry, '$.key', printf('agent:main:crowd-%d', i), '$.account', 'crowd'), created_at_ms, updated_at_ms - i * 60000 FROM sessions, n WHERE key = ?`, []any{10_000, d.given["session"]}},
		{numbers + `INSERT INTO run_events SELECT ?, i, 0, json_object('seq', i, 'at', '2026-01-01T00:00:00Z', 'type', 'log', 'text', printf('line %d', i)) FROM n`, []any{100_000, d.given["long"]}},
		{`UPDATE runs SET receipt = json_set(receipt, '$.text', ?) WHERE id = ?`, []any{strings.Repeat("wide ", 2<<20), d.given["wide"]}},
	} {
		if _, err := db.ExecContext(d.t.Context(), statement.text, statement.args...); err != nil {
			d.t.Fatal(err)
		}
	}
}
