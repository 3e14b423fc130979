package vmkeys_test

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
)

// machines reads vm of a file.
func machines(t *testing.T, text string) *vmkeys.MachinesFile {
	t.Helper()
	c, err := config.Parse("atoll.json5", []byte(text), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return c.VM()
}

func TestMerge(t *testing.T) {
	f := machines(t, `{vm: {
		defaults: {cpus: 2, docker: false, mounts: {vault: "~/Vault"}},
		profiles: {work: {cpus: 6, memory: "12GiB", docker: "auto", mode: "auto", mounts: {project: "~/p"}, roles: {ghCli: false}}},
	}}`)
	env := map[string]string{"VM_CPUS": "8", "VM_DISK": "80GiB"}
	p, from, err := vmkeys.Merge(f, "work", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if p.CPUs != 8 || p.Memory != 12<<30 || p.Disk != 80<<30 || p.Docker != vmkeys.DockerAuto || p.Mounts.Vault != "~/Vault" || p.Mounts.Project != "~/p" || p.Roles.GhCLI || !p.Rosetta || p.Port != 18789 {
		t.Errorf("%+v", p)
	}
	for key, want := range map[string]string{
		"cpus": "$VM_CPUS", "disk": "$VM_DISK", "memory": "vm.profiles.work.memory", "mounts.vault": "vm.defaults.mounts.vault", "rosetta": "default", "roles.ghCli": "vm.profiles.work.roles.ghCli",
	} {
		if from[key] != want {
			t.Errorf("%s comes from %q, want %q", key, from[key], want)
		}
	}
}

func TestVariablesThatAreNoSizes(t *testing.T) {
	for name, value := range map[string]string{"VM_CPUS": "many", "VM_MEMORY": "-1", "VM_DISK": "50 apples"} {
		_, _, err := vmkeys.Merge(&vmkeys.MachinesFile{}, "default", func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if err == nil {
			t.Errorf("%s=%s was taken", name, value)
		}
	}
}

func TestChoose(t *testing.T) {
	two := machines(t, `{vm: {profiles: {a: {}, b: {}}}}`)
	for _, c := range []struct {
		file        *vmkeys.MachinesFile
		named, want string
	}{
		{&vmkeys.MachinesFile{}, "", "default"},
		{machines(t, `{vm: {profiles: {work: {}}}}`), "", "work"},
		{machines(t, `{vm: {profile: "b", profiles: {a: {}, b: {}}}}`), "", "b"},
		{two, "a", "a"},
	} {
		if got, err := c.file.Choose(c.named); got != c.want || err != nil {
			t.Errorf("%q: %q %v", c.named, got, err)
		}
	}
	for _, name := range []string{"", "c"} {
		if _, err := two.Choose(name); !errors.Is(err, vmkeys.ErrNoProfile) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestProblemsOfProfiles(t *testing.T) {
	for _, text := range []string{
		`{vm: {profiles: {work: {mode: "yolo"}}}}`, `{vm: {profiles: {work: {cpus: 0}}}}`, `{vm: {profiles: {work: {memory: "much"}}}}`,
		`{vm: {profiles: {work: {port: 80}}}}`, `{vm: {profiles: {"a b": {}}}}`, `{vm: {profiles: {work: {docker: "maybe"}}}}`, `{vm: {profiles: {work: {mounts: {secret: "~"}}}}}`,
	} {
		if _, err := config.Parse("atoll.json5", []byte(text), config.Environment{}); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
