//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// installSDKs builds the packages, checks their types, and installs them into clean
// directories that everybody can read, beside their examples.
func installSDKs(t *testing.T) string {
	t.Helper()
	dir := readableDir(t)
	if err := os.CopyFS(filepath.Join(dir, "python"), os.DirFS("../../sdk/python")); err != nil {
		t.Fatal(err)
	}
	t.Run("install", func(t *testing.T) {
		t.Run("python", func(t *testing.T) {
			t.Parallel()
			installPython(t, dir)
		})
		t.Run("typescript", func(t *testing.T) {
			t.Parallel()
			installTypeScript(t, dir)
		})
	})
	return dir
}

// installPython makes a wheel and installs it into a virtual environment.
func installPython(t *testing.T, dir string) {
	t.Helper()
	need.Program(t, "/usr/bin/pip3", "python3-pip")
	need.Program(t, "/usr/bin/mypy", "mypy")
	pip := []string{"/usr/bin/python3", "-m", "pip", "-q", "--no-cache-dir"}
	step(t, dir, "/usr/bin/mypy", "--strict", "--python-version", "3.9", "--cache-dir", "/dev/null", "python/src/atoll")
	step(t, dir, append(pip, "wheel", "--no-index", "--no-build-isolation", "--no-deps", "-w", ".", "./python")...)
	step(t, dir, "/usr/bin/python3", "-m", "venv", "--without-pip", "venv")
	step(t, dir, append(pip, "--python", "venv/bin/python", "install", "--no-index", "--no-deps", "./atoll-0.1.0-py3-none-any.whl")...)
}

// installTypeScript packs the package, installs it into a project, and compiles the
// examples there. Its types are those of the gateway's description.
func installTypeScript(t *testing.T, dir string) {
	t.Helper()
	need.Program(t, "npm", "npm")
	tools := sdkTools(t)
	step(t, "../..", filepath.Join(tools, ".bin", "node"), "sdk/typescript/scripts/types.mjs", "--check")
	if err := copyTypeScript(dir); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"node": filepath.Join(tools, ".bin", "node"), "node_modules": tools} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	quiet := []string{"npm", "--silent", "--offline", "--no-audit", "--no-fund", "--no-update-notifier"}
	step(t, filepath.Join(dir, "typescript"), append(quiet, "pack", "--pack-destination", "..")...)
	step(t, filepath.Join(dir, "project"), append(quiet, "install", "../atoll-0.1.0.tgz")...)
	step(t, filepath.Join(dir, "project"), filepath.Join(tools, ".bin", "tsc"), "-p", "examples")
}

// copyTypeScript copies what is needed to build the package, and its examples into a
// project of their own.
func copyTypeScript(dir string) error {
	from, to := "../../sdk/typescript", filepath.Join(dir, "typescript")
	if err := os.CopyFS(filepath.Join(to, "src"), os.DirFS(filepath.Join(from, "src"))); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "tsconfig.json", "README.md"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	project := filepath.Join(dir, "project")
	if err := os.CopyFS(filepath.Join(project, "examples"), os.DirFS(filepath.Join(from, "examples"))); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(project, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o644)
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

// sdkTools returns the directory of the modules that build sdk/typescript.
func sdkTools(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "typescript").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up typescript", err))
	}
	return filepath.Join(dir, "node_modules")
}

// step runs a program, which must succeed.
func step(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}
