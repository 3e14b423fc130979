package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// programs are the directories that a host keeps its programs in. Where one is
// a link into another, as /bin is on most systems, the link is made again.
var programs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// publicEtc are the parts of the host's /etc that programs of /usr cannot do
// without and that hold nothing but names of files in /usr and certificates of
// public authorities; what Java needs is in addJava. Everything else in /etc is
// generated.
//   - alternatives: links such as /usr/bin/awk go through it
//   - ld.so.cache: where libraries are, for the dynamic loader
//   - fonts: which fonts of /usr there are and which is taken for which
//   - the bundle of certificates: one file, never the directory around it
var publicEtc = []string{"/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache"}

// bundles are the places where systems keep the certificates they trust.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

const bundleTarget = "/etc/ssl/certs/ca-certificates.crt"

// privateDirs are directories below /usr in which administrators keep settings.
// A sandbox of root's could read files there that are only for root.
var privateDirs = []string{"/usr/etc", "/usr/local/etc"}

// hostView is the host as a sandbox sees it.
type hostView struct {
	base    string // "" but in tests: a directory to take for /
	hide    []string
	entries []entry
	binds   []Bind
	masks   []string
}

// newHostView finds out what is there. Paths in hide, such as the state
// directory, are covered if they lie in what is shown.
func newHostView(base string, hide []string) (*hostView, error) {
	v := &hostView{base: base, hide: hide}
	for _, path := range programs {
		if err := v.addPrograms(path); err != nil {
			return nil, err
		}
	}
	if len(v.binds) == 0 {
		return nil, errors.New("this host has no /usr to show")
	}
	v.addEtc()
	v.addMasks()
	return v, nil
}

func (v *hostView) real(path string) string { return filepath.Join(v.base, path) }

// addPrograms shows one directory: as the link that it is, or itself.
func (v *hostView) addPrograms(path string) error {
	info, err := os.Lstat(v.real(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	name := path[1:]
	if info.Mode()&fs.ModeSymlink == 0 {
		v.entries = append(v.entries, dir(name))
		v.binds = append(v.binds, Bind{v.real(path), path})
		return nil
	}
	target, err := os.Readlink(v.real(path))
	if err != nil {
		return err
	}
	if inside := filepath.Join("/", target); strings.HasPrefix(inside, "/usr/") {
		v.entries = append(v.entries, link(name, strings.TrimPrefix(inside, "/")))
		return nil
	}
	source, err := filepath.EvalSymlinks(v.real(path))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	v.entries = append(v.entries, dir(name))
	v.binds = append(v.binds, Bind{source, path})
	return nil
}

func (v *hostView) addEtc() {
	for _, path := range publicEtc {
		v.addPublic(path, path)
	}
	v.entries = append(v.entries, dir("etc/ssl"), dir("etc/ssl/certs"))
	v.addJava()
	for _, path := range bundles {
		if v.addPublic(path, bundleTarget) {
			v.entries = append(v.entries, link("etc/ssl/cert.pem", "certs/ca-certificates.crt"))
			return
		}
	}
}

// public returns what a path of /etc leads to; ok is false unless everybody on the
// host may read it.
func (v *hostView) public(path string) (source string, info fs.FileInfo, ok bool) {
	source, err := filepath.EvalSymlinks(v.real(path))
	if err != nil {
		return "", nil, false
	}
	info, err = os.Lstat(source)
	return source, info, err == nil && info.Mode().Perm()&0o004 != 0
}

// addPublic shows one path of /etc if everybody on the host may read it anyway.
func (v *hostView) addPublic(path, target string) bool {
	source, info, ok := v.public(path)
	switch {
	case !ok:
		return false
	case info.IsDir():
		v.entries = append(v.entries, dir(target[1:]))
	case info.Mode().IsRegular():
		v.entries = append(v.entries, file(target[1:], ""))
	default:
		return false
	}
	v.binds = append(v.binds, Bind{source, target})
	return true
}

// addMasks covers what must not be seen of the directories shown.
func (v *hostView) addMasks() {
	for _, path := range privateDirs {
		if info, err := os.Lstat(v.real(path)); err == nil && info.IsDir() {
			v.masks = append(v.masks, path)
		}
	}
	for _, path := range v.hide {
		if seen, ok := v.seenAt(path); ok {
			v.masks = append(v.masks, seen)
		}
	}
}

// seenAt is where a host path would be visible inside.
func (v *hostView) seenAt(path string) (string, bool) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	for _, b := range v.binds {
		if rel, err := filepath.Rel(b.Source, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.Join(b.Target, rel), true
		}
	}
	return "", false
}

// watched are the files and directories that change when programs of the host
// do: a package manager's record, and the directories that get new names.
var watched = []string{
	"/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite", "/usr/lib/sysimage/rpm/rpmdb.sqlite", "/lib/apk/db/installed", "/var/lib/pacman/local",
	"/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local/bin", "/usr/local/lib",
	"/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache",
}

const maxRelease = 64 << 10 // of os-release

// fingerprint changes when the host's programs do. It is cheap, so it can miss
// a file that was overwritten in place by hand.
func (v *hostView) fingerprint() string {
	sum := sha256.New()
	if f, err := os.Open(v.real("/usr/lib/os-release")); err == nil {
		_, _ = io.Copy(sum, io.LimitReader(f, maxRelease))
		_ = f.Close()
	}
	for _, path := range watched {
		var st unix.Stat_t
		if unix.Stat(v.real(path), &st) == nil {
			fmt.Fprintf(sum, "%s %d %d %d %d.%d\n", path, st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec)
		}
	}
	fmt.Fprintln(sum, v.binds, v.masks)
	return HostName + ":" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// HostID is the fingerprint of the host's programs, without opening a store.
func HostID(hide ...string) (string, error) {
	v, err := newHostView("", hide)
	if err != nil {
		return "", err
	}
	return v.fingerprint(), nil
}
