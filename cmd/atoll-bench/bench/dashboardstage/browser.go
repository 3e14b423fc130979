package dashboardstage

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

//go:embed pages.mjs
var pagesProgram []byte

const chromium = "/usr/lib/chromium/chromium-headless-shell"

// looker is a process that looks at the pages with Playwright.
type looker struct {
	cmd   *exec.Cmd
	tell  io.WriteCloser
	hears *bufio.Scanner
	dir   string
}

// answer is what the process measured in a step.
type answer struct {
	Ready, Begun bool
	Scripts      float64
	Requests     float64
	Bytes        float64
	Rows, Listed float64
	Busy         float64
	Delays       []float64
}

// startLooker starts it, logged in with a code.
func startLooker(ctx context.Context, base, code string) (*looker, error) {
	out, err := exec.CommandContext(ctx, "scripts/sdks.sh", "dir", "dashboard").Output()
	if err != nil {
		return nil, errhint.With(fmt.Errorf("scripts/sdks.sh: %w", err), "run this in the repository")
	}
	l := &looker{}
	if l.dir, err = os.MkdirTemp("", "atoll-pages"); err != nil {
		return nil, err
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	err = errors.Join(os.WriteFile(filepath.Join(l.dir, "p.mjs"), pagesProgram, 0o600), os.Symlink(modules, filepath.Join(l.dir, "node_modules")))
	if err != nil {
		return nil, err
	}
	l.cmd = exec.CommandContext(ctx, "node", "p.mjs", base, code, chromium)
	l.cmd.Dir, l.cmd.Stderr = l.dir, os.Stderr
	l.tell, err = l.cmd.StdinPipe()
	hears, errOut := l.cmd.StdoutPipe()
	if err = errors.Join(err, errOut); err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		return nil, errhint.With(err, "run scripts/sdks.sh up dashboard")
	}
	l.hears = bufio.NewScanner(hears)
	l.hears.Buffer(nil, 1<<20)
	if first, err := l.hear(); err != nil || !first.Ready {
		return nil, errors.Join(err, errors.New("the browser did not begin"), l.Close())
	}
	return l, nil
}

// do has it take a step.
func (l *looker) do(step ...string) (*answer, error) {
	if err := l.say(step...); err != nil {
		return nil, err
	}
	return l.hear()
}

func (l *looker) say(step ...string) error {
	text, err := json.Marshal(step)
	if err != nil {
		return err
	}
	_, err = l.tell.Write(append(text, '\n'))
	return err
}

func (l *looker) hear() (*answer, error) {
	if !l.hears.Scan() {
		return nil, errors.New("the browser has ended")
	}
	a := &answer{}
	return a, json.Unmarshal(l.hears.Bytes(), a)
}

// Close ends it.
func (l *looker) Close() error {
	_ = l.tell.Close()
	_ = l.cmd.Wait()
	return os.RemoveAll(l.dir)
}
