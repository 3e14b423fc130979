package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Source is where a secret is read from.
type Source interface {
	// Read returns the secret as it is now.
	Read(ctx context.Context) (Value, error)
	// Name names the source in messages.
	Name() string
}

// The limits of what a source gives.
const (
	MaxSize        = 16 << 10 // bytes of a secret
	CommandTimeout = 30 * time.Second
)

// Literal is a secret that the configuration holds itself.
type Literal struct{ Value Value }

// Name names the source.
func (Literal) Name() string { return "the configuration file" }

// Read returns the secret.
func (l Literal) Read(context.Context) (Value, error) {
	return Parse(l.Name(), []byte(l.Value.Reveal()))
}

// Env is a variable of this process's environment.
type Env struct {
	Variable string
	Getenv   func(string) string
}

// Name names the source.
func (e Env) Name() string { return "variable " + e.Variable }

// Read returns the variable's value.
func (e Env) Read(context.Context) (Value, error) {
	text := e.Getenv(e.Variable)
	if text == "" {
		return Value{}, errhint.With(absent(e.Name(), "is not set"), "export it, or name another source of the key in the configuration")
	}
	return Parse(e.Name(), []byte(text))
}

// File is a file that no other user can read.
type File struct{ Path string }

// Name names the source.
func (f File) Name() string { return "file " + f.Path }

// Read returns the file's content without white space around it.
func (f File) Read(context.Context) (Value, error) {
	content, err := ReadPrivate(f.Path)
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	defer clear(content)
	return Parse(f.Name(), content)
}

// ReadPrivate reads a small file whose owner is this user or root, and that no one
// else can read or write. The checks are made on the open file.
func ReadPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a named pipe must not hold us up
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, errhint.With(fmt.Errorf("mode %04o lets others at it", mode), "run: chmod 600 "+path)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() && owner != 0 {
		return nil, errhint.With(fmt.Errorf("it belongs to user %d", owner), "let the user that runs atoll own it")
	}
	return readLimited(f)
}

// readAny reads a small file of any owner.
func readAny(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readLimited(f)
}

// bare is an error without the path, which the caller names.
func bare(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func readLimited(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(content) > MaxSize {
		clear(content)
		return nil, fmt.Errorf("more than %d bytes", MaxSize)
	}
	return content, nil
}

// Command is a program whose output is the secret: a password manager.
type Command struct {
	Argv    []string
	Timeout time.Duration // zero is CommandTimeout
}

// Name names the source. Arguments are left out: people put secrets there.
func (c Command) Name() string {
	if len(c.Argv) == 0 {
		return "no command"
	}
	return "command " + c.Argv[0]
}

// Read runs the program and returns what it printed. Its error output is
// discarded: it may hold the secret.
func (c Command) Read(ctx context.Context) (Value, error) {
	if len(c.Argv) == 0 {
		return Value{}, errors.New("no command is given that prints the key")
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = CommandTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := &limitedBuffer{}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all it started
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	defer func() { clear(out.content) }()
	switch {
	case context.Cause(ctx) != nil:
		return Value{}, fmt.Errorf("%s: no answer within %v", c.Name(), timeout)
	case out.full:
		return Value{}, fmt.Errorf("%s: more than %d bytes of output", c.Name(), MaxSize)
	case err != nil:
		return Value{}, fmt.Errorf("%s: %w", c.Name(), bare(err))
	}
	return Parse(c.Name(), out.content)
}

// limitedBuffer takes no more than a secret's size and ends the program then.
type limitedBuffer struct {
	content []byte
	full    bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.content)+len(p) > MaxSize {
		b.full = true
		return 0, errors.New("too much output")
	}
	b.content = append(b.content, p...)
	return len(p), nil
}

// errEmpty is a source without anything in it.
var errEmpty = errors.New("it is empty")

// Parse returns the secret that a text is, without white space around it. It refuses what
// cannot be sent in a header. The error has the name of where the text came from, and
// never the text.
func Parse(name string, content []byte) (Value, error) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return Value{}, fmt.Errorf("%s: %w", name, errEmpty)
	}
	if len(content) > MaxSize {
		return Value{}, fmt.Errorf("%s: more than %d bytes", name, MaxSize)
	}
	for _, b := range content {
		if b < 0x21 || b > 0x7e {
			return Value{}, errhint.With(fmt.Errorf("%s: it holds a byte that no key has", name), "a key is one line of visible ASCII characters without spaces")
		}
	}
	return New(string(content)), nil
}
