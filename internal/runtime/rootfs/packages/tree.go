package packages

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// tree is a root directory that is being written.
type tree struct {
	root  string
	tar   *tar.Writer
	names map[string]bool   // written
	dirs  map[string]string // directories of the machine, without links on the way
}

// shown are the beginnings of what is taken, and hiddenParts of what is not.
var (
	shown       = []string{"/usr/", "/bin/", "/sbin/", "/lib"}
	hiddenParts = []string{"/usr/local/", "/usr/src/", "/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/", "/usr/share/bug/"}
)

// bundle is the list of public certificate authorities, which no package contains.
const bundle = "/etc/ssl/certs/ca-certificates.crt"

// base writes what every root has: the links of its first level, empty directories,
// and a database of users.
func (t *tree) base() error {
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		target, err := os.Readlink(filepath.Join(t.root, name))
		if err == nil && !strings.Contains(target, "..") {
			err = t.link(name, strings.TrimPrefix(target, "/"))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) && !isNoLink(err) {
			return err
		}
	}
	for _, f := range []struct{ name, text string }{
		{"etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"},
		{"etc/group", "root:x:0:\nnogroup:x:65534:\nsandbox:x:1000:\n"},
		{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
	} {
		if err := t.text(f.name, f.text); err != nil {
			return err
		}
	}
	for _, name := range []string{"tmp", "var/tmp", "run", "root", "workspace", "agent", "dev", "proc", "sys"} {
		if err := t.dir(name); err != nil {
			return err
		}
	}
	return t.add(bundle)
}

func isNoLink(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && p.Op == "readlink"
}

// addPackage writes the files of a package.
func (t *tree) addPackage(p *entry) error {
	f, err := os.Open(filepath.Join(t.root, infoDir, p.name+":"+p.arch+".list"))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(filepath.Join(t.root, infoDir, p.name+".list"))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if name := path.Clean(lines.Text()); isShown(name) {
			if err := t.add(name); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func isShown(name string) bool {
	for _, part := range hiddenParts {
		if strings.HasPrefix(name+"/", part) {
			return false
		}
	}
	for _, part := range shown {
		if strings.HasPrefix(name, part) {
			return true
		}
	}
	return false
}

// add writes one file, link or directory of the machine. What is not there, or not
// for everybody to read, is left out.
func (t *tree) add(name string) error {
	dir, err := t.real(path.Dir(name))
	if err != nil {
		return nil //nolint:nilerr // a package may name what was removed
	}
	at := path.Join(dir, path.Base(name))
	if at != name && !isShown(at) {
		return nil
	}
	inside, outside := strings.TrimPrefix(at, "/"), filepath.Join(t.root, at)
	info, err := os.Lstat(outside)
	if err != nil || t.names[inside] {
		return nil //nolint:nilerr // as above
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(outside)
		if err != nil {
			return err
		}
		return t.link(inside, target)
	case info.IsDir():
		return t.dir(inside)
	case info.Mode().IsRegular() && info.Mode()&0o004 != 0:
		return t.file(inside, outside)
	}
	return nil
}

// real is a directory of the machine without links on the way, from its root.
func (t *tree) real(dir string) (string, error) {
	if known, ok := t.dirs[dir]; ok {
		return known, nil
	}
	base, err := filepath.EvalSymlinks(t.root)
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(filepath.Join(t.root, dir))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(base, full)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", errors.Join(err, fs.ErrNotExist)
	}
	t.dirs[dir] = path.Join("/", rel)
	return t.dirs[dir], nil
}

// dir writes a directory, and those that it is in.
func (t *tree) dir(name string) error {
	if name == "." || name == "" || t.names[name] {
		return nil
	}
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	t.names[name] = true
	mode := int64(0o755)
	if name == "tmp" || name == "var/tmp" {
		mode = 0o1777
	}
	return t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, ModTime: epoch})
}

func (t *tree) link(name, target string) error {
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	t.names[name] = true
	return t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: epoch})
}

func (t *tree) text(name, text string) error {
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	t.names[name] = true
	if err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o644, ModTime: epoch}); err != nil {
		return err
	}
	_, err := io.WriteString(t.tar, text)
	return err
}

// file writes a regular file. Bits beside those of access are left out.
func (t *tree) file(name, from string) error {
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	t.names[name] = true
	if err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm() &^ 0o022), ModTime: epoch}); err != nil {
		return err
	}
	_, err = io.CopyN(t.tar, f, info.Size())
	return err
}

// addAlternatives writes links such as /usr/bin/awk, which lead to a program through
// /etc/alternatives, straight to that program, if it is there.
func (t *tree) addAlternatives() error {
	for _, dir := range []string{"usr/bin", "usr/sbin"} {
		all, err := os.ReadDir(filepath.Join(t.root, dir))
		if err != nil {
			continue
		}
		for _, e := range all {
			name := path.Join(dir, e.Name())
			target, err := os.Readlink(filepath.Join(t.root, name))
			if err != nil || t.names[name] || !strings.HasPrefix(target, "/etc/alternatives/") {
				continue
			}
			if final, err := os.Readlink(filepath.Join(t.root, target)); err == nil && t.names[strings.TrimPrefix(final, "/")] {
				if err := t.link(name, final); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
