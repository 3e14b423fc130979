package steps_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/deploy/apparmor"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// Where Ubuntu bars user namespaces, the program alone gets the profile that doctor --fix
// writes, and it is loaded; elsewhere nothing is done. The scripts run for real on files of
// the test, apparmor_parser notes what it loads.
func TestUserNamespaces(t *testing.T) {
	for setting, want := range map[string]bool{"": false, "0": false, "1": true} {
		dir := t.TempDir()
		kernel := filepath.Join(dir, "kernel")
		if setting != "" {
			if err := os.WriteFile(kernel, []byte(setting+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		profile := filepath.Join(dir, "atoll")
		owner := strings.Split(userName(t), ":")
		replace := strings.NewReplacer("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", kernel, apparmor.Path, profile,
			"/sys/kernel/security/apparmor/profiles", dir+"/loaded", "apparmor_parser -r", "echo 'atoll (unconfined)' >"+dir+"/loaded; test -e", "root:root", strings.Join(owner, ":"), "-o root -g root", "-o "+owner[0]+" -g "+owner[1])
		a := action(t, setup(), "apparmor_parser")
		run := func(script, in string) error {
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", replace.Replace(script))
			cmd.Stdin = strings.NewReader(in)
			return cmd.Run()
		}
		if needed := run(a.Check, "") != nil; needed != want {
			t.Errorf("setting %q: the profile is needed: %v", setting, needed)
		}
		if !want {
			continue
		}
		if err := run(a.Apply, string(a.Stdin)); err != nil {
			t.Fatal(err)
		}
		if err := run(a.Check, ""); err != nil {
			t.Errorf("it was done, and is not so: %v", err)
		}
		if text, err := os.ReadFile(profile); err != nil || string(text) != apparmor.Profile(steps.ProgramFile) {
			t.Errorf("%q %v", text, err)
		}
	}
}

// action returns the one whose script has a word.
func action(t *testing.T, s *steps.Setup, word string) steps.Action {
	t.Helper()
	for _, step := range s.List() {
		for _, a := range step.Actions {
			if strings.Contains(a.Apply, word) {
				return a
			}
		}
	}
	t.Fatalf("nothing does %s", word)
	return steps.Action{}
}

// The name of a unit with a backslash reaches systemd and the disk as it is.
func TestNamesOfUnitsAreQuoted(t *testing.T) {
	s := setup()
	for _, step := range s.List() {
		for _, a := range append(append([]steps.Action{}, step.Actions...), step.After...) {
			for _, script := range []string{a.Check, a.Apply} {
				before, _, has := strings.Cut(script, `workspace\x2d`)
				if has && strings.Count(before, "'")%2 == 0 {
					t.Errorf("the shell would take the backslash away: %s", script)
				}
			}
		}
	}
}
