package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/moby/api/types/mount"

	"github.com/atoll-run/atoll/internal/sandbox"
)

const resolvConfTarget = "/etc/resolv.conf"

// addResolvConf mounts the resolver's configuration into a Podman container without a
// network: Podman makes no such file there, and an image may bring one of its own. Docker
// makes it from the settings of the container.
func (r *Runtime) addResolvConf(c *recipe) error {
	taken := slices.ContainsFunc(c.mounts, func(m mount.Mount) bool { return m.Target == resolvConfTarget })
	if c.flavor != Podman || c.spec.Network != "none" || len(c.spec.DNS) > 0 || taken {
		return nil
	}
	path, err := r.writeResolvConf()
	if err != nil {
		return fmt.Errorf("resolver: %w", err)
	}
	p, err := pinPath(path, resolvConfTarget)
	if err != nil {
		return err
	}
	c.mounts = append(c.mounts, p.mount(true))
	return nil
}

// addRoots mounts the certificates that programs inside are to trust over the image's.
func (c *recipe) addRoots() error {
	taken := slices.ContainsFunc(c.mounts, func(m mount.Mount) bool { return m.Target == sandbox.RootsTarget })
	if c.spec.TrustedRoots == "" || taken {
		return nil
	}
	p, err := pinPath(c.spec.TrustedRoots, sandbox.RootsTarget)
	if err != nil {
		return err
	}
	c.mounts = append(c.mounts, p.mount(true))
	return nil
}

// writeResolvConf returns the file below the state directory, which all sandboxes share.
// It is replaced only if its content is another, because sandboxes have it mounted.
func (r *Runtime) writeResolvConf() (string, error) {
	dir := filepath.Join(r.options.StateDir, "resolver")
	path := filepath.Join(dir, "resolv.conf")
	want := []byte(sandbox.ResolvConf())
	if have, err := os.ReadFile(path); err == nil && slices.Equal(have, want) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return path, writeWhole(dir, path, want, 0o644)
}
