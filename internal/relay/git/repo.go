package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/relay/confined"
)

// MaxOutput is how much of one command's output is kept.
const MaxOutput = 64 << 20

// Repo is a bare repository of ours.
type Repo struct {
	dir    string
	git    string
	limits confined.Limits
}

// Init makes a bare repository in dir, which must not exist. Objects of the
// repositories in borrow are seen in it and not copied.
func Init(ctx context.Context, dir string, limits confined.Limits, borrow ...*Repo) (*Repo, error) {
	r, err := Open(dir, limits)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := r.Output(ctx, nil, "init", "--bare", "--quiet", "--template=", "--initial-branch=none", r.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	return r, r.borrow(borrow)
}

// Open returns the bare repository in dir.
func Open(dir string, limits confined.Limits) (*Repo, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, advice.With(errors.New("git is not installed on this host"), "install it (Debian, Ubuntu: apt-get install git)")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Repo{dir: absolute, git: program, limits: limits}, nil
}

// Dir is where the repository is.
func (r *Repo) Dir() string { return r.dir }

// Remove deletes the repository.
func (r *Repo) Remove() error { return os.RemoveAll(r.dir) }

func (r *Repo) borrow(others []*Repo) error {
	if len(others) == 0 {
		return nil
	}
	var lines strings.Builder
	for _, other := range others {
		fmt.Fprintln(&lines, filepath.Join(other.dir, "objects"))
	}
	info := filepath.Join(r.dir, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(lines.String()), 0o600)
}

// Output runs git on the repository and returns what it wrote.
func (r *Repo) Output(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: MaxOutput}
	err := r.Run(ctx, stdin, kept, args...)
	if kept.Exceeded {
		return nil, fmt.Errorf("git %s: %w (%d bytes)", args[0], confined.ErrTooMuch, MaxOutput)
	}
	return out.Bytes(), err
}

// Line runs git and returns the one line that it wrote.
func (r *Repo) Line(ctx context.Context, args ...string) (string, error) {
	out, err := r.Output(ctx, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// Run runs git on the repository, without a network.
func (r *Repo) Run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	err := confined.Run(ctx, &confined.Program{
		Path: r.git, Args: append(settings(), args...), Env: environment(r.dir),
		Stdin: stdin, Stdout: stdout, Limits: r.limits,
	})
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}
