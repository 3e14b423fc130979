package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
)

// resolve resolves the agent main of a file with these two sandbox levels.
func resolve(t *testing.T, global, agent string) config.Sandbox {
	t.Helper()
	src := fmt.Sprintf(`{agents:{defaults:{sandbox:{%s}},list:[{id:"main",sandbox:{%s}}]}}`, global, agent)
	cfg, err := config.Parse("/project/atoll.json5", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a, err := cfg.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	return a.Sandbox
}

// TestMergeVectors are V10 and V16 to V20 of the compatibility list, and the
// rules beside them.
func TestMergeVectors(t *testing.T) {
	type get func(config.Sandbox) any
	scope := func(s config.Sandbox) any { return string(s.Scope) }
	env := func(s config.Sandbox) any { return s.Docker.Env }
	binds := func(s config.Sandbox) any { return s.Docker.Binds }
	browserBinds := func(s config.Sandbox) any { return s.Browser.Binds }
	prune := func(s config.Sandbox) any { return s.Prune }
	external := func(s config.Sandbox) any { return s.Docker.AllowExternalSources }
	limits := func(s config.Sandbox) any {
		values := map[string]string{}
		for name, u := range s.Docker.Ulimits {
			soft, hard, err := u.Values()
			values[name] = fmt.Sprint(soft, hard, err)
		}
		return values
	}
	tests := []struct {
		name, global, agent string
		get                 get
		want                any
	}{
		{"V10 nothing", ``, ``, scope, "agent"},
		{"V10 perSession true", `perSession:true`, ``, scope, "session"},
		{"V10 perSession false", `perSession:false`, ``, scope, "shared"},
		{"V10 scope wins", `perSession:true,scope:"agent"`, ``, scope, "agent"},
		{"V10 global scope wins over the agent's perSession", `scope:"agent"`, `perSession:true`, scope, "agent"},
		{"V16 env", `docker:{env:{LANG:"C.UTF-8",FOO:"1"}}`, `docker:{env:{FOO:"2",BAR:"3"}}`, env,
			map[string]string{"LANG": "C.UTF-8", "FOO": "2", "BAR": "3"}},
		{"V16 LANG stays with only the agent's env", ``, `docker:{env:{FOO:"2"}}`, env,
			map[string]string{"LANG": "C.UTF-8", "FOO": "2"}},
		{"V16 a global env replaces LANG", `docker:{env:{}}`, ``, env, map[string]string{}},
		{"V17 ulimits", `docker:{ulimits:{nofile:{soft:10,hard:20}}}`, `docker:{ulimits:{nproc:256}}`, limits,
			map[string]string{"nofile": "10 20 <nil>", "nproc": "256 256 <nil>"}},
		{"V17 forms", `docker:{ulimits:{nofile:{soft:1024,hard:2048},nproc:128,core:"0",cpu:"1024:2048"}}`, ``, limits,
			map[string]string{"nofile": "1024 2048 <nil>", "nproc": "128 128 <nil>", "core": "0 0 <nil>", "cpu": "1024 2048 <nil>"}},
		{"V18 binds", `docker:{binds:["/a:/a"]}`, `docker:{binds:["/b:/b"]}`, binds, []string{"/a:/a", "/b:/b"}},
		{"V18 binds, shared", `scope:"shared",docker:{binds:["/a:/a"]}`, `docker:{binds:["/b:/b"]}`, binds, []string{"/a:/a"}},
		{"no binds are unset", `docker:{binds:[]}`, ``, binds, []string(nil)},
		{"no browser binds are none", `browser:{binds:[]}`, ``, browserBinds, []string{}},
		{"V19 browser, shared", `scope:"shared",browser:{enabled:false}`, `browser:{enabled:true}`,
			func(s config.Sandbox) any { return s.Browser.Enabled }, false},
		{"V20 prune", `prune:{idleHours:24,maxAgeDays:7}`, `prune:{idleHours:0,maxAgeDays:1}`, prune,
			config.Prune{IdleHours: 0, MaxAgeDays: 1}},
		{"V20 prune, shared", `scope:"shared",prune:{idleHours:24,maxAgeDays:7}`, `prune:{idleHours:0,maxAgeDays:1}`, prune,
			config.Prune{IdleHours: 24, MaxAgeDays: 7}},
		{"an agent's false beats a global true", `docker:{dangerouslyAllowExternalBindSources:true}`,
			`docker:{dangerouslyAllowExternalBindSources:false}`, external, false},
		{"lists are replaced", `docker:{tmpfs:["/a","/b"]}`, `docker:{tmpfs:[]}`,
			func(s config.Sandbox) any { return s.Docker.Tmpfs }, []string{}},
		{"shared keeps the agent's mode", `scope:"shared",mode:"off"`, `mode:"all"`,
			func(s config.Sandbox) any { return string(s.Mode) }, "all"},
		{"shared keeps a secret out", `scope:"shared"`, `dangerouslyAllowSecretEnv:["A_TOKEN"]`,
			func(s config.Sandbox) any { return s.AllowSecretEnv }, []string(nil)},
		{"a blank browser network is the default", `browser:{network:"x"}`, `browser:{network:" "}`,
			func(s config.Sandbox) any { return s.Browser.Network }, "openclaw-sandbox-browser"},
		{"the backend in lower case", `backend:" Podman "`, ``,
			func(s config.Sandbox) any { return s.Backend }, "podman"},
		{"a setup command of lines", `docker:{setupCommand:["a","b"]}`, ``,
			func(s config.Sandbox) any { return s.Docker.SetupCommand }, "a\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.get(resolve(t, tt.global, tt.agent))); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

// TestSecurityVectors are V30 and V31, as far as the text of the file decides.
func TestSecurityVectors(t *testing.T) {
	tests := []struct {
		docker string
		ok     bool
	}{
		{`network:"host"`, false}, {`network:"HOST"`, false}, {`network:" host "`, false},
		{`network:"container:abc"`, false}, {`network:"CONTAINER:ABC"`, false},
		{`network:"container:abc",dangerouslyAllowContainerNamespaceJoin:true`, true},
		{`network:"host",dangerouslyAllowContainerNamespaceJoin:true`, false},
		{`network:"bridge"`, true}, {`network:"none"`, true}, {`network:"my-net"`, true}, {``, true},
		{`seccompProfile:"unconfined"`, false}, {`seccompProfile:"Unconfined"`, false},
		{`apparmorProfile:"unconfined"`, false}, {`apparmorProfile:" UNCONFINED"`, false},
		{`seccompProfile:"/tmp/seccomp.json"`, true}, {`apparmorProfile:"openclaw-sandbox"`, true},
	}
	for _, tt := range tests {
		t.Run(tt.docker, func(t *testing.T) {
			src := `{agents:{defaults:{sandbox:{docker:{` + tt.docker + `}}}}}`
			_, err := config.Parse("atoll.json5", []byte(src), testEnv())
			if tt.ok != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), ": Sandbox security: ") {
				t.Errorf("not marked as security: %v", err)
			}
		})
	}
}

func TestNoFile(t *testing.T) {
	cfg := config.Default(testEnv())
	a, err := cfg.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	if a.Sandbox.Mode != config.ModeAll {
		t.Errorf("mode is %s", a.Sandbox.Mode)
	}
	if want := (config.Origin{Source: "default"}); a.Origins["sandbox.mode"] != want {
		t.Errorf("origin of the mode is %+v", a.Origins["sandbox.mode"])
	}
	if a.Workspace != "/home/user/.atoll/workspace" || a.Sandbox.WorkspaceRoot != "/home/user/.atoll/sandboxes" {
		t.Errorf("directories are %s and %s", a.Workspace, a.Sandbox.WorkspaceRoot)
	}
}

// TestOriginsAreComplete wants an origin for every value of a resolved agent.
func TestOriginsAreComplete(t *testing.T) {
	for _, name := range inputs(t, "testdata/good") {
		cfg, err := parse(t, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range cfg.Agents() {
			a, err := cfg.Resolve(id)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range leaves(t, a.Sandbox) {
				if _, ok := a.Origins["sandbox."+key]; !ok {
					t.Errorf("%s, agent %s: no origin for sandbox.%s", name, id, key)
				}
			}
			for key, o := range a.Origins {
				if written := o.Source == "agent" || o.Source == "global"; written != (o.Line > 0 && o.Path != "") {
					t.Errorf("%s, agent %s: origin of %s is %+v", name, id, key, o)
				}
			}
		}
	}
}

func TestResolveUnknownAgent(t *testing.T) {
	src := `{agents:{list:[{id:"one"},{id:"Two"}]}}`
	cfg, err := config.Parse("atoll.json5", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Resolve("main"); err == nil || err.Error() != `agent "main" is not configured` {
		t.Errorf("got %v", err)
	}
	if a, err := cfg.Resolve("TWO"); err != nil || a.ID != "two" {
		t.Errorf("got %v, %v", a, err)
	}
	if a, err := cfg.Resolve(""); err != nil || a.ID != "one" || !a.Default {
		t.Errorf("the default agent is %v, %v", a, err)
	}
}

func TestResolveWithoutHome(t *testing.T) {
	cfg, err := config.Parse("atoll.json5", []byte(`{agents:{defaults:{workspace:"~/x"}}}`), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Resolve("main"); err == nil || !strings.Contains(err.Error(), "the home directory is not known") {
		t.Errorf("got %v", err)
	}
}
