//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
)

// The real Claude Code, Codex and Gemini CLI work on a real repository with no configuration: they
// change and commit, see what a person saves meanwhile, the host stays as it is, and what
// a person approves arrives.
func TestRealAgents(t *testing.T) {
	path := installedAgents(t)
	p := newAgentPlace(t, repositoryFiles)
	p.env = append(p.env, "PATH="+path)
	before := p.snapshot()
	saved := p.saveMeanwhile()
	for name, server := range map[string]*fakellm.Server{"claude": p.claude, "codex": p.codex, "gemini": p.gemini} {
		out, said := p.must("1", name, "-p", "make a file")
		if out != "it is made\n" || !strings.Contains(said, "atoll sync review") || !strings.Contains(said, "models ") {
			t.Errorf("%s: %s%s", name, out, said)
		}
		p.checkRequests(server, name)
	}
	file := <-saved
	after := p.snapshot()
	delete(before, file)
	delete(after, file)
	same(t, before, after)
	p.review()
}

// saveMeanwhile saves a file of the repository as soon as Claude Code has begun, which
// waits for it, and sends its path.
func (p *agentPlace) saveMeanwhile() (saved chan string) {
	saved = make(chan string, 1)
	go func() {
		for len(p.claude.Requests()) == 0 && p.t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		file := filepath.Join(p.repository, savedFile)
		if err := os.WriteFile(file, []byte("saved\n"), 0o600); err != nil {
			p.t.Error(err)
		}
		saved <- file
	}()
	return saved
}

// Root is not needed.
func TestRealAgentsAsUser(t *testing.T) {
	t.Setenv(agentsDirVariable, strings.SplitN(installedAgents(t), ":", 2)[0])
	asSomeone(t, "TestRealAgents", nil)
}

// checkRequests looks for the key: it is in the head of every request to the model,
// and in nothing that the agent saw.
func (p *agentPlace) checkRequests(server *fakellm.Server, name string) {
	p.t.Helper()
	want := map[string]string{"claude": "Bearer " + testToken, "codex": "Bearer " + testKey, "gemini": googleKey}[name]
	requests := server.Requests()
	if len(requests) < 2 || server.Err() != nil {
		p.t.Fatalf("%s: %d requests, %v", name, len(requests), server.Err())
	}
	for _, r := range requests {
		if keys := slices.Concat(r.Header["Authorization"], r.Header["X-Api-Key"], r.Header["X-Goog-Api-Key"]); len(keys) != 1 || keys[0] != want {
			p.t.Errorf("%s: the keys are %q", name, keys)
		}
		if name == "claude" && !strings.Contains(r.Header.Get("Anthropic-Beta"), "oauth-2025-04-20") {
			p.t.Errorf("beta %q", r.Header.Get("Anthropic-Beta"))
		}
		if body := string(r.Body); strings.Contains(body, testToken) || strings.Contains(body, testKey) || strings.Contains(body, googleKey) {
			p.t.Errorf("%s has seen a key:\n%s", name, r.Body)
		}
	}
}

// review approves what the agents changed, and undoes it.
func (p *agentPlace) review() {
	p.t.Helper()
	p.must("", "sync", "take", "agents")
	git := exec.CommandContext(p.t.Context(), "git", "log", "--format=%s", "agents")
	git.Dir = p.repository
	if out, err := git.CombinedOutput(); err != nil || string(out) != "made\nmade\nmade\nbegun\n" {
		p.t.Errorf("the branch: %s, %v", out, err)
	}
	out, _ := p.must("", "sync", "review")
	if !strings.Contains(out, "0/0.txt") {
		p.t.Errorf("nothing to review:\n%s", out)
	}
	p.must("", "sync", "approve", "0/0.txt")
	text, err := os.ReadFile(filepath.Join(p.repository, "0", "0.txt"))
	if err != nil || string(text) != "file 0\nmore\nmore\nmore\n" {
		p.t.Errorf("approved: %q, %v", text, err)
	}
	out, _ = p.must("", "sync", "history", "--json")
	_, id, _ := strings.Cut(out, `"id": "`)
	id, _, _ = strings.Cut(id, `"`)
	p.must("", "sync", "undo", id)
	if text, err := os.ReadFile(filepath.Join(p.repository, "0", "0.txt")); err != nil || string(text) != "file 0\n" {
		p.t.Errorf("undone: %q, %v", text, err)
	}
}

// At a terminal the agents begin without a question: no login, no theme, no trust.
func TestRealAgentsAtATerminal(t *testing.T) {
	p := newAgentPlace(t, 10)
	p.env = append(p.env, "PATH="+installedAgents(t))
	for name, c := range map[string]struct{ ready, quit string }{
		"claude": {"for agents", "/exit"}, "codex": {"Ask Codex", "/quit"}, "gemini": {"Type your message", "/quit"},
	} {
		s := p.screen(name)
		s.await(c.ready)
		s.enter("make a file")
		s.await("it is made")
		s.enter(c.quit)
		s.await("atoll sync review")
		if code := s.wait(); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", name, code, s.text())
		}
	}
}
