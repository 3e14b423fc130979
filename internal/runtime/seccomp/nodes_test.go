package seccomp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
)

// TestNodeProfile: the guest on a node may make its namespaces, and no others, and
// mount in two ways.
func TestNodeProfile(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		text, err := seccomp.NodeProfile(arch)
		if err != nil {
			t.Fatal(err)
		}
		var profile specs.LinuxSeccomp
		if err := json.Unmarshal(text, &profile); err != nil {
			t.Fatal(err)
		}
		rules := map[string]int{}
		for _, rule := range profile.Syscalls {
			for _, name := range rule.Names {
				if rule.Action == specs.ActAllow {
					rules[name]++
				}
				if slices.Contains([]string{"clone", "setns", "mount"}, name) && len(rule.Args) != 1 {
					t.Errorf("%s: %s is allowed whatever its flags", arch, name)
				}
			}
		}
		if rules["clone"] != 1 || rules["setns"] != 3 || rules["mount"] != 2 || rules["unshare"]+rules["umount2"]+rules["pivot_root"]+rules["move_mount"] != 0 {
			t.Errorf("%s: %v", arch, rules)
		}
	}
}

// TestNodeProfileFiles: the files that operators install are what NodeProfile returns.
func TestNodeProfileFiles(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		want, err := seccomp.NodeProfile(arch)
		if err != nil {
			t.Fatal(err)
		}
		file := "../../../deploy/kubernetes/seccomp/sandbox-" + arch + ".json"
		if os.Getenv("ATOLL_UPDATE") != "" {
			if err := os.WriteFile(file, append(want, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(bytes.TrimSpace(got)) != string(want) {
			t.Errorf("%s is not the profile (%v): ATOLL_UPDATE=1 go test writes it", file, err)
		}
	}
}
