package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// ErrMissing means that this machine has no apt-get and no dpkg-deb.
var ErrMissing = errors.New("apt-get is not installed")

// Client asks the apt-get of this machine.
type Client struct {
	Program string // "" is apt-get
	// Sources is a file of sources to use in place of the machine's. For tests.
	Sources string
}

// Archive is one package as a file. The name has the package's version.
type Archive struct {
	File string // its name in the directory of archives
	Size int64
}

// Available returns ErrMissing if there is no apt-get to ask.
func (c *Client) Available() error {
	for _, program := range []string{c.program(), "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return errhint.With(ErrMissing, "build on a machine with Debian's package manager, or with a container engine")
		}
	}
	return nil
}

func (c *Client) program() string {
	if c.Program == "" {
		return "apt-get"
	}
	return c.Program
}

// essential selects the packages that every root needs.
const essential = "?essential"

// Resolve returns the archives of packages and of all that they need, after it has
// fetched the lists of what there is. dir is a directory of ours.
func (c *Client) Resolve(ctx context.Context, dir string, packages []string) ([]Archive, error) {
	if err := c.prepare(dir); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, dir, "update"); err != nil {
		return nil, err
	}
	// What is in the directory of archives would be left out.
	args := []string{"-o", "Dir::Cache::archives=" + filepath.Join(dir, "empty"), "--print-uris", "install", essential}
	printed, err := c.run(ctx, dir, append(args, packages...)...)
	if err != nil {
		return nil, err
	}
	return parseURIs(printed)
}

// Fetch brings the archives that Resolve found into Archives(dir). Those that are
// there stay: a fetch that was interrupted goes on.
func (c *Client) Fetch(ctx context.Context, dir string, packages []string, archives []Archive) error {
	if _, err := c.run(ctx, dir, append([]string{"--yes", "--download-only", "install", essential}, packages...)...); err != nil {
		return err
	}
	for _, a := range archives {
		info, err := os.Lstat(filepath.Join(Archives(dir), a.File))
		if err != nil || !info.Mode().IsRegular() || info.Size() != a.Size {
			return errhint.With(fmt.Errorf("apt-get: %s was not fetched as announced", a.File), "run the same command again")
		}
	}
	return nil
}

// Archives is where fetched archives are.
func Archives(dir string) string { return filepath.Join(dir, "cache", "archives") }

// prepare makes the private state of apt-get. Commands that the machine's
// configuration adds are for the machine, not for this.
func (c *Client) prepare(dir string) error {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial", "empty/partial", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), nil, 0o600); err != nil {
		return err
	}
	var text strings.Builder
	for _, hook := range []string{"APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success", "DPkg::Pre-Install-Pkgs", "DPkg::Pre-Invoke", "DPkg::Post-Invoke"} {
		fmt.Fprintf(&text, "#clear %s;\n", hook)
	}
	for _, s := range c.settings(dir) {
		fmt.Fprintf(&text, "%s %q;\n", s[0], s[1])
	}
	return os.WriteFile(filepath.Join(dir, configFile), []byte(text.String()), 0o600)
}

const configFile = "apt.conf"

func (c *Client) settings(dir string) [][2]string {
	list := [][2]string{
		{"Dir::State", filepath.Join(dir, "state")},
		{"Dir::State::lists", filepath.Join(dir, "state/lists")},
		{"Dir::State::status", filepath.Join(dir, "status")},
		{"Dir::Cache", filepath.Join(dir, "cache")},
		{"Dir::Cache::archives", Archives(dir)},
		{"Dir::Log", filepath.Join(dir, "log")},
		{"APT::Sandbox::User", "root"}, // another user cannot enter the directory
		{"APT::Get::AllowUnauthenticated", "false"},
		{"Acquire::AllowInsecureRepositories", "false"},
		{"Acquire::Languages", "none"},
		{"APT::Install-Recommends", "false"},
		{"APT::Keep-Downloaded-Packages", "true"},
	}
	if c.Sources != "" {
		list = append(list, [2]string{"Dir::Etc::sourcelist", c.Sources}, [2]string{"Dir::Etc::sourceparts", "/dev/null"})
	}
	return list
}

const (
	grace    = 5 * time.Second // that apt-get has to end after it was told to
	saidSize = 8 << 10         // bytes of its messages that are kept
	maxList  = 16 << 20        // bytes that it may print
)

// run runs apt-get and returns what it printed.
func (c *Client) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.program(), append([]string{"-c", filepath.Join(dir, configFile), "-qq"}, args...)...)
	printed, said := &tailbuf.Writer{Most: maxList}, &tailbuf.Writer{Most: saidSize}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"), printed, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, c.Available()
	case err != nil:
		return nil, explain(said.Bytes(), err)
	case printed.Lost():
		return nil, fmt.Errorf("apt-get printed more than %d bytes", maxList)
	}
	return printed.Bytes(), nil
}

// explain makes an error of apt-get's messages.
func explain(said []byte, err error) error {
	var kept []string
	for line := range bytes.Lines(said) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "E: "); ok && len(kept) < 3 {
			kept = append(kept, text)
		}
	}
	if kept == nil {
		kept = []string{err.Error()}
	}
	failed := fmt.Errorf("apt-get: %s", strings.Join(kept, " · "))
	switch text := string(said); {
	case strings.Contains(text, "No space left") || strings.Contains(text, "enough free space"):
		return errhint.With(failed, "free space on the disk and run the same command again; what was fetched is kept")
	case strings.Contains(text, "Unable to locate package"):
		return errhint.With(failed, "`apt-cache search NAME` shows which packages there are")
	}
	return errhint.With(failed, "check that `apt-get update` works on this machine, then run the same command again; what was fetched is kept")
}

var archiveForm = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]*_[A-Za-z0-9.+~%-]+_[a-z0-9-]+\.deb$`)

const uriFields = 3 // of a line of --print-uris: 'URI' FILE SIZE, and sometimes a checksum

// maxArchives bounds how many packages a root is made of.
const maxArchives = 5000

// parseURIs reads what --print-uris printed, but for the addresses, which stay on
// this machine.
func parseURIs(printed []byte) (archives []Archive, err error) {
	for line := range bytes.Lines(printed) {
		fields := strings.Fields(string(line))
		if len(fields) < uriFields || !strings.HasPrefix(fields[0], "'") {
			continue
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || !archiveForm.MatchString(fields[1]) {
			return nil, fmt.Errorf("apt-get: %.200q is not the name of a package's file", fields[1])
		}
		archives = append(archives, Archive{File: fields[1], Size: size})
	}
	if len(archives) == 0 || len(archives) > maxArchives {
		return nil, fmt.Errorf("apt-get found %d packages; between 1 and %d make a root", len(archives), maxArchives)
	}
	slices.SortFunc(archives, func(a, b Archive) int { return strings.Compare(a.File, b.File) })
	return archives, nil
}
