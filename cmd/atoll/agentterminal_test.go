//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// newTerminalPlace is an agentPlace whose Claude Code is a script that clears the screen,
// and that has no key.
func newTerminalPlace(t *testing.T) *agentPlace {
	t.Helper()
	p := newAgentPlace(t, 3)
	bin, home := filepath.Join(p.dir, "bin"), filepath.Join(p.dir, "home")
	for _, dir := range []string{bin, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.write(filepath.Join(bin, "claude"), "#!/bin/sh\nclear\necho READY; read line; echo got $line; exit 5\n")
	p.write(filepath.Join(home, ".claude.json"), `{"mcpServers": {"jira": {"url": "https://jira.example/mcp"}}}`)
	p.env = append(p.env, "PATH="+bin+":"+os.Getenv("PATH"), "CLAUDE_CODE_OAUTH_TOKEN=", "OPENAI_API_KEY=")
	return p
}

func (p *agentPlace) write(file, text string) {
	p.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// A person is asked for a key once; it is stored, and what was said before the program
// wiped the screen is said again at its end.
func TestFirstStartAtATerminal(t *testing.T) {
	p := newTerminalPlace(t)
	s := p.screen("claude")
	s.await("paste it (it is not shown)")
	s.send(testToken + "\r")
	s.await("READY")
	s.enter("words")
	s.await("got words")
	s.await("--egress jira.example lets it through")
	if code := s.wait(); code != 5 {
		t.Errorf("exit code %d:\n%s", code, s.text())
	}
	info, err := os.Stat(filepath.Join(p.dir, "state", "secrets", "CLAUDE_CODE_OAUTH_TOKEN"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the stored key: %v, %v", info, err)
	}
	again := p.screen("claude")
	again.await("READY")
	again.enter("more")
	if code := again.wait(); code != 5 {
		t.Errorf("exit code %d:\n%s", code, again.text())
	}
}

// Ctrl-C at a question ends the verb, and nothing is stored or built.
func TestQuestionsAreInterrupted(t *testing.T) {
	p := newTerminalPlace(t)
	for verb, question := range map[string]string{"claude": "paste it", "codex": "Build a sandbox image"} {
		s := p.screen(verb)
		s.await(question)
		s.interrupt()
		if code := s.wait(); code != 130 {
			t.Errorf("%s: exit code %d:\n%s", verb, code, s.text())
		}
	}
	if left, err := os.ReadDir(filepath.Join(p.dir, "state", "secrets")); len(left) > 0 {
		t.Errorf("stored: %v, %v", left, err)
	}
}
