//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// sdkLanguage is a language that has a package: where its examples and the program that
// runs them are installed, and how its comments begin.
type sdkLanguage struct {
	examples string
	program  []string
	comment  string
}

var sdkLanguages = []sdkLanguage{
	{"python/examples/*.py", []string{"venv/bin/python", "-W", "error"}, "#"},
	{"project/examples/*.ts", []string{"node"}, "//"},
}

// installedSDKs returns the directory in which installSDKs has installed the packages,
// once for all tests.
func installedSDKs(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(sdkVariable); dir != "" {
		return dir
	}
	tools, err := sdkTools(t.Context())
	if err != nil {
		need.Missing(t, err)
	}
	dir, err := installOnce(tools)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sdksInstalled is what is removed after all tests.
var sdksInstalled struct {
	once sync.Once
	dir  string
	err  error
}

func installOnce(tools string) (string, error) {
	s := &sdksInstalled
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "sdks"); s.err == nil {
			s.err = errors.Join(os.Chmod(s.dir, 0o755), installSDKs(s.dir, tools)) // others enter it
		}
	})
	return s.dir, s.err
}

// installSDKs builds the packages, checks their types, and installs them into clean
// directories of mode 0755, beside their examples.
func installSDKs(dir, tools string) error {
	all, ctx := errgroup.WithContext(context.Background())
	all.Go(func() error { return installPython(ctx, dir) })
	all.Go(func() error { return installTypeScript(ctx, dir, tools) })
	return all.Wait()
}

// installPython makes a wheel, installs it into a virtual environment and tests it there.
func installPython(ctx context.Context, dir string) error {
	if err := os.CopyFS(filepath.Join(dir, "python"), os.DirFS("../../sdk/python")); err != nil {
		return err
	}
	return steps(ctx, dir, `
MYPYPATH=python/src /usr/bin/mypy --strict --python-version 3.9 --cache-dir /dev/null --scripts-are-modules python/src/atoll python/examples/*.py python/test/*.py
/usr/bin/python3 -m pip -q --no-cache-dir wheel --no-index --no-build-isolation --no-deps -w . ./python
/usr/bin/python3 -m venv --without-pip venv
/usr/bin/python3 -m pip -q --no-cache-dir --python venv/bin/python install --no-index --no-deps ./atoll-0.1.0-py3-none-any.whl
PYTHONDONTWRITEBYTECODE=1 venv/bin/python -W error -m unittest discover -s python/test
`)
}

// installTypeScript tests and packs the package, installs it into a project, and compiles
// the examples there. Its types are those of the gateway's description.
func installTypeScript(ctx context.Context, dir, tools string) error {
	for _, err := range []error{
		steps(ctx, "../..", filepath.Join(tools, ".bin", "node")+" sdk/typescript/scripts/types.mjs --check"),
		steps(ctx, "../../sdk/typescript", "mkdir "+dir+"/typescript && cp -r package.json tsconfig.json README.md src test examples "+dir+"/typescript"),
		os.Symlink(filepath.Join(tools, ".bin", "node"), filepath.Join(dir, "node")),
		os.Symlink(tools, filepath.Join(dir, "node_modules")),
		steps(ctx, "../..", `ln -s "$(scripts/sdks.sh dir)/node_modules/.bin/node" `+dir+`/node24`),
	} {
		if err != nil {
			return err
		}
	}
	return steps(ctx, dir, `
export PATH="$PWD/node_modules/.bin:$PATH" # the oldest Node, whatever the machine has
npm="npm --silent --offline --no-audit --no-fund --no-update-notifier"
cd typescript
$npm pack --pack-destination ..
node --test test/*.test.mjs
mkdir ../project
mv examples ../project
cd ../project
echo '{"private": true, "type": "module"}' >package.json
$npm install ../atoll-0.1.0.tgz
tsc -p examples
`)
}

// steps runs lines of a shell, each of which must succeed.
func steps(ctx context.Context, dir, script string) error {
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// sdkTools returns the directory of the modules that build sdk/typescript, or what is
// missing to build the packages.
func sdkTools(ctx context.Context) (string, error) {
	for _, program := range []string{"/usr/bin/pip3", "/usr/bin/mypy", "npm", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: run scripts/deps.sh", err)
		}
	}
	if _, err := sdkModules(ctx); err != nil { // has a new Node
		return "", err
	}
	return sdkModules(ctx, "typescript")
}

// sdkModules returns the modules of a group that scripts/sdks.sh has installed.
func sdkModules(ctx context.Context, group ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "../../scripts/sdks.sh", append([]string{"dir"}, group...)...).Output()
	if err != nil {
		return "", err
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		return "", fmt.Errorf("%w: run scripts/sdks.sh up %s", err, strings.Join(group, ""))
	}
	return filepath.Join(dir, "node_modules"), nil
}

// The versions of what builds the package are locked, and no registry is named.
func TestTypeScriptLock(t *testing.T) {
	lock, err := os.ReadFile("../../sdk/typescript/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(lock, []byte(`"node_modules/typescript"`)) || bytes.Contains(lock, []byte("://")) || bytes.Contains(lock, []byte(`"resolved"`)) {
		t.Error("package-lock.json names a registry: run npm install --omit-lockfile-registry-resolved in sdk/typescript")
	}
}
