package hostprogram

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/preset"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestInterpreterOf(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"#!/usr/bin/env node\n": "node", "#!/usr/bin/env -S node --x\n": "node", "#!/bin/sh\n": "", "\x7fELF": "", "#!/usr/bin/env ../node\n": "", "": "",
	} {
		file := filepath.Join(dir, "program")
		write(t, file, text)
		if got := interpreterOf(file); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packages, node := filepath.Join(home, "lib/node_modules"), filepath.Join(home, "node/node")
	write(t, filepath.Join(packages, "one/cli.js"), "#!/usr/bin/env node\n")
	write(t, node, "")
	write(t, filepath.Join(home, "project/bin/one"), "")
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(packages, "one/cli.js"), filepath.Join(home, "bin/one")); err != nil {
		t.Fatal(err)
	}
	s := Search{Path: filepath.Join(home, "project/bin") + ":relative:" + filepath.Join(home, "bin") + ":" + filepath.Join(home, "node"), Not: filepath.Join(home, "project")}
	one := &preset.Preset{Program: "one", NPM: &preset.NPM{Package: "one"}}
	found, ok := s.Find(one)
	if !ok || found.Path != filepath.Join(packages, "one/cli.js") || !slices.Equal(found.Dirs, []string{filepath.Dir(node)}) {
		t.Errorf("found %+v, %v", found, ok)
	}
	if shown := s.Shown([]*preset.Preset{one, one, {Program: "absent", NPM: &preset.NPM{}}, {Program: "node"}}); !slices.Equal(shown, []string{packages, node}) {
		t.Errorf("shown: %q", shown)
	}
	if err := os.Remove(node); err != nil {
		t.Fatal(err)
	}
	if found, ok := s.Find(one); ok {
		t.Errorf("found without its interpreter: %+v", found)
	}
}
