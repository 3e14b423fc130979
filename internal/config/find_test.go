package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

// TestFind creates one place after the other, from the last to the first, and
// wants each new one to win.
func TestFind(t *testing.T) {
	home, cwd, state := t.TempDir(), t.TempDir(), t.TempDir()
	vars := map[string]string{}
	env := config.Environment{Getenv: func(name string) string { return vars[name] }, Home: home, Cwd: cwd}
	expect := func(path, source string) {
		t.Helper()
		got, err := config.Find(env)
		if want := (config.Location{Path: path, Source: source}); err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	create := func(elements ...string) string {
		t.Helper()
		name := filepath.Join(elements...)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}

	expect("", "")
	expect(create(home, ".openclaw/openclaw.json"), "~/.openclaw/openclaw.json")
	vars["OPENCLAW_CONFIG_PATH"] = create(home, "theirs.json")
	expect(vars["OPENCLAW_CONFIG_PATH"], "$OPENCLAW_CONFIG_PATH")
	expect(create(home, ".atoll/atoll.json5"), "$ATOLL_STATE_DIR/atoll.json5")
	vars["ATOLL_STATE_DIR"] = state
	expect(vars["OPENCLAW_CONFIG_PATH"], "$OPENCLAW_CONFIG_PATH")
	expect(create(state, "atoll.json5"), "$ATOLL_STATE_DIR/atoll.json5")
	create(cwd, "atoll.json5")
	expect(filepath.Join(state, "atoll.json5"), "$ATOLL_STATE_DIR/atoll.json5")
	vars["ATOLL_CONFIG"] = "named.json5"
	create(cwd, "named.json5")
	expect(filepath.Join(cwd, "named.json5"), "$ATOLL_CONFIG")
	env.Explicit = "~/explicit.json5"
	expect(create(home, "explicit.json5"), "--config")
}

func TestFindNamedFileMustExist(t *testing.T) {
	cwd := t.TempDir()
	if err := os.WriteFile(filepath.Join(cwd, "atoll.json5"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, env := range map[string]config.Environment{
		"--config":      {Cwd: cwd, Explicit: "missing.json5"},
		"$ATOLL_CONFIG": {Cwd: cwd, Getenv: func(string) string { return "missing.json5" }},
	} {
		_, err := config.Find(env)
		if err == nil || !strings.Contains(err.Error(), source) || errhint.Of(err) == "" {
			t.Errorf("%s: got %v", source, err)
		}
	}
}

func TestOpen(t *testing.T) {
	env := config.Environment{Home: t.TempDir(), Cwd: t.TempDir()}
	cfg, err := config.Open(env, config.Location{})
	if err != nil || cfg.Path() != "" {
		t.Fatalf("without a file: %v", err)
	}
	a, err := cfg.Resolve("")
	if err != nil || a.Sandbox.Mode != config.ModeAll {
		t.Errorf("without a file: %+v %v", a, err)
	}
	name := filepath.Join(env.Cwd, "atoll.json5")
	if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err = config.Open(env, config.Location{Path: name})
	if err != nil || cfg.Path() != name {
		t.Fatalf("with a file: %v", err)
	}
	if a, err = cfg.Resolve(""); err != nil || a.Sandbox.Mode != config.ModeOff {
		t.Errorf("an empty file leaves the mode to the built-in default: %+v %v", a, err)
	}
}

// TestWorkspacePlaces: the state directory of the program that a file belongs
// to is where workspaces without a place of their own are.
func TestWorkspacePlaces(t *testing.T) {
	vars := map[string]string{"OPENCLAW_CONFIG_PATH": "/etc/claw.json", "OPENCLAW_STATE_DIR": "/var/claw", "ATOLL_STATE_DIR": "/var/atoll"}
	env := config.Environment{Getenv: func(name string) string { return vars[name] }, Home: "/home/user", Cwd: "/project"}
	const src = `{agents:{list:[{id:"work"},{id:"main"},{id:"own",workspace:"~/own"}]}}`
	for file, state := range map[string]string{
		"/project/atoll.json5": "/var/atoll", "/x/openclaw.json": "/var/claw", "/etc/claw.json": "/var/claw",
	} {
		cfg, err := config.Parse(file, []byte(src), env)
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{
			"work": state + "/workspace", "main": state + "/workspace-main", "own": "/home/user/own",
		} {
			a, err := cfg.Resolve(id)
			if err != nil || a.Workspace != want {
				t.Errorf("%s in %s: %s, want %s (%v)", id, file, a.Workspace, want, err)
			}
			if a.Sandbox.WorkspaceRoot != "/var/atoll/sandboxes" {
				t.Errorf("%s: sandboxes are in %s", file, a.Sandbox.WorkspaceRoot)
			}
		}
	}
}
