package verify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Wherever the tests run, sandboxes do: the rings can be built.
func TestKernelOfThisHost(t *testing.T) {
	checks := Kernel()
	var rings []string
	for _, c := range checks {
		if rings = append(rings, c.Ring); c.Status == Gap || c.Found == "" {
			t.Errorf("%s: %s: %s, found %q", c.Ring, c.Name, c.Promised, c.Found)
		}
	}
	for _, c := range Checks(sound()) { // the same list
		if !slices.Contains(rings, c.Ring) {
			t.Errorf("nothing is said about %s", c.Ring)
		}
	}
}

// Hosts on which something is missing: each is named, with what to do.
func TestOddHosts(t *testing.T) {
	sane := map[string]string{
		"proc/self/uid_map": "0 0 1", "proc/self/setgroups": "allow", "proc/self/status": "NoNewPrivs:\t0\nCapAmb:\t0\n",
		"proc/sys/kernel/seccomp/actions_avail": "kill_process errno allow", "proc/sys/user/max_user_namespaces": "1000",
		"proc/filesystems": "nodev\toverlay\n", "sys/fs/cgroup/cgroup.controllers": "cpu memory pids", "proc/sys/fs/suid_dumpable": "2",
		"proc/sys/net/ipv4/ip_unprivileged_port_start": "1024",
	}
	for _, kind := range kinds() {
		sane["proc/self/ns/"+kind] = ""
	}
	for _, test := range []struct {
		name, file, text string // "" removes it
		want             string
		status           Status
	}{
		{name: "nothing is missing"},
		{"no mapping of users", "proc/self/uid_map", "", "user: mapping", Gap},
		{"no new privileges", "proc/self/status", "CapAmb:\t0\n", "privileges: to be given up", Gap},
		{"no filter", "proc/sys/kernel/seccomp/actions_avail", "", "system calls: filter", Gap},
		{"no user namespaces", "proc/self/ns/user", "", "namespaces: namespaces", Gap},
		{"no user namespaces left", "proc/sys/user/max_user_namespaces", "0", "namespaces: without root", Note},
		{"an old Debian", "proc/sys/kernel/unprivileged_userns_clone", "0", "namespaces: without root", Note},
		{"a recent Ubuntu", "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "namespaces: without root", Note},
		{"no ports for everyone", "proc/sys/net/ipv4/ip_unprivileged_port_start", "", "egress: ports below 1024", Gap},
		{"no overlay", "proc/filesystems", "\text4\n", "files: layers", Note},
		{"no control groups", "sys/fs/cgroup/cgroup.controllers", "", "limits: controllers", Note},
		{"no memory controller", "sys/fs/cgroup/cgroup.controllers", "cpu pids", "limits: controllers", Note},
		{"memory of version 1", "sys/fs/cgroup/memory/memory.limit_in_bytes", "1", "limits: socket buffers", Note},
		{"programs that can be traced", "proc/sys/fs/suid_dumpable", "1", "guest: traceable", Note},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := maps.Clone(sane)
			if files[test.file] = test.text; test.text == "" {
				delete(files, test.file)
			}
			var found []string
			h := host{writeTree(t, files)}
			for _, c := range append(h.rings(), h.resources()...) {
				if c.Status != OK {
					found = append(found, fmt.Sprintf("%s: %s %s", c.Ring, c.Name, c.Status))
				}
				if (c.Status == OK) != (c.Remedy == "") {
					t.Errorf("%s: %s: remedy %q", c.Ring, c.Name, c.Remedy)
				}
			}
			want := []string(nil)
			if test.want != "" {
				want = []string{test.want + " " + string(test.status)}
			}
			if !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
	sockets := writeTree(t, map[string]string{"var/run/docker.sock": "x"})
	if err := os.Chmod(filepath.Join(sockets, "var/run/docker.sock"), 0o666); err != nil {
		t.Fatal(err)
	}
	if c := (host{sockets}).sockets(); c.Status != Note || c.Remedy == "" {
		t.Errorf("an engine for everybody: %+v", c)
	}
}

// writeTree makes a directory with these files.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A kernel that cannot tell mounts apart is named; either way to do so is enough.
func TestMountsThatGoUnnoticedAreNamed(t *testing.T) {
	for _, test := range []struct {
		openat2, ids bool
		want         Status
	}{{true, true, OK}, {true, false, OK}, {false, true, OK}, {false, false, Note}} {
		c := mountsNoticed(test.openat2, test.ids)
		if c.Status != test.want || c.Status == Note && !strings.Contains(c.Found, "do not notice a mount") {
			t.Errorf("openat2 %v, mount ids %v: %+v", test.openat2, test.ids, c)
		}
	}
	if c := kernelMounts(); c.Status != OK {
		t.Errorf("this kernel: %+v", c) // 5.8 and later have both
	}
}
