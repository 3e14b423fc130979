package vmkeys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config/amount"
	"github.com/atoll-run/atoll/internal/errhint"
)

// The variables that win over the file.
const (
	EnvCPUs   = "VM_CPUS"
	EnvMemory = "VM_MEMORY"
	EnvDisk   = "VM_DISK"
)

// Origins says where each value of a profile comes from: "default", "$VM_CPUS", or the
// path of a key of the file.
type Origins map[string]string

// fromDefault is the origin of a value that is written nowhere.
const fromDefault = "default"

// ErrNoProfile is the cause of an error about a profile that the file does not have.
var ErrNoProfile = errors.New("there is no such profile")

// Choose returns the name of the profile that is meant: the named one, vm.profile, the
// only one there is, or DefaultName.
func (f *MachinesFile) Choose(named string) (string, error) {
	switch {
	case named != "":
	case f.Profile != nil:
		named = *f.Profile
	case len(f.Profiles) == 1:
		named = slices.Collect(maps.Keys(f.Profiles))[0]
	case len(f.Profiles) == 0:
		return DefaultName, nil
	default:
		named = DefaultName
	}
	if _, ok := f.Profiles[named]; !ok {
		return "", errhint.With(fmt.Errorf("%w: %q", ErrNoProfile, named), f.known())
	}
	return named, nil
}

// known names the profiles of the file.
func (f *MachinesFile) known() string {
	if len(f.Profiles) == 0 {
		return "the file has no profile; make one with `atoll vm init`"
	}
	return "the file has " + strings.Join(slices.Sorted(maps.Keys(f.Profiles)), ", ") + "; name one with --profile, or set vm.profile"
}

// Merge returns a profile: the variables win over the profile, the profile over
// vm.defaults, those over what is built in.
func Merge(f *MachinesFile, name string, getenv func(string) string) (Profile, Origins, error) {
	own := f.Profiles[name]
	m := &merge{profile: "vm.profiles." + name + ".", origins: Origins{}, getenv: getenv}
	p, defaults := Default(), orEmpty(f.Defaults)
	p.Name = name
	p.plain(m, &own, defaults)
	p.Mounts.merge(m, orEmpty(own.Mounts), orEmpty(defaults.Mounts))
	p.Roles.merge(m, orEmpty(own.Roles), orEmpty(defaults.Roles))
	return p, m.origins, errors.Join(
		m.bytes("memory", EnvMemory, own.Memory, defaults.Memory, &p.Memory),
		m.bytes("disk", EnvDisk, own.Disk, defaults.Disk, &p.Disk),
		m.count("cpus", EnvCPUs, &p.CPUs),
	)
}

// plain merges the keys that are neither sizes nor objects.
func (p *Profile) plain(m *merge, own, shared *ProfileFile) {
	pick(m, "mode", own.Mode, shared.Mode, &p.Mode)
	pick(m, "cpus", own.CPUs, shared.CPUs, &p.CPUs)
	pick(m, "rosetta", own.Rosetta, shared.Rosetta, &p.Rosetta)
	pick(m, "port", own.Port, shared.Port, &p.Port)
	pick(m, "docker", own.Docker, shared.Docker, &p.Docker)
	pick(m, "secrets", own.Secrets, shared.Secrets, &p.Secrets)
	pick(m, "openclaw", own.OpenClaw, shared.OpenClaw, &p.OpenClaw)
	pick(m, "program", own.Program, shared.Program, &p.Program)
}

func (t *Mounts) merge(m *merge, own, shared *MountsFile) {
	pick(m, "mounts.project", own.Project, shared.Project, &t.Project)
	pick(m, "mounts.provision", own.Provision, shared.Provision, &t.Provision)
	pick(m, "mounts.vault", own.Vault, shared.Vault, &t.Vault)
	pick(m, "mounts.config", own.Config, shared.Config, &t.Config)
	pick(m, "mounts.agentData", own.AgentData, shared.AgentData, &t.AgentData)
	pick(m, "mounts.buildlogData", own.BuildlogData, shared.BuildlogData, &t.BuildlogData)
	pick(m, "mounts.skills", own.Skills, shared.Skills, &t.Skills)
}

func (r *Roles) merge(m *merge, own, shared *RolesFile) {
	pick(m, "roles.ghCli", own.GhCLI, shared.GhCLI, &r.GhCLI)
	pick(m, "roles.tailscale", own.Tailscale, shared.Tailscale, &r.Tailscale)
	pick(m, "roles.cadence", own.Cadence, shared.Cadence, &r.Cadence)
	pick(m, "roles.buildlog", own.Buildlog, shared.Buildlog, &r.Buildlog)
	pick(m, "roles.qortex", own.Qortex, shared.Qortex, &r.Qortex)
}

// merge brings the levels of one profile together.
type merge struct {
	profile string // where its keys are in the file
	origins Origins
	getenv  func(string) string
}

// pick sets to, which has the default, to the profile's value, else the shared one.
func pick[T any](m *merge, key string, own, shared, to *T) {
	switch {
	case own != nil:
		*to, m.origins[key] = *own, m.profile+key
	case shared != nil:
		*to, m.origins[key] = *shared, "vm.defaults."+key
	default:
		m.origins[key] = fromDefault
	}
}

// bytes is pick for sizes, with a variable that wins.
func (m *merge) bytes(key, variable string, own, shared *amount.Size, to *int64) error {
	var written amount.Size
	pick(m, key, own, shared, &written)
	at := "vm: " + key
	if value := m.getenv(variable); value != "" {
		written, m.origins[key], at = amount.Size{Text: value}, "$"+variable, variable
	}
	if written == (amount.Size{}) {
		return nil
	}
	size, err := written.Bytes()
	if err != nil || size <= 0 {
		return errhint.With(fmt.Errorf("%s: %q is no size", at, written.Text), "write it like 8GiB")
	}
	*to = size
	return nil
}

// count reads a variable that wins over a number that was picked.
func (m *merge) count(key, variable string, to *int) error {
	value := m.getenv(variable)
	if value == "" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 256 {
		return errhint.With(fmt.Errorf("%s: %q is no number of processors", variable, value), "give a number from 1 to 256")
	}
	*to, m.origins[key] = n, "$"+variable
	return nil
}

func orEmpty[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}
