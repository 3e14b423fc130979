package browserstage

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/loopback"
)

//go:embed playwright.mjs
var playwrightProgram []byte

// playwright is a process that drives browsers with Playwright.
type playwright struct {
	cmd   *exec.Cmd
	tell  io.WriteCloser
	hears *bufio.Scanner
	dir   string
}

// startPlaywright connects it to browsers, by their ports.
func startPlaywright(ctx context.Context, ports map[string]int) (*playwright, error) {
	out, err := exec.CommandContext(ctx, "scripts/sdks.sh", "dir", "browsers").Output()
	if err != nil {
		return nil, errhint.With(fmt.Errorf("scripts/sdks.sh: %w", err), "run this in the repository")
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	p := &playwright{}
	if p.dir, err = os.MkdirTemp("", "atoll-playwright"); err != nil {
		return nil, err
	}
	list, err := json.Marshal(ports)
	err = errors.Join(err, os.WriteFile(filepath.Join(p.dir, "p.mjs"), playwrightProgram, 0o600), os.Symlink(modules, filepath.Join(p.dir, "node_modules")))
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, filepath.Join(modules, ".bin", "node"), "p.mjs", string(list), pageAddress)
	p.cmd.Dir, p.cmd.Stderr = p.dir, os.Stderr
	p.tell, err = p.cmd.StdinPipe()
	hears, errOut := p.cmd.StdoutPipe()
	if err = errors.Join(err, errOut); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errhint.With(err, "run scripts/sdks.sh up browsers")
	}
	p.hears = bufio.NewScanner(hears)
	if !p.hears.Scan() || p.hears.Text() != "ready" {
		return nil, errors.Join(fmt.Errorf("Playwright did not begin: %q", p.hears.Text()), p.Close()) //nolint:staticcheck // a name
	}
	return p, nil
}

// do has it do something and returns the milliseconds that it took.
func (p *playwright) do(action, browser string) (float64, error) {
	if _, err := fmt.Fprintln(p.tell, action, browser); err != nil {
		return 0, err
	}
	if !p.hears.Scan() {
		return 0, errors.New("Playwright has ended") //nolint:staticcheck // a name
	}
	return strconv.ParseFloat(p.hears.Text(), 64)
}

// Close ends it.
func (p *playwright) Close() error {
	_ = p.tell.Close()
	_ = p.cmd.Wait()
	return os.RemoveAll(p.dir)
}

// forward has the control port of a browser in a sandbox reached on a port of the host.
func forward(ctx context.Context, b *browsers.Started) (port int, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	go func() {
		_ = loopback.Serve(ctx, l, func(ctx context.Context, _ net.Conn) (net.Conn, error) { return b.Dial(ctx) })
	}()
	return l.Addr().(*net.TCPAddr).Port, nil
}
