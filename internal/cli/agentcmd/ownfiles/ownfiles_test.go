package ownfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	write(t, filepath.Join(home, "dotfiles/skills/a/large.md"), strings.Repeat("x", maxFile+1))
	if err := errors.Join(os.Symlink("dotfiles/skills", filepath.Join(home, "skills")), os.Symlink("/etc/hostname", filepath.Join(home, "dotfiles/skills/a/link.md"))); err != nil {
		t.Fatal(err)
	}
	var own Files
	if err := errors.Join(own.Add(filepath.Join(home, "skills"), ".x/skills"), own.Add(filepath.Join(home, "missing"), "y")); err != nil {
		t.Fatal(err)
	}
	if len(own.Found) != 1 || string(own.Found[".x/skills/a/SKILL.md"]) != "a skill" || own.Left != 4 {
		t.Errorf("%v, %d left", own.Found, own.Left)
	}
}

func TestOwnFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxFiles + 3 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "x")
	}
	var own Files
	if err := own.Add(dir, "d"); err != nil || len(own.Found) != maxFiles || own.Left != 3 {
		t.Errorf("%d files, %d left, %v", len(own.Found), own.Left, err)
	}
	large := Files{bytes: maxBytes - 1}
	write(t, filepath.Join(dir, "0"), "xx")
	if err := large.Add(filepath.Join(dir, "0"), "f"); err != nil || len(large.Found) != 0 || large.Left != 1 {
		t.Errorf("%v, %d left, %v", large.Found, large.Left, err)
	}
}
