package agentcmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestOwnFiles(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "dotfiles/skills/a/SKILL.md"), "a skill")
	write(t, filepath.Join(home, "dotfiles/skills/a/.env"), "KEY=1")
	write(t, filepath.Join(home, "dotfiles/skills/a/.git/config"), "x")
	write(t, filepath.Join(home, "dotfiles/skills/a/large.md"), strings.Repeat("x", maxOwnFile+1))
	if err := errors.Join(os.Symlink("dotfiles/skills", filepath.Join(home, "skills")), os.Symlink("/etc/hostname", filepath.Join(home, "dotfiles/skills/a/link.md"))); err != nil {
		t.Fatal(err)
	}
	own := ownFiles{files: map[string][]byte{}}
	if err := errors.Join(own.add(filepath.Join(home, "skills"), ".x/skills"), own.add(filepath.Join(home, "missing"), "y")); err != nil {
		t.Fatal(err)
	}
	if len(own.files) != 1 || string(own.files[".x/skills/a/SKILL.md"]) != "a skill" || own.left != 4 {
		t.Errorf("%v, %d left", own.files, own.left)
	}
}

func TestOwnFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxOwnFiles + 3 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "x")
	}
	own := ownFiles{files: map[string][]byte{}}
	if err := own.add(dir, "d"); err != nil || len(own.files) != maxOwnFiles || own.left != 3 {
		t.Errorf("%d files, %d left, %v", len(own.files), own.left, err)
	}
	large := ownFiles{files: map[string][]byte{}, bytes: maxOwnBytes - 1}
	write(t, filepath.Join(dir, "0"), "xx")
	if err := large.add(filepath.Join(dir, "0"), "f"); err != nil || len(large.files) != 0 || large.left != 1 {
		t.Errorf("%v, %d left, %v", large.files, large.left, err)
	}
}

func TestServersOfTools(t *testing.T) {
	text := `{"mcpServers": {"b": {"url": "x"}}, "other": 1, "projects": {"/p": {"mcpServers": {"a": {}}}, "/q": {"mcpServers": {"c": {}}}}}`
	if got := serversOfJSON([]byte(text), "/p"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("JSON: %q", got)
	}
	if got := serversOfJSON([]byte("{"), "/p"); got != nil {
		t.Errorf("damaged: %q", got)
	}
	toml := "[mcp_servers.one]\ncommand = \"x\"\n [mcp_servers.\"two\".env]\n[other]\n[mcp_servers.open\n"
	if got := serversOfTOML(toml); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("TOML: %q", got)
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
