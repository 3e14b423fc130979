package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/errhint"
)

// memory is an engine that keeps the names of its images, and what was asked of
// it. A real engine takes part in engine_test.go.
type memory struct {
	images     map[string]string // reference → user
	registry   []string          // what can be pulled
	silent     bool              // the registry never answers
	asked      []string
	dockerfile string
	built      BuildOptions
}

func (m *memory) HasImage(_ context.Context, ref string) (bool, error) {
	_, ok := m.images[ref]
	return ok, nil
}

func (m *memory) Pull(ctx context.Context, ref string, progress io.Writer) error {
	m.asked = append(m.asked, "pull "+ref)
	if m.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	if !slices.Contains(m.registry, ref) {
		return errors.New("no such host")
	}
	m.images[ref] = ""
	_, err := io.WriteString(progress, "pulled\n")
	return err
}

func (m *memory) Import(_ context.Context, rootfs io.Reader, ref string) error {
	m.asked = append(m.asked, "import "+ref)
	if _, err := io.Copy(io.Discard, rootfs); err != nil {
		return err
	}
	m.images[ref] = ""
	return nil
}

func (m *memory) Build(_ context.Context, contextTar io.Reader, opts BuildOptions, _ io.Writer) error {
	m.asked = append(m.asked, "build "+opts.Tag+" on "+opts.Args[ArgBaseImage])
	packed := tar.NewReader(contextTar)
	header, err := packed.Next()
	if err != nil || header.Name != opts.Dockerfile {
		return errors.Join(err, errors.New("no Dockerfile"))
	}
	text, err := io.ReadAll(packed)
	m.dockerfile, m.built = string(text), opts
	m.images[opts.Tag] = opts.Args[ArgFinalUser]
	return err
}

func (m *memory) ImageUser(_ context.Context, ref string) (string, error) { return m.images[ref], nil }

const (
	sandboxTarget = "openclaw-sandbox:bookworm-slim"
	commonTarget  = "openclaw-sandbox-common:bookworm-slim"
)

func debian(t *testing.T) string {
	t.Helper()
	return defaultsOf(t, "sandbox")[ArgBaseImage]
}

func find(t *testing.T, name string) Recipe {
	t.Helper()
	recipe, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return recipe
}

func defaultsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	defaults, err := find(t, name).Defaults()
	if err != nil {
		t.Fatal(err)
	}
	return defaults
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	common := defaultsOf(t, "common")
	want := map[string]string{
		"BASE_IMAGE": sandboxTarget, "INSTALL_PNPM": "1", "INSTALL_BUN": "1", "INSTALL_BREW": "1", "FINAL_USER": "sandbox",
	}
	for name, value := range want {
		if common[name] != value {
			t.Errorf("common: %s = %q, want %q", name, common[name], value)
		}
	}
	for _, name := range []string{"curl", "wget", "jq", "nodejs", "npm", "python3", "git", "golang-go", "rustc", "cargo", "build-essential"} {
		if !slices.Contains(strings.Fields(common["PACKAGES"]), name) {
			t.Errorf("common: %s is not in PACKAGES", name)
		}
	}
	sandbox := defaultsOf(t, "sandbox")
	if got := sandbox["PACKAGES"]; got != "bash ca-certificates curl git jq python3 ripgrep" {
		t.Errorf("sandbox: PACKAGES = %q", got)
	}
	if !strings.HasPrefix(sandbox["BASE_IMAGE"], "debian:bookworm-slim@sha256:") {
		t.Errorf("sandbox: BASE_IMAGE = %q is not pinned", sandbox["BASE_IMAGE"])
	}
	for name, recipe := range map[string]map[string]string{"common": common, "sandbox": sandbox} {
		for arg := range recipe {
			if checks()[arg] == nil {
				t.Errorf("%s: nothing checks %s", name, arg)
			}
		}
	}
}

