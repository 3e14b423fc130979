package agentcmd

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
