package packages_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/rootfs/packages"
)

const status = `Package: base
Essential: yes
Status: install ok installed
Architecture: amd64
Pre-Depends: libone (>= 2.0) | libother

Package: libone
Status: install ok installed
Architecture: amd64

Package: git
Status: install ok installed
Architecture: amd64
Depends: virtual-lib, absent

Package: libtwo
Status: install ok installed
Architecture: all
Provides: virtual-lib (= 3)

Package: private-app
Status: install ok installed
Architecture: all

Package: removed
Essential: yes
Status: deinstall ok config-files
Architecture: all
`

// machine makes a root with packages and with files that belong to none.
func machine(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		full := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(name, files string) { put("var/lib/dpkg/info/"+name+".list", files, 0o644) }
	put("var/lib/dpkg/status", status, 0o644)
	list("base", "/.\n/bin\n/bin/tool\n/usr\n/usr/bin\n/etc/base.conf\n/usr/share/doc/base/copyright\n/usr/sbin/gone\n/usr/lib/private.key\n/usr/bin/mawk\n")
	list("libone:amd64", "/usr/lib/libone.so\n")
	list("git", "/usr/bin/git\n/usr/local/bin/own\n/../../usr/bin/outside\n")
	list("libtwo", "/usr/lib/libtwo.so\n")
	list("private-app", "/usr/share/private-app/data\n")
	for _, name := range []string{"usr/bin/tool", "usr/lib/libone.so", "usr/bin/git", "usr/lib/libtwo.so", "usr/bin/mawk"} {
		put(name, name, 0o755)
	}
	for _, name := range []string{"etc/base.conf", "usr/share/doc/base/copyright", "usr/local/bin/own", "usr/share/private-app/data", "usr/share/secret", "root/.ssh/id"} {
		put(name, "secret", 0o644)
	}
	put("usr/lib/private.key", "secret", 0o600)
	put("etc/ssl/certs/ca-certificates.crt", "authorities", 0o644)
	for from, to := range map[string]string{"bin": "usr/bin", "usr/bin/awk": "/etc/alternatives/awk", "etc/alternatives/awk": "/usr/bin/mawk", "usr/bin/editor": "/etc/alternatives/editor", "etc/alternatives/editor": "/usr/local/bin/own"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, from)), 0o755), os.Symlink(to, filepath.Join(root, from))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A root has the files of essential packages and of what they need, and nothing that
// lies beside them: no settings, no file that is not for everybody, no /usr/local.
func TestRootOfPackages(t *testing.T) {
	var archive, again bytes.Buffer
	root := machine(t)
	if err := errors.Join(packages.Write(t.Context(), &archive, root), packages.Write(t.Context(), &again, root)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same packages make two images")
	}
	var names []string
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		if strings.Contains(string(text), "secret") {
			t.Errorf("%s is in it", h.Name)
		}
		if strings.Contains(h.Name, "..") || h.Mode&0o6000 != 0 {
			t.Errorf("%s, mode %o", h.Name, h.Mode)
		}
		names = append(names, h.Name+">"+h.Linkname)
	}
	for _, want := range []string{"bin>usr/bin", "usr/bin/tool>", "usr/lib/libone.so>", "usr/bin/git>", "usr/lib/libtwo.so>", "usr/bin/awk>/usr/bin/mawk", "etc/ssl/certs/ca-certificates.crt>", "etc/passwd>", "tmp/>"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if slices.Contains(names, "usr/bin/editor>/usr/local/bin/own") {
		t.Error("a link leads to what is not there")
	}
}

// A machine without the database is refused, with what to do.
func TestNoPackages(t *testing.T) {
	if err := packages.Write(t.Context(), io.Discard, t.TempDir()); !errors.Is(err, packages.ErrNone) {
		t.Error(err)
	}
}