func TestBuild(t *testing.T) {
	base := debian(t)
	cases := []struct {
		name   string
		recipe string
		opts   Options
		engine memory
		want   []string
		loud   string // what the progress must say
	}{
		{
			name: "base is there", recipe: "sandbox",
			engine: memory{images: map[string]string{base: ""}},
			want:   []string{"build " + sandboxTarget + " on " + base},
		},
		{
			name: "base is pulled", recipe: "sandbox",
			engine: memory{registry: []string{base}},
			want:   []string{"pull " + base, "build " + sandboxTarget + " on " + base},
		},
		{
			name: "no registry, local base made earlier", recipe: "sandbox",
			engine: memory{images: map[string]string{LocalBase: ""}},
			want:   []string{"pull " + base, "build " + sandboxTarget + " on " + LocalBase},
			loud:   "WARNING: using " + LocalBase + " instead",
		},
		{
			name: "common brings its base along", recipe: "common",
			engine: memory{registry: []string{base}},
			want:   []string{"pull " + base, "build " + sandboxTarget + " on " + base, "build " + commonTarget + " on " + sandboxTarget},
			loud:   "building it first",
		},
		{
			name: "another target and base", recipe: "common",
			opts:   Options{Target: "mine:1", Args: map[string]string{ArgBaseImage: "my/base:2", ArgPackages: "nodejs npm", ArgInstallBrew: "0"}},
			engine: memory{registry: []string{"my/base:2"}},
			want:   []string{"pull my/base:2", "build mine:1 on my/base:2"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			recipe := find(t, c.recipe)
			if c.engine.images == nil {
				c.engine.images = map[string]string{}
			}
			var progress bytes.Buffer
			target, err := Build(t.Context(), &c.engine, recipe, c.opts, &progress)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := c.engine.images[target]; !ok {
				t.Errorf("returned %q, which was not built", target)
			}
			if diff := cmp.Diff(c.want, c.engine.asked); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(progress.String(), c.loud) {
				t.Errorf("progress does not say %q:\n%s", c.loud, &progress)
			}
			for name, value := range c.opts.Args {
				if c.engine.built.Args[name] != value {
					t.Errorf("argument %s = %q, want %q", name, c.engine.built.Args[name], value)
				}
			}
		})
	}
}

func TestAnotherBaseIsNeverExchanged(t *testing.T) {
	engine := memory{images: map[string]string{LocalBase: ""}}
	recipe := find(t, "sandbox")
	_, err := Build(t.Context(), &engine, recipe, Options{Args: map[string]string{ArgBaseImage: "company/base:1"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "company/base:1") || errhint.Of(err) == "" {
		t.Errorf("error %v, hint %q", err, errhint.Of(err))
	}
	if len(engine.images) != 1 {
		t.Errorf("images %v: something was made", engine.images)
	}
}

func TestSilentRegistryIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory{images: map[string]string{LocalBase: ""}, silent: true}
		recipe := find(t, "sandbox")
		var progress bytes.Buffer
		if _, err := Build(t.Context(), &engine, recipe, Options{}, &progress); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(progress.String(), "no answer for 30s") {
			t.Errorf("progress does not give the reason:\n%s", &progress)
		}
	})
}

func TestCancelledPullIsNoReasonForAnotherBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memory{images: map[string]string{LocalBase: ""}, silent: true}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		recipe := find(t, "sandbox")
		if _, err := Build(ctx, &engine, recipe, Options{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if len(engine.asked) != 1 {
			t.Errorf("asked %v", engine.asked)
		}
	})
}

func TestLayersRestoreTheUser(t *testing.T) {
	cases := []struct {
		name, recipe, baseUser, want string
		opts                         Options
	}{
		{"recipe's user", "sandbox", "node", "sandbox", Options{}},
		{"user that was asked for", "sandbox", "node", "dev", Options{Args: map[string]string{ArgFinalUser: "dev"}}},
		{"user of an image", "extend", "node", "node", Options{Target: "mine"}},
		{"user of an image by number", "extend", "1000:1000", "1000:1000", Options{Target: "mine"}},
		{"image without a user", "extend", "", "root", Options{Target: "mine"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			engine := memory{images: map[string]string{"base": c.baseUser}}
			recipe := find(t, c.recipe)
			args := map[string]string{ArgBaseImage: "base"}
			maps.Copy(args, c.opts.Args)
			c.opts.Args, c.opts.With = args, []string{"gh"}
			if _, err := Build(t.Context(), &engine, recipe, c.opts, nil); err != nil {
				t.Fatal(err)
			}
			if got := engine.built.Args[ArgFinalUser]; got != c.want {
				t.Errorf("final user %q, want %q", got, c.want)
			}
			if lines := strings.Split(strings.TrimSpace(engine.dockerfile), "\n"); lines[len(lines)-1] != "USER ${FINAL_USER}" {
				t.Errorf("the Dockerfile ends with %q", lines[len(lines)-1])
			}
		})
	}
}

