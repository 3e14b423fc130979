package lima_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// work is a profile with every directory.
func work() (vmkeys.Profile, []profile.Mount) {
	p := vmkeys.Default()
	p.Name = "work"
	return p, []profile.Mount{
		{Key: "project", Source: "/Users/me/Projects/openclaw", Point: profile.ProjectPoint},
		{Key: "provision", Source: "/Users/me/provision", Point: profile.ProvisionPoint},
		{Key: "vault", Source: "/Users/me/My \"Vault\": #1", Point: profile.VaultPoint},
		{Key: "config", Source: "/Users/me/.openclaw", Point: profile.ConfigPoint},
		{Key: "agentData", Source: "/Users/me/.openclaw/agents", Point: profile.AgentsPoint, Writable: true},
		{Key: "buildlogData", Source: "/Users/me/.buildlog", Point: profile.BuildlogPoint, Writable: true},
		{Key: "skills", Source: "/Users/me/skills", Point: profile.SkillsPoint},
	}
}

var targets = map[string]lima.Target{
	"mac-1.x.yaml":   {Version: lima.Version{Major: 1, Minor: 2, Patch: 2}, System: "darwin", Arch: "arm64"},
	"mac-2.x.yaml":   {Version: lima.Version{Major: 2, Minor: 1}, System: "darwin", Arch: "arm64"},
	"intel-2.x.yaml": {Version: lima.Version{Major: 2, Minor: 1}, System: "darwin", Arch: "amd64"},
	"linux-1.x.yaml": {Version: lima.Version{Major: 1, Minor: 2, Patch: 2}, System: "linux", Arch: "amd64"},
}

func TestGoldenFiles(t *testing.T) {
	p, mounts := work()
	for name, target := range targets {
		got, err := lima.YAML(&p, mounts, target)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", name, diff)
		}
	}
}

// Whatever a path has in it is data: it is read as it was written, and adds no key.
func TestPathsAreData(t *testing.T) {
	p := vmkeys.Default()
	for _, source := range []string{"/a\nwritable: true", "/'\"", "/{{.Home}}", "/a: [b]", "/# x", "/\u2028", "/tab\tx", "/- y", "/%YAML"} {
		text, err := lima.YAML(&p, []profile.Mount{{Source: source, Point: profile.ProjectPoint}}, targets["mac-2.x.yaml"])
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Mounts []struct {
				Location string `yaml:"location"`
				Writable bool   `yaml:"writable"`
			} `yaml:"mounts"`
		}
		if err := yaml.Unmarshal(text, &read); err != nil || len(read.Mounts) != 1 || read.Mounts[0].Location != source || read.Mounts[0].Writable {
			t.Errorf("%q: %+v %v", source, read, err)
		}
	}
}

// Lima 1.2.2's own validator takes what is written for 1.x. It is a module of its own,
// so that the program does not link Lima.
func TestLimaAcceptsTheFile(t *testing.T) {
	need.Time(t, "builds a part of Lima")
	validator := filepath.Join(t.TempDir(), "limavalidate")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-X github.com/lima-vm/lima/pkg/version.Version=1.2.2", "-o", validator, ".")
	build.Dir = filepath.Join("testdata", "limavalidate")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	validate := func(text []byte) (string, error) {
		cmd := exec.CommandContext(t.Context(), validator)
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	p, mounts := work()
	for _, name := range []string{"mac-1.x.yaml", "linux-1.x.yaml"} {
		text, err := lima.YAML(&p, mounts, targets[name])
		if err != nil {
			t.Fatal(err)
		}
		if out, err := validate(text); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if out, err := validate(bytes.Replace(text, []byte("8GiB"), []byte("8 apples"), 1)); err == nil {
			t.Errorf("%s: the validator takes anything: %s", name, out)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]lima.Version{"limactl version 1.2.2\n": {Major: 1, Minor: 2, Patch: 2}, "limactl version v2.0.0-beta.0": {Major: 2}, "2.1": {Major: 2, Minor: 1}} {
		if got, err := lima.ParseVersion(text); err != nil || got != want || got.Check() != nil {
			t.Errorf("%q: %v %v %v", text, got, err, got.Check())
		}
	}
	for _, text := range []string{"", "limactl version unknown"} {
		if v, err := lima.ParseVersion(text); err == nil {
			t.Errorf("%q: %v", text, v)
		}
	}
	for v, want := range map[lima.Version]string{{Major: 0, Minor: 23}: "too old", {Major: 3}: "not known"} {
		if err := v.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", v, err)
		}
	}
}
