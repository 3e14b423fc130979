package config_test

import (
	stdcmp "cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

// agentOf parses a file and returns its default agent.
func agentOf(t *testing.T, src string) *config.Agent {
	t.Helper()
	c, err := config.Parse("/project/atoll.json5", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAllowRule(t *testing.T) {
	e := agentOf(t, `{}`).Sandbox.Egress
	for _, text := range []string{
		"Example.com.", "*.example.com", "git.example.com:22", "preset:npm", ` { host: "api.example.com", methods: ["GET"], } `,
	} {
		if err := e.AllowRule(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	var got []string
	for _, r := range e.Allow {
		got = append(got, r.String())
		if r.At.Source != config.FromFlag {
			t.Errorf("%s is from %q", r, r.At.Source)
		}
	}
	want := []string{"example.com", "*.example.com", "git.example.com:22", "preset:npm", `{ host: "api.example.com", methods: ["GET"] }`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (- want, + got):\n%s", diff)
	}
	if e.Mode != config.EgressEnforce {
		t.Errorf("mode %s", e.Mode)
	}
}

func TestAllowRuleRefuses(t *testing.T) {
	for text, hint := range map[string]string{
		"*":                     `mode: "public"`,
		"*.com":                 "*.example.com",
		"10.0.0.1":              "private",
		"bücher.example":        "xn--",
		"preset:npn":            `did you mean "npm"?`,
		"https://example.com/x": `write "example.com"`,
		"{ host: 'a.example.com' }, 'b.example.com'":  "",
		"{ host: 'a.example.com' }], deny: ['x.y'":    "",
		"{ host: 'a.example.com', ports: [0] }":       "",
		"{ host: 'a.example.com', methods: ['get'] }": "GET",
		"{": "", "": "", "\x00": "", `a", "b.example.com`: "",
	} {
		e := config.Egress{Mode: config.EgressOff}
		err := e.AllowRule(text)
		if err == nil || !strings.Contains(errhint.Of(err), hint) {
			t.Errorf("%q: %v (hint: %s)", text, err, errhint.Of(err))
		}
		if len(e.Allow) != 0 || e.Mode != config.EgressOff {
			t.Errorf("%q changed %+v", text, e)
		}
	}
}

// TestAllowRuleKeepsTheConfiguration adds a rule to a copy: the agent's own
// list stays.
func TestAllowRuleKeepsTheConfiguration(t *testing.T) {
	a := agentOf(t, `{ agents: { defaults: { sandbox: { egress: { mode: "ask", allow: ["a.example.com"] } } } } }`)
	one, two := a.Sandbox.Egress, a.Sandbox.Egress
	for e, text := range map[*config.Egress]string{&one: "one.example.com", &two: "two.example.com"} {
		if err := e.AllowRule(text); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.Sandbox.Egress.Allow) != 1 || one.Allow[1].Host != "one.example.com" || two.Allow[1].Host != "two.example.com" || one.Mode != config.EgressAsk {
		t.Errorf("%+v, %+v, %+v", a.Sandbox.Egress.Allow, one, two)
	}
}

func TestRulesOfASharedSandboxAreTheCommonOnes(t *testing.T) {
	a := agentOf(t, `{ agents: {
		defaults: { sandbox: { scope: "shared", egress: { mode: "enforce", allow: ["common.example.com"] } } },
		list: [{ id: "main", sandbox: { egress: { mode: "public" } } }],
	} }`)
	if e := a.Sandbox.Egress; e.Mode != config.EgressEnforce || len(e.Allow) != 1 {
		t.Errorf("%+v", e)
	}
}

// TestOffThatIsWrittenIsNoDefault has files that say off, of which no caller may
// make its own default: a project's file that narrows among them.
func TestOffThatIsWrittenIsNoDefault(t *testing.T) {
	const off, enforce, empty = `{ agents: { defaults: { sandbox: { egress: { mode: "off" } } } } }`, `{ agents: { defaults: { sandbox: { egress: { mode: "enforce" } } } } }`, `{}`
	for _, c := range []struct {
		own, project string
		mode         config.EgressMode
		byDefault    bool
	}{
		{empty, "", config.EgressOff, true},
		{off, "", config.EgressOff, false},
		{enforce, "", config.EgressEnforce, false},
		{empty, empty, config.EgressOff, true},
		{empty, off, config.EgressOff, false},
		{empty, enforce, config.EgressOff, false},
		{enforce, off, config.EgressOff, false},
		{off, enforce, config.EgressOff, false},
	} {
		own, err := config.Parse("/home/user/.atoll/atoll.json5", []byte(c.own), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		if c.project != "" {
			p, err := config.ParseProject("/project/atoll.json5", []byte(c.project), testEnv())
			if err != nil {
				t.Fatal(err)
			}
			own = own.Narrow(p)
		}
		a, err := own.Resolve("")
		if err != nil {
			t.Fatal(err)
		}
		if e := a.Sandbox.Egress; e.Mode != c.mode || e.ModeIsDefault() != c.byDefault {
			t.Errorf("own %s, project's %s: %s, by default: %v", c.own, c.project, e.Mode, e.ModeIsDefault())
		}
	}
}

func TestModelHostsOfProviders(t *testing.T) {
	a := agentOf(t, `{ llm: { providers: { own: { kind: "openai", url: "https://Models.Example.com:8443", keys: [{ env: "K" }] } } } }`)
	if diff := cmp.Diff([]string{"models.example.com"}, a.Sandbox.Egress.ModelHosts); diff != "" {
		t.Errorf("hosts (- want, + got):\n%s", diff)
	}
}

// TestSecretsOfOpenClawAreItsOwn reads a file whose part of this name means
// something else.
func TestSecretsOfOpenClawAreItsOwn(t *testing.T) {
	c, err := config.Parse("/home/user/.openclaw/openclaw.json", []byte(`{ secrets: { providers: { default: { source: "env" } } } }`), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := c.Secrets()
	if err != nil || len(secrets) != 0 || len(c.Ignored()) != 1 {
		t.Errorf("%v, %v, %v", secrets, c.Ignored(), err)
	}
}

// TestCommandsOfSecretsAreNamed wants the program of a secret among those that
// trust in a project's file remembers.
func TestCommandsOfSecretsAreNamed(t *testing.T) {
	c, err := config.Parse("/project/atoll.json5", []byte(`{ secrets: { a: { from: [{ command: ["./print", "x"] }, { file: "f" }], hosts: ["a.example.com"] } } }`), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Named{
		{Place: "secrets.a.from[0].command", Command: []string{"./print", "x"}},
		{Place: "secrets.a.from[1].file", Path: "/project/f"},
	}
	if diff := cmp.Diff(want, c.Named()); diff != "" {
		t.Errorf("named (- want, + got):\n%s", diff)
	}
}

func FuzzAllowRule(f *testing.F) {
	for _, seed := range []string{"example.com", "*.example.com:443", "preset:npm", `{ host: "a.example.com", git: "read" }`, "{", `"`, "a, b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := config.Egress{Mode: config.EgressOff}
		if e.AllowRule(text) != nil {
			return
		}
		if len(e.Allow) != 1 {
			t.Fatalf("%q is %d rules", text, len(e.Allow))
		}
		again := config.Egress{Mode: config.EgressOff}
		if err := again.AllowRule(e.Allow[0].String()); err != nil {
			t.Fatalf("%q is written as %q: %v", text, e.Allow[0], err)
		}
		if diff := cmp.Diff(e.Allow, again.Allow); diff != "" {
			t.Errorf("%q is written as %q (- first, + again):\n%s", text, e.Allow[0], diff)
		}
	})
}

// What E2B's clients reach takes the place of an agent's own egress, with its origins, and
// is nothing where no file says so.
func TestUseE2BEgress(t *testing.T) {
	const own = `{agents: {defaults: {sandbox: {egress: {mode: "public", services: [5432], deny: ["a.example"]}}}}`
	for src, want := range map[string]string{
		own + "}": "off [] [] [] default",
		own + ",\ne2b: {egress: {mode: 'enforce', allow: ['pypi.org'], deny: ['b.example']}}}": "enforce [pypi.org] [b.example] [] e2b.egress.mode",
	} {
		c, err := config.Parse("/project/atoll.json5", []byte(src), testEnv())
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Resolve(config.APIAgent)
		if err == nil {
			err = c.UseE2BEgress(a)
		}
		e := &a.Sandbox.Egress
		at := a.Origins["sandbox.egress.mode"]
		if got := fmt.Sprint(e.Mode, e.Allow, e.Deny, e.Services, stdcmp.Or(at.Path, at.Source)); err != nil || strings.ReplaceAll(want, " ", "") != strings.ReplaceAll(got, " ", "") {
			t.Errorf("%s: %s, %v", src, got, err)
		}
		if len(e.Allow) > 0 && (e.Allow[0].At.Path != "e2b.egress.allow[0]" || e.Allow[0].At.Line != 2) {
			t.Errorf("%+v", e.Allow[0].At)
		}
	}
}
