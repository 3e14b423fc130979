package app_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/testkit/need"
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
	s.set("gateway.links.trace", "https://traces.example.org/t/{trace}")
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
	d.given["task"] = d.say("agent:main:demo", "Write main.go")
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

// say says something in a session, waits for the answer and returns the id of the task.
func (d *dashboardSite) say(key, message string) string {
	d.t.Helper()
	task, err := d.g.Send(d.t.Context(), key, &api.SendRequest{Message: message}, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.g.TaskEvents(d.t.Context(), task.ID, 0, func(api.Event) error { return nil }); err != nil {
		d.t.Fatal(err)
	}
	return task.ID
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
// with a hundred thousand events, and one whose answer is a line of ten megabytes: the
// oldest, so that pages that list the latest do not read it again and again.
func (d *dashboardSite) crowd() {
	d.t.Helper()
	d.given["crowd"] = d.token(access.Spec{Scope: access.Run, Account: "crowd", Name: "crowd"})
	d.given["long"], d.given["wide"] = "run-00000000000000000000000001", "run-00000000000000000000010000"
	d.write([]statement{
		{numbers + `INSERT INTO runs SELECT printf('run-%026d', i), 'crowd', variant, request, step, json_set(receipt, '$.id', printf('run-%026d', i), '$.account', 'crowd'), created_at_ms - i * 60000, changed_at_ms FROM runs, n WHERE id = ?`, []any{10_000, d.given["pushed"]}},
		{numbers + `INSERT INTO sessions SELECT 'crowd', printf('agent:main:crowd-%d', i), agent, printf('crowd-%d', i), '', json_set(entry, '$.key', printf('agent:main:crowd-%d', i), '$.account', 'crowd', '$.updated', strftime('%Y-%m-%dT%H:%M:%fZ', updated_at_ms / 1000.0 - i * 60, 'unixepoch')), created_at_ms, updated_at_ms - i * 60000 FROM sessions, n WHERE key = ?`, []any{10_000, d.given["session"]}},
		{numbers + `INSERT INTO run_events SELECT ?, i, 0, json_object('seq', i, 'at', '2026-01-01T00:00:00Z', 'type', 'log', 'text', printf('line %d', i)) FROM n`, []any{100_000, d.given["long"]}},
		{`UPDATE runs SET receipt = json_set(receipt, '$.text', ?) WHERE id = ?`, []any{strings.Repeat("wide ", 2<<20), d.given["wide"]}},
	})
}

// crowdedLists adds ten thousand sandboxes and questions of the same account.
func (d *dashboardSite) crowdedLists() {
	d.t.Helper()
	now := time.Now().UnixMilli()
	d.write([]statement{
		{numbers + `INSERT INTO sandboxes (container_name, session_key, created_at_ms, last_used_at_ms, image, phase, backend, agent_id, account) SELECT printf('crowd-%05d', i), printf('agent:main:crowd-%d', i), ? - i * 1000, ? - i * 1000, 'host', 'ready', 'linux', 'crowd', 'crowd' FROM n`, []any{10_000, now, now}},
		{numbers + `INSERT INTO approvals (id, kind, subject, account, agent, session, run, summary, rule, evidence, hash, created_at_ms, expires_at_ms, fallback, state) SELECT printf('crowd-%07d', i), 'sync', printf('crowd %d', i), 'crowd', 'main', '', '', printf('apply change %d', i), '', 'x', 'y', ? - i * 1000, ?, 'deny', 'open' FROM n`, []any{10_000, now, now + time.Hour.Milliseconds()}},
	})
}

// numbers begins a statement with the rows 1, 2, 3 … of the table n.
const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "

// statement is SQL with its arguments.
type statement struct {
	Text string
	Args []any
}

// writer executes statements, which it reads as JSON.
const writer = `
import json, sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=60) as db:
    for s in json.load(sys.stdin): db.execute(s["Text"], s["Args"])
`

// write changes the database beside the gateway. It is done by another program: SQLite in
// Go, with the race detector, takes most of a minute for so many rows.
func (d *dashboardSite) write(statements []statement) {
	d.t.Helper()
	need.Program(d.t, "python3", "python3")
	given, err := json.Marshal(statements)
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.CommandContext(d.t.Context(), "python3", "-c", writer, filepath.Join(d.state, "atoll.db"))
	cmd.Stdin = bytes.NewReader(given)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
}

// past adds what pictures need: a month of runs and of what they cost, one that works,
// and one of Atoll's own agent.
func (d *dashboardSite) past() {
	d.given["agentRun"] = d.run("commits", "Port the parser to Go and add a test", "go-parser")
	for _, task := range []string{"Find out why the nightly build is slow", "Read the papers about incremental parsing"} {
		if _, err := d.g.Start(d.t.Context(), &api.RunRequest{GraphID: "waits", Message: task}, ""); err != nil {
			d.t.Fatal(err)
		}
	}
	d.say("agent:main:release", "Prepare the notes of the next release")
	const copied = `INSERT INTO runs SELECT printf('run-%016d%s', i, substr(id, -10)), CASE i % 3 WHEN 0 THEN 'acme' WHEN 1 THEN 'globex' ELSE '' END, variant, request, step,
		json_set(receipt, '$.id', printf('run-%016d%s', i, substr(id, -10)), '$.account', CASE i % 3 WHEN 0 THEN 'acme' WHEN 1 THEN 'globex' ELSE '' END, '$.bill.microUsd', 1800 + (i * 7919) % 61000, '$.model', CASE i % 4 WHEN 0 THEN 'big' ELSE 'small' END,
		'$.created', strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000 - i * 4013, 'unixepoch'), '$.started', strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000 - i * 4013, 'unixepoch'), '$.ended', strftime('%Y-%m-%dT%H:%M:%SZ', created_at_ms / 1000 - i * 4013 + 20 + (i * 37) % 400, 'unixepoch')),
		created_at_ms - i * 4013000, changed_at_ms FROM runs, n WHERE id IN (?, ?) OR id = ? AND i % 5 = 0`
	d.write([]statement{{`DELETE FROM run_events WHERE run = ? AND seq > 3`, []any{d.given["agentRun"]}}})
	for i, event := range pictureEvents {
		d.write([]statement{{`INSERT INTO run_events SELECT id, ?, 0, json_set(?, '$.seq', ?, '$.at', strftime('%Y-%m-%dT%H:%M:%fZ', created_at_ms / 1000.0 + ?, 'unixepoch')) FROM runs WHERE id = ?`, []any{100 + i, event, 100 + i, 0.2 + float64(i)*0.03, d.given["agentRun"]}}})
	}
	d.write([]statement{
		{numbers + copied, []any{60, d.given["pushed"], d.given["agentRun"], d.given["failed"]}},
		{numbers + `INSERT INTO usage_calls SELECT at_ms - i * 1201000, printf('%s-%d', id, i), printf('%s-%d', run, i), session, CASE i % 3 WHEN 0 THEN 'main' WHEN 1 THEN 'reviewer' ELSE 'writer' END, account, strftime('%Y-%m-%d', (at_ms - i * 1201000) / 1000, 'unixepoch'), dialect, model_asked,
			CASE i % 5 WHEN 0 THEN 'big' WHEN 1 THEN 'thinking' ELSE 'small' END, status, input * (1 + i % 90), cached_input, cache_write, output * (1 + i % 70), reasoning, 900 + (i * 7919) % 9000 * (1 + (i / 72) % 4), NULL, priced, estimated, crashed FROM usage_calls, n WHERE id = (SELECT id FROM usage_calls LIMIT 1)`, []any{2100}},
	})
}

// pictureEvents are steps of an agent that reports its tools.
var pictureEvents = []string{
	`{"type":"text_delta","text":"The parser is recursive descent, so it moves to Go **one function at a time**. I begin with the tokens."}`,
	`{"type":"tool_call","call":{"id":"1","name":"exec","args":"{\"command\":\"grep -rn 'func Parse' src | head\"}"}}`,
	`{"type":"tool_result","call":{"id":"1","name":"exec","args":""},"tookMs":21,"text":"src/main.go:12:func Parse(text string) (*Tree, error) {"}`,
	`{"type":"tool_call","call":{"id":"2","name":"edit","args":"{\"path\":\"src/main.go\",\"oldText\":\"return nil, nil\",\"newText\":\"return parse(tokens(text))\"}"}}`,
	`{"type":"tool_result","call":{"id":"2","name":"edit","args":""},"tookMs":4,"text":"edited src/main.go: 1 replaced, first at line 13\n--- a/src/main.go\n+++ b/src/main.go\n@@ -12,3 +12,3 @@\n func Parse(text string) (*Tree, error) {\n-\treturn nil, nil\n+\treturn parse(tokens(text))\n }"}`,
	`{"type":"tool_call","call":{"id":"3","name":"exec","args":"{\"command\":\"go test ./...\"}"}}`,
	`{"type":"tool_result","call":{"id":"3","name":"exec","args":""},"tookMs":210,"text":"ok  \texample.com/project/src\t0.004s"}`,
	`{"type":"text_delta","text":"The tests pass. Two things to know:\n\n- errors carry the line now\n- ` + "`Tree.Walk`" + ` is new"}`,
}
