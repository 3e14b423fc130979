package debian

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Addresses are left out, names are checked: they become paths.
func TestParseURIs(t *testing.T) {
	got, err := parseURIs([]byte("'scheme://mirror/pool/b_2%3a1.0-1_all.deb' b_2%3a1.0-1_all.deb 20 MD5Sum:00\n'scheme://mirror/pool/a_1+x_amd64.deb' a_1+x_amd64.deb 10 \nReading\n"))
	if err != nil || len(got) != 2 || got[0] != (Archive{"a_1+x_amd64.deb", 10}) || got[1] != (Archive{"b_2%3a1.0-1_all.deb", 20}) {
		t.Errorf("%+v %v", got, err)
	}
	for _, line := range []string{"", "'x' ../../etc/passwd 10", "'x' a_1_amd64.deb many", "'x' -option 10", "'x' a_1_amd64.deb/b 3"} {
		if got, err := parseURIs([]byte(line)); err == nil {
			t.Errorf("%q is taken as %+v", line, got)
		}
	}
}

// The packages of a repository without a signature are refused, whatever the
// machine's configuration allows.
func TestUnsignedRepository(t *testing.T) {
	need.Program(t, "apt-get", "apt")
	repository, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(repository, "Packages"), []byte("Package: evil\nEssential: yes\nVersion: 1\nArchitecture: all\nFilename: evil_1_all.deb\nSize: 1\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sources := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(sources, []byte("deb file:"+repository+" ./\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := (&Client{Sources: sources}).Resolve(t.Context(), filepath.Join(dir, "apt"), []string{"evil"})
	if err == nil || !strings.Contains(errhint.Of(err), "apt-get update") {
		t.Errorf("%+v %v, hint %q", got, err, errhint.Of(err))
	}
}
