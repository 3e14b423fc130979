package profile_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// home makes a home directory with the directories of a profile.
func home(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"Projects/openclaw/sub", "Vault", ".openclaw/agents", ".ssh", "locked", "{{.Home}}"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".ssh", filepath.Join(home, "keys")); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestMounts(t *testing.T) {
	dir := home(t)
	p := vmkeys.Default()
	p.Mounts = vmkeys.Mounts{Project: "~/Projects/openclaw", Vault: "~/Vault", Config: "~/.openclaw", AgentData: "~/.openclaw/agents"}
	for _, mode := range []vmkeys.Mode{vmkeys.ModeOverlay, vmkeys.ModeAuto, vmkeys.ModeDirect} {
		p.Mode = mode
		list, err := profile.Mounts(&p, profile.Host{Home: dir})
		if err != nil || len(list) != 4 {
			t.Fatalf("%s: %v %v", mode, list, err)
		}
		for _, m := range list {
			if want := m.Key == "agentData" || mode == vmkeys.ModeDirect; m.Writable != want {
				t.Errorf("%s: %s is writable: %v", mode, m.Key, m.Writable)
			}
		}
	}
}

func TestMountsThatAreRefused(t *testing.T) {
	dir := home(t)
	host := profile.Host{Home: dir, Base: "/base", Private: []string{filepath.Join(dir, "locked")}}
	good := vmkeys.Mounts{Project: "~/Projects/openclaw"}
	for want, change := range map[string]func(*vmkeys.Mounts){
		"mounts.project: " + dir + "/nowhere does not exist": func(m *vmkeys.Mounts) { m.Project = "~/nowhere" },
		`mounts.vault: "Vault" is a relative path`:           func(m *vmkeys.Mounts) { m.Vault = "Vault" },
		"mounts.skills: " + dir + "/file is a file":          func(m *vmkeys.Mounts) { m.Skills = "~/file" },
		"blocked path":                 func(m *vmkeys.Mounts) { m.Skills = "~/keys" },
		`"/etc"`:                       func(m *vmkeys.Mounts) { m.Vault = "/etc" },
		"locked":                       func(m *vmkeys.Mounts) { m.Vault = "~/locked" },
		`mounts.vault: "` + dir + `" `: func(m *vmkeys.Mounts) { m.Vault = "~" },
		"mounts.skills (" + dir + "/Projects/openclaw/sub) lies in mounts": func(m *vmkeys.Mounts) { m.Skills = "~/Projects/openclaw/sub" },
		"mounts.vault (" + dir + "/Projects/openclaw) lies in mounts.proj": func(m *vmkeys.Mounts) { m.Vault = "~/Projects/openclaw" },
		"which Lima would replace":  func(m *vmkeys.Mounts) { m.Skills = "~/{{.Home}}" },
		"mounts.project is missing": func(m *vmkeys.Mounts) { m.Project = "" },
	} {
		p := vmkeys.Default()
		p.Mounts = good
		change(&p.Mounts)
		if _, err := profile.Mounts(&p, host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestSizesAndPort(t *testing.T) {
	p := vmkeys.Default()
	if err := profile.Sizes(&p); err != nil {
		t.Error(err)
	}
	p.Memory, p.Disk = profile.MinMemory-1, profile.MinDisk-1
	if err := profile.Sizes(&p); err == nil || !strings.Contains(err.Error(), "memory is") || !strings.Contains(err.Error(), "20GiB is the least") {
		t.Errorf("too small: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Port = l.Addr().(*net.TCPAddr).Port
	if err := profile.PortFree(&p); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Errorf("a taken port: %v", err)
	}
	_ = l.Close()
	if err := profile.PortFree(&p); err != nil {
		t.Error(err)
	}
}