func TestBadRequestsAreRefusedAtOnce(t *testing.T) {
	cases := []struct {
		name, recipe string
		opts         Options
		want         []string
	}{
		{"several mistakes", "common", Options{Args: map[string]string{
			ArgPackages: "curl $(reboot)", ArgInstallBun: "yes", ArgFinalUser: "Root User", "PACKAGE": "x", ArgBaseImage: "-x",
		}, Target: "a b"}, []string{
			`PACKAGES: "$(reboot)" is not`, `INSTALL_BUN: "yes" is neither 0 nor 1`, `FINAL_USER: "Root User" is not`,
			"no parameter PACKAGE", `BASE_IMAGE: "-x" is not`, `target: "a b" is not`,
		}},
		{"switch that the recipe lacks", "sandbox", Options{Args: map[string]string{ArgInstallBrew: "1"}}, []string{"no parameter INSTALL_BREW"}},
		{"extend of nothing", "extend", Options{}, []string{"no base image", "no name for the result", "nothing to add"}},
		{"unknown layer", "sandbox", Options{With: []string{"../sandbox/Dockerfile"}}, []string{"not known"}},
		{"option among packages", "sandbox", Options{Args: map[string]string{ArgPackages: "-oDir=/x"}}, []string{`"-oDir=/x" is not`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			recipe := find(t, c.recipe)
			engine := memory{images: map[string]string{}}
			_, err := Build(t.Context(), &engine, recipe, c.opts, nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not hold %q:\n%v", want, err)
				}
			}
			if len(engine.asked) > 0 {
				t.Errorf("the engine was asked %v", engine.asked)
			}
		})
	}
}

func TestUnknownRecipeNamesTheKnown(t *testing.T) {
	_, err := Find("sandbx")
	if err == nil || !strings.Contains(errhint.Of(err), "sandbox, common, extend") {
		t.Errorf("error %v, hint %q", err, errhint.Of(err))
	}
}

// The program that makes the base is stood in for by a script, because the real
// one takes half a minute; scripts/test-engine.sh runs it.
func TestBaseFromPackages(t *testing.T) {
	cases := []struct {
		name, mmdebstrap string
		want             string // error, "" for success
	}{
		{"works", "exec cat /dev/null", ""},
		{"fails half way", "echo part; echo 'E: cannot resolve host' >&2; exit 9", "E: cannot resolve host"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "mmdebstrap"), []byte("#!/bin/sh\n"+c.mmdebstrap+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			engine := memory{images: map[string]string{}}
			recipe := find(t, "sandbox")
			var progress bytes.Buffer
			_, err := Build(t.Context(), &engine, recipe, Options{}, &progress)
			if !strings.Contains(progress.String(), "WARNING: making "+LocalBase) {
				t.Errorf("progress does not say what happens:\n%s", &progress)
			}
			_, made := engine.images[LocalBase]
			if made != (c.want == "") {
				t.Errorf("base made = %v", made)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errhint.Of(err) == "") {
				t.Errorf("error %v, hint %q", err, errhint.Of(err))
			}
		})
	}
}

func TestFailedBuildSaysWhatItsStepSaid(t *testing.T) {
	cases := []struct{ name, output, want string }{
		{"engine's lines do not count", "Step 1/2 : RUN x\n ---> Running in 1\nno network\nset X=0\nRemoving intermediate container 1\n", "no network · set X=0"},
		{"nothing was said", "Step 1/2 : RUN x\n", "exit code 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			output := &lastLines{Writer: io.Discard}
			if _, err := io.WriteString(output, c.output); err != nil {
				t.Fatal(err)
			}
			cause := errors.New("exit code 1")
			err := failure("x:1", output, cause)
			if want := "image x:1: build failed: " + c.want; err.Error() != want || !errors.Is(err, cause) {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}

func TestKeptOutputIsBounded(t *testing.T) {
	output := &lastLines{Writer: io.Discard}
	for range 100 {
		if _, err := output.Write(bytes.Repeat([]byte("x"), keptOutput/2)); err != nil {
			t.Fatal(err)
		}
	}
	if len(output.text) != keptOutput {
		t.Errorf("%d bytes kept, want %d", len(output.text), keptOutput)
	}
}
