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

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
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
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	if err := errors.Join(r.writeLayout(), r.writeAlternates(borrow)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	return r, nil
}

// writeLayout writes the files that make a directory a bare repository, without
// starting git.
func (r *Repo) writeLayout() error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o700); err != nil {
			return err
		}
	}
	settings := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	return errors.Join(
		os.WriteFile(filepath.Join(r.dir, "config"), []byte(settings), 0o600),
		os.WriteFile(filepath.Join(r.dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600))
}

// Open returns the bare repository in dir.
func Open(dir string, limits confined.Limits) (*Repo, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, errhint.With(errors.New("git is not installed on this host"), "install it (Debian, Ubuntu: apt-get install git)")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Repo{dir: absolute, git: program, limits: limits}, nil
}

// OpenOrInit returns the bare repository in dir, and makes it if dir is empty or
// does not exist.
func OpenOrInit(dir string, limits confined.Limits) (*Repo, error) {
	r, err := Open(dir, limits)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return r, r.writeLayout()
	}
	if _, err := os.Stat(filepath.Join(r.dir, "objects")); err != nil {
		return nil, errhint.With(fmt.Errorf("%s is neither empty nor a bare repository", r.dir), "name an empty directory")
	}
	return r, nil
}

// PointHead makes HEAD name a ref, which is what clones check out.
func (r *Repo) PointHead(ref string) error {
	return os.WriteFile(filepath.Join(r.dir, "HEAD"), []byte("ref: "+ref+"\n"), 0o600)
}

// Dir is where the repository is.
func (r *Repo) Dir() string { return r.dir }

// Remove deletes the repository.
func (r *Repo) Remove() error { return os.RemoveAll(r.dir) }

func (r *Repo) writeAlternates(others []*Repo) error {
	if len(others) == 0 {
		return nil
	}
	var lines strings.Builder
	for _, other := range others {
		fmt.Fprintln(&lines, filepath.Join(other.dir, "objects"))
	}
	return os.WriteFile(filepath.Join(r.dir, "objects", "info", "alternates"), []byte(lines.String()), 0o600)
}

// Output runs git on the repository and returns its standard output.
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
