package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// addFiles writes files with their modes into a fake host.
func addFiles(t *testing.T, base string, files map[string]os.FileMode) {
	t.Helper()
	for name, mode := range files {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHostRootHasTheSettingsOfJava(t *testing.T) {
	base := fakeHost(t)
	addFiles(t, base, map[string]os.FileMode{
		"etc/java-17-openjdk/jvm.cfg": 0o644, "etc/java-17-openjdk/management/jmxremote.password": 0o600, "etc/java-17-openjdk/closed/key": 0o644,
		"etc/java-9-other/jvm.cfg": 0o644, "etc/ssl/certs/java/cacerts": 0o644, "etc/ssl/certs/java/mine": 0o644,
	})
	if err := os.Chmod(filepath.Join(base, "etc/java-17-openjdk/closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := newHostView(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/java-17-openjdk", "/etc/ssl/certs/java/cacerts"} {
		if !slices.Contains(v.binds, Bind{base + path, path}) {
			t.Errorf("%s is not shown: %v", path, v.binds)
		}
	}
	if len(v.binds) != 7 {
		t.Errorf("%d things are shown: %v", len(v.binds), v.binds)
	}
	for _, path := range []string{"/etc/java-17-openjdk/management/jmxremote.password", "/etc/java-17-openjdk/closed"} {
		if !slices.Contains(v.masks, path) {
			t.Errorf("%s is not covered: %v", path, v.masks)
		}
	}
}

func TestSettingsThatCannotBeLookedAtAreNotShown(t *testing.T) {
	base := fakeHost(t)
	files := map[string]os.FileMode{}
	for i := range maxJavaFiles {
		files[filepath.Join("etc/java-17-openjdk", "f"+string(rune('a'+i%26)), "g"+string(rune('0'+i/26)))] = 0o644
	}
	addFiles(t, base, files)
	v, err := newHostView(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(v.binds, func(b Bind) bool { return b.Target == "/etc/java-17-openjdk" }) {
		t.Errorf("%v", v.binds)
	}
}
