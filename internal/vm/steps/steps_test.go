package steps_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// setup has everything on.
func setup() *steps.Setup {
	p := vmkeys.Default()
	p.OpenClaw, p.Mounts.Vault = true, "~/Vault"
	p.Roles.Tailscale = true
	return &steps.Setup{Profile: &p, Secrets: []byte("KEY=1\n"), Program: []byte("program")}
}

func names(t *testing.T, s *steps.Setup) (run, skipped []string) {
	t.Helper()
	ordered, err := steps.Order(s.List())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range ordered {
		run = append(run, step.Name)
		if step.Skip != "" {
			skipped = append(skipped, step.Name)
		}
	}
	return run, skipped
}

func TestTheTwelveStepsAndTheirConditions(t *testing.T) {
	want := "secrets overlay docker gh-cli gateway firewall tailscale cadence buildlog qortex sandbox sync-gate"
	s := setup()
	all, skipped := names(t, s)
	if got := strings.Join(all, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := strings.Join(skipped, " "); got != "cadence buildlog qortex" {
		t.Errorf("skipped: %s", got)
	}
	s.Profile.Mode, s.Profile.OpenClaw, s.Profile.Roles, s.Secrets = vmkeys.ModeDirect, false, vmkeys.Roles{}, nil
	if _, skipped := names(t, s); strings.Join(skipped, " ") != "secrets overlay docker gh-cli tailscale cadence buildlog qortex sandbox sync-gate" {
		t.Errorf("skipped: %v", skipped)
	}
	s.NeedsDocker = true
	if _, skipped := names(t, s); slices.Contains(skipped, "docker") || slices.Contains(skipped, "sandbox") {
		t.Errorf("skipped: %v", skipped)
	}
	s.Profile.Docker = vmkeys.DockerFalse
	if _, skipped := names(t, s); !slices.Contains(skipped, "docker") {
		t.Errorf("skipped: %v", skipped)
	}
}

func TestOrderIsRefused(t *testing.T) {
	for _, list := range [][]steps.Step{
		{{Name: "a", Needs: []string{"b"}}, {Name: "b", Needs: []string{"a"}}},
		{{Name: "a", Needs: []string{"nothing"}}},
		{{Name: "a"}, {Name: "a"}},
	} {
		if got, err := steps.Order(list); err == nil {
			t.Errorf("%v: %v", list, got)
		}
	}
}

// scripted answers scripts in turn.
type scripted []error

func (s *scripted) Run(context.Context, string, io.Reader) (string, error) {
	err := (*s)[0]
	*s = (*s)[1:]
	return "", err
}

func TestWhatIsDoneAndIsNotSoIsAnError(t *testing.T) {
	no := errors.New("no")
	list := []steps.Step{{Name: "a", Actions: []steps.Action{{Check: "c", Apply: "a"}}}}
	guest := scripted{no, nil, no}
	if err := steps.Run(t.Context(), &guest, list, "", func(*steps.Step, steps.Result) {}); err == nil || !strings.Contains(err.Error(), "is not so") {
		t.Error(err)
	}
}

// The configuration that the gateway gets is a good one.
func TestConfigurationInside(t *testing.T) {
	for mode, access := range map[vmkeys.Mode]config.Access{vmkeys.ModeOverlay: config.AccessOverlay, vmkeys.ModeAuto: config.AccessOverlay, vmkeys.ModeDirect: config.AccessRW} {
		s := setup()
		s.Profile.Mode = mode
		c, err := config.Parse(steps.ConfigFile, fileOf(t, s, steps.ConfigFile), config.Environment{Home: "/root"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Resolve(c.DefaultAgent())
		if err != nil || a.Workspace != "/mnt/openclaw" || a.Sandbox.WorkspaceAccess != access || a.Sandbox.Overlay.Kind != config.OverlayCopy {
			t.Errorf("%s: %+v %v", mode, a, err)
		}
	}
}

// fileOf returns the content of a file that the steps write.
func fileOf(t *testing.T, s *steps.Setup, path string) []byte {
	t.Helper()
	for _, step := range s.List() {
		for _, a := range step.Actions {
			if strings.HasSuffix(a.Apply, ".new "+path) {
				return a.Stdin
			}
		}
	}
	t.Fatalf("nothing writes %s", path)
	return nil
}

// No secret is in a script, which other users of the virtual machine could see.
func TestSecretsAreInNoScript(t *testing.T) {
	s := setup()
	s.Secrets = []byte("KEY=sk-very-secret\n")
	for _, step := range s.List() {
		for _, a := range slices.Concat(step.Actions, step.After) {
			if strings.Contains(a.Check+a.Apply, "sk-very-secret") {
				t.Errorf("%s: %s", step.Name, a.Apply)
			}
		}
	}
}

func TestPluginsOfTheWrongShape(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "cadence", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := steps.Plugin(dir, "cadence"); err == nil {
		t.Error("a plug-in that is not there was taken")
	}
	write("check.sh", "")
	write("sub/apply.sh", "")
	for _, text := range []string{
		"{", "[]", `{name: "cadence"}`, `{name: "other", check: "check.sh", apply: "check.sh"}`, `{name: "cadence", check: "check.sh", apply: "nowhere.sh"}`,
		`{name: "cadence", check: "check.sh", apply: "sub/apply.sh"}`, `{name: "cadence", check: "check.sh", apply: "../x"}`, `{name: "cadence", check: "a; reboot", apply: "check.sh"}`,
		`{name: "cadence", check: "check.sh", apply: "check.sh", extra: 1}`, `{name: "cadence", check: "check.sh", apply: "sub"}`, strings.Repeat(" ", 70<<10) + "{}",
	} {
		write("step.json5", text)
		if step, err := steps.Plugin(dir, "cadence"); err == nil {
			t.Errorf("%.80s was taken: %+v", text, step)
		}
	}
	write("step.json5", `{name: "cadence", needs: ["gateway"], check: "check.sh", apply: "check.sh"}`)
	if step, err := steps.Plugin(dir, "cadence"); err != nil || step.Needs[0] != "gateway" {
		t.Errorf("%+v %v", step, err)
	}
}

// The example of a plug-in is a good one.
func TestExamplePlugin(t *testing.T) {
	if _, err := steps.Plugin("../../../deploy/vm/plugins", "cadence"); err != nil {
		t.Error(err)
	}
}
