package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// within reports whether a path is a directory or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// inProject reports whether a path, or what it leads to, lies in a project.
func (r *reader) inProject(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(r.projects, func(dir string) bool {
		resolved, err := filepath.EvalSymlinks(dir)
		return r.liesIn(path, dir) || r.liesIn(target, dir) || err == nil && r.liesIn(target, resolved)
	})
}

// liesIn reports whether a path is a project's. The root directory is none, and
// the home directory is the person's, whatever it lies in.
func (r *reader) liesIn(path, project string) bool {
	inHome := r.home != "" && within(r.home, project) && within(path, r.home)
	return project != "/" && within(path, project) && !inHome
}

// searchPath returns the directories of PATH that are outside of projects.
func (r *reader) searchPath() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(r.getenv("PATH")) {
		if filepath.IsAbs(dir) && !strings.Contains(dir, "node_modules") && !r.inProject(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

var errSlow = errors.New("no answer")

var errMissing = errors.New("it is not installed on this host")

// program returns the path of a program outside of projects.
func (r *reader) program(name string) (string, error) {
	for _, dir := range r.searchPath() {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 && !r.inProject(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errMissing)
}

// passed are the variables of the environment that a client is given besides
// those of its own.
var passed = []string{"HOME", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}

// output runs a program in the root directory and returns what it prints.
func (r *reader) output(ctx context.Context, variables []string, name string, args ...string) (string, error) {
	path, err := r.program(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	out := &bounded{}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Env = "/", out, r.environment(variables)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all it started
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w within %v", name, errSlow, runTimeout)
	case out.full:
		return "", fmt.Errorf("%s: more than %d bytes of output", name, maxOutput)
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out.content), nil
}

// environment is what a client sees of ours.
func (r *reader) environment(variables []string) []string {
	env := []string{"PATH=" + strings.Join(r.searchPath(), string(filepath.ListSeparator)), "LC_ALL=C.UTF-8", "NO_COLOR=1"}
	for _, name := range slices.Concat(passed, variables) {
		if value := r.getenv(name); value != "" && (name == "HOME" || !r.namesProject(value)) {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// namesProject reports whether a value has the path of a project in it.
func (r *reader) namesProject(value string) bool {
	return slices.ContainsFunc(r.projects, func(dir string) bool { return dir != "/" && dir != r.home && strings.Contains(value, dir) })
}

// bounded keeps no more than maxOutput and ends the program then.
type bounded struct {
	content []byte
	full    bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.content)+len(p) > maxOutput {
		b.full = true
		return 0, errors.New("too much output")
	}
	b.content = append(b.content, p...)
	return len(p), nil
}
