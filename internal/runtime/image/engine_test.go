package image_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/docker"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

func engine(t *testing.T, host string) image.Engine {
	t.Helper()
	runtime, err := docker.New(docker.Options{
		Host: host, Flavor: docker.Docker, Installation: "image-test", StateDir: t.TempDir(),
		Guest: func(string) ([]byte, error) { panic("no sandbox is made here") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return runtime
}

// cli runs the docker client, which shows what was built as a user sees it.
func cli(t *testing.T, host string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", append([]string{"-H", host}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// build makes an image on the real engine under a name of its own. The steps
// use the host's network, on which Debian's packages are certainly reachable.
func build(t *testing.T, host, name string, opts image.Options) string {
	t.Helper()
	recipe, err := image.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	opts.Target = "atoll-test-image:" + strings.ToLower(rand.Text())
	opts.Network = "host"
	var progress bytes.Buffer
	ref, err := image.Build(t.Context(), engine(t, host), recipe, opts, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	t.Cleanup(func() { cli(t, host, "rmi", "--force", ref) })
	return ref
}

// Where no registry answers this goes the whole way: the pinned Debian cannot be
// pulled, and the base made from packages takes its place.
func TestSandboxImage(t *testing.T) {
	host := enginetest.Docker(t)
	ref := build(t, host, "sandbox", image.Options{Args: map[string]string{image.ArgPackages: "jq", image.ArgFinalUser: "dev"}})
	got := cli(t, host, "run", "--rm", "--network=none", ref, "sh", "-c", "id -un; jq -n 1+1; test -d ~ && echo home")
	if got != "dev\n2\nhome\n" {
		t.Errorf("in the image: %q", got)
	}
	labels := cli(t, host, "image", "inspect", "-f", "{{index .Config.Labels \""+image.LabelRecipe+"\"}} {{.Config.Cmd}}", ref)
	if strings.TrimSpace(labels) != "sandbox [sleep infinity]" {
		t.Errorf("label and command: %s", labels)
	}
}

func TestLayerOnAnyImageRestoresItsUser(t *testing.T) {
	host := enginetest.Docker(t)
	ref := build(t, host, "extend", image.Options{Args: map[string]string{image.ArgBaseImage: enginetest.Image}, With: []string{"gh"}})
	got := cli(t, host, "run", "--rm", "--network=none", ref, "sh", "-c", "id -un; gh --version | head -c 10")
	if got != "sandbox\ngh version" {
		t.Errorf("in the image: %q", got)
	}
}

// The image works as sandboxes are: no network, nothing to write to, no root.
// What takes long is made once, by `make openclaw`, and found again here.
func TestOpenClawImage(t *testing.T) {
	host := enginetest.Docker(t)
	t.Setenv("OPENCLAW_TREE", filepath.Join(cmp.Or(os.Getenv("ATOLL_OPENCLAW_DIR"), "/var/tmp/atoll-openclaw"), "2026.9.6"))
	ref := build(t, host, "openclaw", image.Options{})
	script := "id -u; id -un; pnpm --version; pnpm store path; git --version; jq --version; curl --version | head -c 4; echo; HOME=/tmp node /app/dist/index.js --version"
	got := cli(t, host, "run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", ref, "sh", "-c", script)
	want := regexp.MustCompile(`^1001\nsandboxer\n10\.18\.3\n/pnpm-store/v10\ngit version \S+\njq-\S+\ncurl\nOpenClaw 2026\.9\.6 \S+\n$`)
	if !want.MatchString(got) {
		t.Errorf("in the image: %q", got)
	}
}

func TestFailedBuildGivesTheStepsMessageAndNoImage(t *testing.T) {
	host := enginetest.Docker(t)
	recipe, err := image.Find("extend")
	if err != nil {
		t.Fatal(err)
	}
	const target = "atoll-test-image:never"
	opts := image.Options{Target: target, Args: map[string]string{image.ArgBaseImage: enginetest.TinyImage}, With: []string{"gh"}}
	var progress bytes.Buffer
	_, err = image.Build(t.Context(), engine(t, host), recipe, opts, &progress)
	if want := "image " + target + ": build failed: layer gh needs an image with apt-get"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if strings.Contains(progress.String(), "\x1b") {
		t.Errorf("colours in the progress: %q", &progress)
	}
	if held, err := engine(t, host).HasImage(t.Context(), target); held || err != nil {
		t.Errorf("image is there = %v, error %v", held, err)
	}
}

// An engine's own refusal must come through, whatever made the tar.
func TestImportOfGarbageIsRefused(t *testing.T) {
	err := engine(t, enginetest.Docker(t)).Import(t.Context(), strings.NewReader("not a tar"), "atoll-test-image:garbage")
	if err == nil {
		t.Error("no error")
	}
}
