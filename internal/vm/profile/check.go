package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
)

// The least that a virtual machine needs.
const (
	MinMemory = 2 << 30
	MinDisk   = 20 << 30
)

// Host is what checks need to know of this machine.
type Host struct {
	Home    string
	Base    string   // where relative paths would start; they are refused, and named with it
	Private []string // directories that no virtual machine sees
}

// Mounts returns the directories of a profile, or every reason why one cannot be
// mounted.
func Mounts(p *vmkeys.Profile, host Host) ([]Mount, error) {
	var list []Mount
	var wrong []error
	for _, w := range table(p) {
		if w.source == "" {
			continue
		}
		m, err := host.mount(w)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("mounts.%s: %w", w.key, err))
			continue
		}
		list = append(list, m)
	}
	if p.Mounts.Project == "" {
		wrong = append(wrong, errhint.With(errors.New("mounts.project is missing"), "name the directory of your project, or run `atoll vm init`"))
	}
	wrong = append(wrong, nested(list)...)
	return list, errors.Join(wrong...)
}

// mount checks one directory.
func (h Host) mount(w written) (Mount, error) {
	source := w.source
	if rest, ok := strings.CutPrefix(source, "~"); ok && (rest == "" || rest[0] == '/') {
		source = filepath.Join(h.Home, rest)
	}
	if !filepath.IsAbs(source) {
		return Mount{}, errhint.With(fmt.Errorf("%q is a relative path", w.source), "write "+filepath.Join(h.Base, source)+", or a path that begins with ~/")
	}
	dir, err := resolve(source)
	if err != nil {
		return Mount{}, err
	}
	if strings.Contains(dir, "{{") {
		return Mount{}, errhint.With(fmt.Errorf("%q has {{ in it, which Lima would replace", dir), "rename the directory")
	}
	return Mount{w.key, dir, w.point, w.writable}, h.allowed(dir, w)
}

// resolve returns where a path leads; it must be a directory.
func resolve(source string) (string, error) {
	dir, err := filepath.EvalSymlinks(source)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errhint.With(fmt.Errorf("%s does not exist", source), "make it, or remove the key")
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", errhint.With(fmt.Errorf("%s is a file", source), "name the directory that it is in; secrets have a key of their own")
	}
	return dir, nil
}

// allowed refuses directories that hold credentials or are the system's.
func (h Host) allowed(dir string, w written) error {
	found := policy.ValidateWorkspace(dir, policy.Host{Homes: []string{h.Home}, Private: h.Private})
	if len(found) > 0 {
		return errhint.With(errors.New(strings.TrimPrefix(found[0].Message, "Sandbox security: workspace ")), "name a directory of its own")
	}
	if !w.writable {
		return nil
	}
	if err := writable(dir); err != nil {
		return errhint.With(fmt.Errorf("%s is to be writable inside, and you cannot write it", dir), "change its owner or its mode")
	}
	return nil
}

// writable reports whether a file can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".atoll-vm-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// nested refuses a directory that lies in another one: what is read-only by one name
// would be writable by the other. OpenClaw's agents, which lie in its state directory,
// may.
func nested(list []Mount) (wrong []error) {
	for i, outer := range list {
		for j, inner := range list {
			same := inner.Source == outer.Source
			if i == j || same && i > j || !within(inner.Source, outer.Source) || outer.Key == "config" && inner.Key == "agentData" && !same {
				continue
			}
			wrong = append(wrong, errhint.With(fmt.Errorf("mounts.%s (%s) lies in mounts.%s (%s)", inner.Key, inner.Source, outer.Key, outer.Source),
				"name directories that do not contain each other"))
		}
	}
	return wrong
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Sizes refuses a profile that a virtual machine cannot work with.
func Sizes(p *vmkeys.Profile) error {
	var wrong []error
	if p.Memory < MinMemory {
		wrong = append(wrong, errhint.With(fmt.Errorf("memory is %s, and %s is the least", Size(p.Memory), Size(MinMemory)), "raise memory, or "+vmkeys.EnvMemory))
	}
	if p.Disk < MinDisk {
		wrong = append(wrong, errhint.With(fmt.Errorf("disk is %s, and %s is the least", Size(p.Disk), Size(MinDisk)), "raise disk, or "+vmkeys.EnvDisk))
	}
	return errors.Join(wrong...)
}

// Size writes bytes as Lima reads them.
func Size(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// PortFree reports whether the port of a profile can be listened on.
func PortFree(p *vmkeys.Profile) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port))
	l, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil {
		return errhint.With(fmt.Errorf("port %d is taken: %w", p.Port, err), "end the program that listens there, or set another port in the profile")
	}
	return l.Close()
}
