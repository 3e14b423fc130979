package npm

import (
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

func integrity(content string) string {
	sum := sha512.Sum512([]byte(content))
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func lockOf(entries string) []byte {
	return []byte(`{"lockfileVersion": 3, "packages": {"": {}` + entries + `}}`)
}

func entryOf(path, fields string) string {
	return fmt.Sprintf(`, %q: {"version": "1.0.0", "integrity": %q %s}`, path, integrity(path), fields)
}

// Of a tree only what belongs on this platform is taken, without what is in another
// package's archive.
func TestParseLock(t *testing.T) {
	on := Platform{OS: "linux", CPU: "x64", Libc: "glibc"}
	tree, err := parseLock(lockOf(
		entryOf("node_modules/@scope/tool", `, "hasInstallScript": true`)+
			entryOf("node_modules/@scope/tool/node_modules/inner", "")+
			entryOf("node_modules/alias", `, "name": "@scope/real", "optional": true, "os": ["linux"], "cpu": ["x64"], "libc": "glibc"`)+
			entryOf("node_modules/mac", `, "os": ["darwin"]`)+
			entryOf("node_modules/arm", `, "cpu": ["arm64"]`)+
			entryOf("node_modules/musl", `, "libc": ["musl"]`)+
			entryOf("node_modules/notlinux", `, "os": ["!linux"]`)+
			entryOf("node_modules/bundled", `, "inBundle": true`)), on)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range tree {
		got = append(got, fmt.Sprint(p.Path, " ", p.spec(), " ", p.Optional, " ", p.Scripts))
	}
	want := []string{
		"node_modules/@scope/tool @scope/tool@1.0.0 false true",
		"node_modules/@scope/tool/node_modules/inner inner@1.0.0 false false",
		"node_modules/alias @scope/real@1.0.0 true false",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// A tree is made by a registry: paths that lead out, names that are options, versions
// that are addresses, and packages without a SHA-512 are refused.
func TestParseLockRefuses(t *testing.T) {
	for name, lock := range map[string][]byte{
		"path":      lockOf(entryOf("node_modules/../../etc", "")),
		"absolute":  lockOf(entryOf("/node_modules/a", "")),
		"space":     lockOf(entryOf("node_modules/a b", "")),
		"newline":   lockOf(entryOf("node_modules/a\nb", "")),
		"outside":   lockOf(entryOf("other/a", "")),
		"option":    lockOf(entryOf("node_modules/a", `, "name": "--registry=x"`)),
		"version":   lockOf(`, "node_modules/a": {"version": "git+ssh://x", "integrity": "` + integrity("a") + `"}`),
		"link":      lockOf(entryOf("node_modules/a", `, "link": true`)),
		"sha1":      lockOf(`, "node_modules/a": {"version": "1.0.0", "integrity": "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}`),
		"no sum":    lockOf(`, "node_modules/a": {"version": "1.0.0"}`),
		"old":       []byte(`{"lockfileVersion": 1, "packages": {}}`),
		"not JSON":  []byte("lockfileVersion: 3"),
		"truncated": lockOf(entryOf("node_modules/a", ""))[:60],
	} {
		if tree, err := parseLock(lock, Platform{OS: "linux"}); err == nil {
			t.Errorf("%s: taken as %+v", name, tree)
		}
	}
}

// scripted is a client whose npm is a script. Arguments of npm pack are in $@.
func scripted(t *testing.T, script string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "npm")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Client{Program: path}
}

func packageOf(name, content string) Package {
	sum := sha512.Sum512([]byte(content))
	return Package{Path: "node_modules/" + name, Name: name, Version: "1.0.0", SHA512: fmt.Sprintf("%x", sum)}
}

// What was fetched is not fetched again, and an archive that is not what was resolved
// is not kept.
func TestFetch(t *testing.T) {
	dir := t.TempDir()
	good, bad := packageOf("good", "good@1.0.0"), packageOf("bad", "something else")
	// It writes each spec into a file of its own in its working directory.
	client := scripted(t, `for a; do case $a in *@1.0.0) printf %s "$a" >"${a%%@*}.tgz"; echo "$a" >>"`+dir+`/../asked";; esac; done`)
	err := client.Fetch(t.Context(), dir, []Package{good, bad}, nil)
	if err == nil || !strings.Contains(err.Error(), "bad@1.0.0: the archive is not the one that was resolved") {
		t.Fatalf("%v", err)
	}
	if err := client.Fetch(t.Context(), dir, []Package{good}, nil); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 || entries[0].Name() != good.File() {
		t.Errorf("left: %v", entries)
	}
	asked, _ := os.ReadFile(filepath.Join(dir, "../asked"))
	if got := strings.Count(string(asked), "good"); got != 1 {
		t.Errorf("asked %d times for good", got)
	}
}

// Failures say what to do next.
func TestFailures(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'npm error code ENOTFOUND' >&2; exit 1":  "`npm ping`",
		"echo 'npm error code ENOSPC' >&2; exit 1":     "free space",
		"echo 'npm error code ETARGET' >&2; exit 1":    "no such version",
		"echo 'npm error code E404 - Not' >&2; exit 1": "does not have that package",
		"exit 3": "run the same command again",
	} {
		_, err := scripted(t, script).Resolve(t.Context(), t.TempDir(), Platform{}, []string{"a@1"})
		if err == nil || !strings.Contains(errhint.Of(err), want) {
			t.Errorf("%s: %v, hint %q", script, err, errhint.Of(err))
		}
	}
	if _, err := (&Client{Program: "no-such-npm"}).Resolve(t.Context(), t.TempDir(), Platform{}, []string{"a@1"}); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// The packages of a pnpm lockfile are those of a registry, of whichever version the file is.
func TestParsePnpmLock(t *testing.T) {
	lock := func(packages string) []byte {
		return []byte("lockfileVersion: '9.0'\n\npackages:\n\n" + packages + "\nsnapshots:\n\n  other@1.0.0: {}\n")
	}
	entry := func(key, more string) string {
		return fmt.Sprintf("  '%s':\n    resolution: {integrity: %s%s}\n\n", key, integrity(key), more)
	}
	list, err := ParsePnpmLock(lock(entry("is-number@7.0.0", "") + entry("@scope/name@1.2.3-beta.1", "") + entry("/old@1.0.0(peer@2.0.0)", "")))
	if err != nil || len(list) != 3 || list[0].spec() != "@scope/name@1.2.3-beta.1" || list[1].spec() != "is-number@7.0.0" || list[2].spec() != "old@1.0.0" {
		t.Errorf("%+v %v", list, err)
	}
	for name, text := range map[string]string{
		"tarball": entry("a@1.0.0", ", tarball: file:///etc/passwd"),
		"address": entry("a@https://example.com/a.tgz", ""),
		"path":    entry("../a@1.0.0", ""),
		"option":  entry("--x@1.0.0", ""),
		"git":     "  a@1.0.0:\n    resolution: {repo: x, commit: y, type: git}\n",
		"no sum":  "  a@1.0.0:\n    resolution: {}\n",
		"empty":   "",
		"bomb":    "  a: &a [x,x]\n  b: [*a,*a]\n",
	} {
		if list, err := ParsePnpmLock(lock(text)); err == nil {
			t.Errorf("%s: taken as %+v", name, list)
		}
	}
}
