// Package nodechild runs a program of Node with installed npm packages, which is told lines
// and answers lines.
package nodechild

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// maxLine bounds a line of the program.
const maxLine = 1 << 20

// Child is a running program. Close it.
type Child struct {
	cmd   *exec.Cmd
	tell  io.WriteCloser
	hears *bufio.Scanner
	dir   string
}

// Start starts a program with a set of packages that scripts/sdks.sh installs.
func Start(ctx context.Context, set string, program []byte, args ...string) (_ *Child, err error) {
	out, err := exec.CommandContext(ctx, "scripts/sdks.sh", "dir", set).Output()
	if err != nil {
		return nil, errhint.With(fmt.Errorf("scripts/sdks.sh: %w", err), "run this in the repository")
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	c := &Child{}
	if c.dir, err = os.MkdirTemp("", "atoll-node"); err != nil {
		return nil, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(c.dir, "p.mjs"), program, 0o600), os.Symlink(modules, filepath.Join(c.dir, "node_modules")))
	if err == nil {
		err = c.start(exec.CommandContext(ctx, nodeOf(modules), append([]string{"p.mjs"}, args...)...))
	}
	if err != nil {
		return nil, errhint.With(errors.Join(err, os.RemoveAll(c.dir)), "run scripts/sdks.sh up "+set)
	}
	return c, nil
}

// nodeOf returns the Node of a set of packages, or this machine's if it has none.
func nodeOf(modules string) string {
	own := filepath.Join(modules, ".bin", "node")
	if _, err := os.Stat(own); err != nil {
		return "node"
	}
	return own
}

// start starts the process with pipes to both sides.
func (c *Child) start(cmd *exec.Cmd) (err error) {
	c.cmd = cmd
	cmd.Dir, cmd.Stderr = c.dir, os.Stderr
	if c.tell, err = cmd.StdinPipe(); err != nil {
		return err
	}
	hears, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.hears = bufio.NewScanner(hears)
	c.hears.Buffer(nil, maxLine)
	return cmd.Start()
}

// Tell writes a line to the program.
func (c *Child) Tell(line string) error {
	_, err := fmt.Fprintln(c.tell, line)
	return err
}

// Hear returns the program's next line.
func (c *Child) Hear() (string, error) {
	if !c.hears.Scan() {
		return "", errors.Join(errors.New("the program has ended"), c.hears.Err())
	}
	return c.hears.Text(), nil
}

// Close ends the program.
func (c *Child) Close() error {
	_ = c.tell.Close()
	_ = c.cmd.Wait()
	return os.RemoveAll(c.dir)
}
