// Package overlaystage makes directories that agents work on through overlays of
// the kernel, and runs scripts inside and on the host in turn.
package overlaystage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Stage is an installation of its own with directories.
type Stage struct {
	atoll string // the program
	top   string
}

// New makes a directory of each name, a repository with so many files; one with
// none is no repository.
func New(ctx context.Context, atoll string, dirs map[string]int) (*Stage, error) {
	top, err := os.MkdirTemp("", "atoll-overlay")
	if err != nil {
		return nil, err
	}
	s := &Stage{atoll, top}
	if err := s.fill(ctx, dirs); err != nil {
		return nil, errors.Join(err, os.RemoveAll(top))
	}
	return s, nil
}

// Close removes the sandboxes and everything that was made.
func (s *Stage) Close(ctx context.Context) error {
	_, err := s.Atoll(context.WithoutCancel(ctx), "", "sandbox", "recreate", "--all", "--force", "--discard")
	return errors.Join(err, os.RemoveAll(s.top))
}

func (s *Stage) fill(ctx context.Context, dirs map[string]int) error {
	config := `{ agents: { defaults: { sandbox: { overlay: { kind: "kernel" } } } } }`
	if err := errors.Join(os.Mkdir(s.At("home"), 0o755), os.WriteFile(s.At("atoll.json5"), []byte(config), 0o600)); err != nil {
		return err
	}
	for dir, files := range dirs {
		if err := os.Mkdir(s.At(dir), 0o755); err != nil {
			return err
		}
		if files == 0 {
			continue
		}
		if err := fillRepository(ctx, s.At(dir), files); err != nil {
			return err
		}
	}
	return nil
}

// fillRepository makes a repository with so many files, a hundred in a directory.
func fillRepository(ctx context.Context, dir string, files int) error {
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i%100)), []byte("a line\n"), 0o644); err != nil {
			return err
		}
	}
	script := `git init -q . && git add . && git -c user.name=b -c user.email=b@example.org commit -qm files && git status >/dev/null`
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git: %w: %s", err, out)
	}
	return nil
}

// At returns the path of a directory.
func (s *Stage) At(name string) string { return filepath.Join(s.top, name) }

// Atoll runs the program in a directory and returns its output.
func (s *Stage) Atoll(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.atoll, args...)
	cmd.Dir = s.At(dir)
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+s.At("state"), "ATOLL_CONFIG="+s.At("atoll.json5"), "HOME="+s.At("home"))
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("atoll %q in %s: %w: %s", args, dir, err, problems.String())
	}
	return string(out), nil
}

// Beside runs a script inside and on the host in turn. The first round is not
// counted. The script's own clock is used, so that calling it costs nothing. It
// returns milliseconds.
func (s *Stage) Beside(ctx context.Context, dir, hostDir string, rounds int, script string) (inside, host []float64, err error) {
	timed := "start=$(date +%s%N); " + script + "; echo $(($(date +%s%N)-start))"
	for round := range rounds + 1 {
		n := strconv.Itoa(round)
		ours, err := s.Atoll(ctx, dir, "shell", "--", "sh", "-c", timed, "sh", n)
		if err != nil {
			return nil, nil, err
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", timed, "sh", n)
		cmd.Dir = s.At(hostDir)
		bare, err := cmd.Output()
		if err != nil {
			return nil, nil, err
		}
		one, err1 := strconv.ParseFloat(strings.TrimSpace(ours), 64)
		two, err2 := strconv.ParseFloat(strings.TrimSpace(string(bare)), 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, err
		}
		if round > 0 {
			inside, host = append(inside, one/1e6), append(host, two/1e6)
		}
	}
	return inside, host, nil
}

// CopySynced copies the files of a directory, which must be so many, and syncs each.
func CopySynced(from, to string, files int) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) != files {
		return fmt.Errorf("%d files were applied, not %d", len(entries), files)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(to, e.Name()))
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
