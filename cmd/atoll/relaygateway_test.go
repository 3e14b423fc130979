//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// clawService is a service whose port speaks as a gateway of OpenClaw does, and
// whose agent works in the container, where its instructions say.
type clawService struct {
	*service
	work  func(p *protocol.AgentParams) // what the agent does
	asked chan string                   // the instructions of every task
}

func (c *clawService) listen() (url string) {
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	c.t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http", "ws", 1)
}

func (c *clawService) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := protocol.Accept(w, r, protocol.AcceptOptions{MaxPayload: protocol.MaxPayload})
	if err != nil {
		return
	}
	defer conn.Drop()
	ctx := context.WithoutCancel(r.Context())
	_ = conn.Write(ctx, []byte(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`))
	for {
		data, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var q protocol.Request
		if err := json.Unmarshal(data, &q); err != nil {
			c.t.Error(err)
		}
		for _, payload := range c.answers(&q) {
			text, err := json.Marshal(map[string]any{"type": "res", "id": q.ID, "ok": true, "payload": payload})
			if err != nil {
				c.t.Error(err)
			}
			_ = conn.Write(ctx, text) // the client may be gone
		}
	}
}

// answers are the payloads of a call's responses: a task has two.
func (c *clawService) answers(q *protocol.Request) []any {
	var p struct{ Key, Model, RunID string }
	_ = json.Unmarshal(q.Params, &p) // those of other methods have other members
	switch q.Method {
	case "connect":
		return []any{map[string]any{
			"type": "hello-ok", "protocol": 4, "server": map[string]any{"bootId": "one"}, "features": map[string]any{"methods": []string{"agent", "agent.wait", "sessions.patch", "chat.abort"}},
			"auth": map[string]any{"scopes": protocol.DefaultScopes()}, "policy": map[string]any{"tickIntervalMs": 30000},
		}}
	case "sessions.patch":
		provider, model, _ := strings.Cut(p.Model, "/")
		return []any{map[string]any{"ok": true, "key": p.Key, "entry": map[string]any{"providerOverride": provider, "modelOverride": model}}}
	case "agent":
		var a protocol.AgentParams
		if err := json.Unmarshal(q.Params, &a); err != nil {
			c.t.Error(err)
		}
		c.asked <- a.SystemPrompt
		c.work(&a)
		return []any{map[string]any{"runId": a.IdempotencyKey, "status": "accepted"}, map[string]any{"runId": a.IdempotencyKey, "status": "ok", "result": map[string]any{
			"payloads": []any{map[string]any{"text": "done"}}, "meta": map[string]any{"durationMs": 1, "agentMeta": map[string]any{"model": "m"}}}}}
	case "agent.wait":
		return []any{map[string]any{"runId": p.RunID, "status": "error", "error": "aborted"}}
	}
	return []any{map[string]any{"ok": true}}
}

func newClawService(t *testing.T, d *relayDemo) *clawService {
	t.Helper()
	c := &clawService{service: newService(t), asked: make(chan string, 10)}
	c.work = func(p *protocol.AgentParams) {
		c.sh("cd /workspace/wt/gw && git branch --show-current && echo " + p.IdempotencyKey + " > " + p.IdempotencyKey +
			" && git add -A && git commit -qm " + p.IdempotencyKey)
	}
	d.edit(func(config map[string]any) {
		config["relay"].(map[string]any)["container"] = c.name
		config["runs"] = map[string]any{"openclaw": map[string]any{"mode": "gateway", "gateway": map[string]any{"url": c.listen(), "token": map[string]any{"env": "GATEWAY_TOKEN"}}}}
	})
	d.env = append(d.env, "DOCKER_HOST="+c.host, "GATEWAY_TOKEN=t")
	d.atoll(t.Context(), "openclaw", "config", "--dir", d.dir, "--slots", "2")
	return c
}

// edit changes the configuration of the demonstration.
func (d *relayDemo) edit(change func(map[string]any)) {
	d.t.Helper()
	path := filepath.Join(d.dir, "atoll.json5")
	text, err := os.ReadFile(path)
	config := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	change(config)
	if err == nil {
		text, err = json.Marshal(config)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *relayDemo) atGateway(ctx context.Context, id string) string {
	return d.atoll(ctx, "runs", "start", "--variant", "sandbox:openclaw", "-m", "do it", "--run-id", id, "--branch", "gw")
}

// TestRunAtAGatewayCommits: runs at a gateway whose container Atoll did not make.
// Each is given its branch there, told where it is, and its commits are taken when
// it has ended; the volume stays, and the next run on the branch goes on from what
// was pushed. No credential is ever inside.
//
// Seen to fail without finishAtGateway.
func TestRunAtAGatewayCommits(t *testing.T) {
	d := newRelayDemo(t)
	c, ctx := newClawService(t, d), t.Context()
	if out := d.atGateway(ctx, "g1"); !strings.Contains(out, "relay: https://github.example.com/org/project/pull/1") {
		t.Errorf("the run says\n%s", out)
	}
	if told := <-c.asked; !strings.Contains(told, "/workspace/wt/gw") || trace([]byte(told)) != "" {
		t.Errorf("the agent was told %q", told)
	}
	c.sh("echo left > /workspace/wt/gw/dirty; echo kept > /workspace/kept")
	d.atGateway(ctx, "g2")
	if got := d.server.Git(t, "org/project", "log", "--reverse", "--format=%an:%s", "main..sandbox/gw"); got != "Atoll:g1\nAtoll:g2" {
		t.Errorf("the branch has %s", got)
	}
	if got := c.sh("ls /workspace/wt/gw; cat /workspace/kept; git -C /workspace/wt/gw stash list | wc -l"); got != "README.md\ng1\ng2\nkept\n1" {
		t.Errorf("the volume has %s", got)
	}
	if got := c.sh("ls -A /workspace | grep '^.atoll-'; grep -rasc 'ghp_canar[y]' /workspace | grep -v ':0$'; env | grep canar; true"); got != "" {
		t.Errorf("left in the container: %s", got)
	}
	d.searchFiles(filepath.Join(d.dir, "state"))
}

// A run that failed there, and one whose process was killed, leave their commits
// to a person; nobody else gets the branch before they are taken.
func TestRunAtAGatewayThatIsKilled(t *testing.T) {
	d := newRelayDemo(t)
	c, ctx := newClawService(t, d), t.Context()
	commit, stay := c.work, make(chan struct{})
	t.Cleanup(func() { close(stay) })
	c.work = func(p *protocol.AgentParams) {
		commit(p)
		if p.IdempotencyKey == "g1" {
			<-stay
		}
	}
	killed := d.command(ctx, "runs", "start", "--variant", "sandbox:openclaw", "-m", "do it", "--run-id", "g1", "--branch", "gw")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	<-c.asked
	d.until("it has committed", func() bool { return strings.Contains(c.sh("git -C /workspace/wt/gw log --format=%s"), "g1") })
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if out := d.atoll(ctx, "runs", "list"); !strings.Contains(out, "run g1 was left by a process that ended") {
		t.Errorf("the next process says\n%s", out)
	}
	if out := d.atoll(ctx, "relay", "status", "g1"); !strings.Contains(out, "kept and not pushed") || len(d.hub.Pulls()) != 0 {
		t.Errorf("%s, %v", out, d.hub.Pulls())
	}
	d.atoll(ctx, "relay", "push", "g1")
	d.atGateway(ctx, "g2")
	if got := d.server.Git(t, "org/project", "log", "--reverse", "--format=%s", "main..sandbox/gw"); got != "g1\ng2" {
		t.Errorf("the branch has %s", got)
	}
}
