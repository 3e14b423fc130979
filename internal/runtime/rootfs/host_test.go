package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func open(t *testing.T, o Options) *Store {
	t.Helper()
	o.Volatile = true
	s, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHostRootHoldsProgramsAndGeneratedFilesOnly(t *testing.T) {
	s := open(t, Options{})
	root, pin, err := s.Resolve(t.Context(), "", Identity{UID: 1234, GID: 1235, Home: "/workspace"})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	if root.Name != HostName || !strings.HasPrefix(root.ID, "host:") || len(root.Layers) != 1 {
		t.Fatalf("root = %+v", root)
	}
	allowed := append(slices.Clone(programs), append(publicEtc, bundleTarget, javaStore)...)
	for _, b := range root.Binds {
		if java, _ := filepath.Match(javaSettings, b.Target); !java && !slices.Contains(allowed, b.Target) {
			t.Errorf("%s is shown at %s", b.Source, b.Target)
		}
		info, err := os.Lstat(b.Source)
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			t.Errorf("source %s: %v, %v", b.Source, info, err)
		}
		place, err := os.Lstat(filepath.Join(root.Layers[0], b.Target))
		if err != nil || place.IsDir() != info.IsDir() {
			t.Errorf("place for %s: %v, %v", b.Target, place, err)
		}
	}
	passwd, err := os.ReadFile(filepath.Join(root.Layers[0], "etc/passwd"))
	if err != nil || !strings.Contains(string(passwd), "sandbox:x:1234:1235:sandbox:/workspace:/bin/sh\n") {
		t.Errorf("passwd = %q, %v", passwd, err)
	}
}

// fakeHost makes a small host whose /bin is a link, with settings and a home
// where they should not be seen.
func fakeHost(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, d := range []string{"usr/bin", "usr/lib", "usr/local/etc", "usr/people/ann", "etc/ssl/certs", "etc/alternatives", "opt/lib64", "sbin"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, to := range map[string]string{"bin": "usr/bin", "lib": "/usr/lib", "lib64": "opt/lib64"} {
		if err := os.Symlink(to, filepath.Join(base, path)); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{"etc/shadow": 0o600, "etc/ld.so.cache": 0o600, "etc/ssl/certs/ca-certificates.crt": 0o644} {
		if err := os.WriteFile(filepath.Join(base, path), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func TestHostRootFollowsTheHostsLayout(t *testing.T) {
	base := fakeHost(t)
	s := open(t, Options{hostBase: base, Hide: []string{base + "/usr/people/ann", base + "/opt/lib64", "/nowhere"}})
	root, pin, err := s.Resolve(t.Context(), "host", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	want := []Bind{
		{base + "/usr", "/usr"}, {base + "/sbin", "/sbin"}, {base + "/opt/lib64", "/lib64"},
		{base + "/etc/alternatives", "/etc/alternatives"}, {base + "/etc/ssl/certs/ca-certificates.crt", bundleTarget},
	}
	if !slices.Equal(root.Binds, want) {
		t.Errorf("binds = %v, want %v", root.Binds, want)
	}
	if want := []string{"/usr/local/etc", "/usr/people/ann"}; !slices.Equal(root.Masks, want) {
		t.Errorf("masks = %v, want %v", root.Masks, want)
	}
	for path, want := range map[string]string{"bin": "usr/bin", "lib": "usr/lib"} {
		if got, err := os.Readlink(filepath.Join(root.Layers[0], path)); got != want {
			t.Errorf("/%s leads to %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestHostFingerprintFollowsPrograms(t *testing.T) {
	base := fakeHost(t)
	id := func() string {
		v, err := newHostView(base, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.fingerprint()
	}
	before := id()
	if again := id(); again != before {
		t.Errorf("two looks at an unchanged host differ: %s, %s", before, again)
	}
	if err := os.WriteFile(filepath.Join(base, "usr/bin/new-program"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if id() == before {
		t.Error("a new program did not change the fingerprint")
	}
}

func TestEqualIdentitiesShareTheirGeneratedLayer(t *testing.T) {
	s := open(t, Options{})
	layer := func(id Identity) string {
		root, pin, err := s.Resolve(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		pin.Release()
		return root.Layers[0]
	}
	one := layer(Identity{UID: 1000, GID: 1000})
	if two := layer(Identity{UID: 1000, GID: 1000}); one != two {
		t.Errorf("%s and %s", one, two)
	}
	if other := layer(Identity{UID: 1000, GID: 1000, Hosts: []string{"db:10.0.0.1"}}); other == one {
		t.Error("another table of hosts is the same layer")
	}
}
