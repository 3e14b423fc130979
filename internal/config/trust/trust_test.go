package trust_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
)

// trusted has a person trust the project's file as it is, and wants it to count.
func (p *fixture) trusted(content string) *trust.Opened {
	p.Helper()
	p.write(content)
	r, err := trust.Examine(p.env, ".")
	p.must(err)
	p.must(r.Trust())
	o := p.open()
	if o.Found == nil || !o.Found.Trusted {
		p.Fatalf("after it was trusted: %+v", o.Found)
	}
	return o
}

// script makes an executable file in the project.
func (p *fixture) script(name, text string) {
	p.Helper()
	path := filepath.Join(p.project, name)
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	p.must(os.WriteFile(path, []byte(text), 0o700))
}

// TestTrustEndsWithAnyChange: the file itself, and everything on the host that
// it names, is what was trusted. Both the next start and a check in a process
// that runs on notice a change.
func TestTrustEndsWithAnyChange(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		change func(p *fixture)
	}{
		"the file": {`{session: {mainKey: "one"}}`, func(p *fixture) { p.write(`{session: {mainKey: "two"}}`) }},
		"one byte": {`{session: {mainKey: "one"}}`, func(p *fixture) { p.write(`{session: {mainKey: "one"}} `) }},
		"a program": {`{llm: {providers: {up: {kind: "openai", url: "https://models.example.org", keys: [{command: ["./key.sh"]}]}}}}`,
			func(p *fixture) { p.script("key.sh", "echo other") }},
		"an argument that is a file": {`{llm: {providers: {up: {kind: "openai", url: "https://models.example.org", keys: [{command: ["sh", "key.sh"]}]}}}}`,
			func(p *fixture) { p.script("key.sh", "echo other") }},
		"an argument that becomes a file": {`{llm: {providers: {up: {kind: "openai", url: "https://models.example.org", keys: [{command: ["sh", "later.sh"]}]}}}}`,
			func(p *fixture) { p.script("later.sh", "echo other") }},
		"a program that is found earlier in the PATH": {`{relay: {repository: "https://git.example.org/a/b", token: {command: ["key-tool"]}}}`,
			func(p *fixture) { p.script("early/key-tool", "echo other") }},
		"a seccomp profile": {`{agents: {defaults: {sandbox: {docker: {seccompProfile: "profile.json"}}}}}`,
			func(p *fixture) { p.script("profile.json", "{}") }},
		"a bind source that becomes a link": {`{agents: {defaults: {sandbox: {docker: {binds: ["@PROJECT@/data:/data"], dangerouslyAllowExternalBindSources: true}}}}}`,
			func(p *fixture) {
				p.must(os.Remove(filepath.Join(p.project, "data")))
				p.must(os.Symlink(p.dir, filepath.Join(p.project, "data")))
			}},
		"a workspace that becomes a link": {`{agents: {defaults: {workspace: "./data"}}}`, func(p *fixture) {
			p.must(os.Remove(filepath.Join(p.project, "data")))
			p.must(os.Symlink(p.dir, filepath.Join(p.project, "data")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			t.Setenv("PATH", filepath.Join(p.project, "early")+":"+filepath.Join(p.project, "late")+":"+os.Getenv("PATH"))
			p.script("key.sh", "echo key")
			p.script("late/key-tool", "echo key")
			p.script("profile.json", `{"defaultAction": "SCMP_ACT_ERRNO"}`)
			p.must(os.Mkdir(filepath.Join(p.project, "data"), 0o700))
			before := p.trusted(strings.ReplaceAll(c.config, "@PROJECT@", p.project))
			p.must(before.Found.Check())
			c.change(p)
			if o := p.open(); o.Found == nil || o.Found.Trusted {
				t.Errorf("after the change: %+v", o.Found)
			}
			if before.Found.Check() == nil {
				t.Error("a process that runs on did not notice")
			}
		})
	}
}

// TestTrustKeepsWhatDoesNotMatter: files that the trusted one does not name may
// change, and a workspace may come to be.
func TestTrustKeepsWhatDoesNotMatter(t *testing.T) {
	p := newPlace(t)
	p.trusted(`{agents: {defaults: {workspace: "./new", sandbox: {mode: "all"}}}}`)
	p.must(os.Mkdir(filepath.Join(p.project, "new"), 0o700))
	p.script("AGENTS.md", "do as you like")
	if o := p.open(); !o.Found.Trusted || o.Location.Source != trust.Source {
		t.Errorf("%+v", o.Found)
	}
}

// TestDecisionsArePrivate: what is remembered is for the person only, and a
// record that was changed by hand counts for nothing.
func TestDecisionsArePrivate(t *testing.T) {
	p := newPlace(t)
	p.trusted(`{session: {mainKey: "one"}}`)
	dir := filepath.Join(p.state, "trust")
	info, err := os.Stat(dir)
	p.must(err)
	records, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(records) != 1 || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v, %v", info.Mode(), records, err)
	}
	if info, err = os.Stat(records[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	p.must(os.WriteFile(records[0], []byte(`{"path": "x", "sha256": "0", "content": "1"}`), 0o600))
	if o := p.open(); o.Found.Trusted {
		t.Error("a broken record is trusted")
	}
	path, known, err := trust.Forget(p.env, p.project)
	if err != nil || !known || filepath.Base(path) != trust.FileName {
		t.Errorf("forgot %s: %v, %v", path, known, err)
	}
}

// TestReviewedContentIsTrusted: what changes while the person reads is not.
func TestReviewedContentIsTrusted(t *testing.T) {
	p := newPlace(t)
	p.write(`{session: {mainKey: "shown"}}`)
	r, err := trust.Examine(p.env, p.project)
	p.must(err)
	p.write(`{session: {mainKey: "swapped"}}`)
	p.must(r.Trust())
	if o := p.open(); o.Found.Trusted || o.Config.Session() != config.Default(p.env).Session() {
		t.Errorf("%+v, %+v", o.Found, o.Config.Session())
	}
}

// TestWhatCannotBeTrusted: a person who says yes does not get these trusted
// either.
func TestWhatCannotBeTrusted(t *testing.T) {
	command := `{llm: {providers: {up: {kind: "openai", url: "https://models.example.org", keys: [{command: ["node", "tool"]}]}}}}`
	for name, c := range map[string]struct {
		make func(p *fixture)
		why  string
	}{
		"a file that all can write": {func(p *fixture) {
			p.write(evil)
			p.must(os.Chmod(filepath.Join(p.project, trust.FileName), 0o666))
		}, "mode 0666"},
		"a private copy": {func(p *fixture) {
			p.env.Cwd = filepath.Join(p.state, "sandboxes", "agent-main")
			p.must(os.MkdirAll(p.env.Cwd, 0o700))
			p.write(evil)
		}, "where sandboxes write"},
		"a directory of programs": {func(p *fixture) {
			p.write(command)
			p.must(os.Mkdir(filepath.Join(p.project, "tool"), 0o700))
		}, "whose content cannot be remembered"},
		"a program that is too large": {func(p *fixture) {
			p.write(command)
			p.script("tool", "")
			p.must(os.Truncate(filepath.Join(p.project, "tool"), 64<<20+1))
		}, "more than 67108864 bytes"},
		"no configuration": {func(p *fixture) { p.write("{") }, "atoll.json5:1"},
		"nothing":          {func(*fixture) {}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.make(p)
			if _, err := trust.Examine(p.env, "."); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
}
