package npm

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The limits of a resolved tree.
const (
	maxPackages = 5000
	maxTree     = 64 << 20 // bytes of a package-lock.json
)

// Package is one package of a resolved tree.
type Package struct {
	Path     string // where it is installed: node_modules/…
	Name     string
	Version  string
	SHA512   string // of its archive, in hexadecimal digits
	Optional bool   // the program works without it
	Scripts  bool   // it has scripts to run when it is installed
}

// File is the name of the package's archive in a directory of fetched archives.
func (p Package) File() string { return p.SHA512 + ".tgz" }

// spec is what npm calls the package.
func (p Package) spec() string { return p.Name + "@" + p.Version }

// Platform is what programs are fetched for.
type Platform struct{ OS, CPU, Libc string }

// ThisMachine returns the platform of this machine's programs.
func ThisMachine(musl bool) Platform {
	p := Platform{OS: "linux", CPU: runtime.GOARCH, Libc: "glibc"}
	if p.CPU == "amd64" {
		p.CPU = "x64"
	}
	if musl {
		p.Libc = "musl"
	}
	return p
}

// allows reports whether a list of a package's field (os, cpu, libc) allows a value. An
// entry with "!" excludes one.
func allows(list []string, value string) bool {
	if len(list) == 0 || value == "" {
		return true
	}
	if slices.Contains(list, "!"+value) {
		return false
	}
	return slices.Contains(list, value) || slices.Contains(list, "any") || !slices.ContainsFunc(list, func(s string) bool { return !strings.HasPrefix(s, "!") })
}

// lockfile is the part of a package-lock.json that is read.
type lockfile struct {
	LockfileVersion int                  `json:"lockfileVersion"`
	Packages        map[string]lockEntry `json:"packages"`
}

type lockEntry struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Integrity   string `json:"integrity"`
	Optional    bool   `json:"optional"`
	DevOptional bool   `json:"devOptional"`
	InBundle    bool   `json:"inBundle"`
	Link        bool   `json:"link"`
	Scripts     bool   `json:"hasInstallScript"`

	OS   words `json:"os"`
	CPU  words `json:"cpu"`
	Libc words `json:"libc"`
}

// words is a list of words, or one word.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = words{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(data, &all)
	*w = all
	return err
}

var (
	pathForm    = lazyregexp.New(`^node_modules/(@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*(/node_modules/(@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*)*$`)
	nameForm    = lazyregexp.New(`^(@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`)
	versionForm = lazyregexp.New(`^[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$`)
)

// parseLock returns the packages of a package-lock.json that belong on a platform, by
// path.
func parseLock(data []byte, on Platform) ([]Package, error) {
	var lock lockfile
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	if lock.LockfileVersion < 2 || len(lock.Packages) > maxPackages {
		return nil, fmt.Errorf("package-lock.json: version %d with %d packages; it must be 2 or later, with at most %d", lock.LockfileVersion, len(lock.Packages), maxPackages)
	}
	var all []Package
	for path, e := range lock.Packages {
		if path == "" || e.InBundle || !e.fits(on) {
			continue
		}
		p, err := e.pack(path)
		if err != nil {
			return nil, fmt.Errorf("package-lock.json: %.200q: %w", path, err)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Package) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

func (e *lockEntry) fits(on Platform) bool {
	return allows(e.OS, on.OS) && allows(e.CPU, on.CPU) && allows(e.Libc, on.Libc)
}

// pack checks an entry: all of it becomes part of paths and command lines.
func (e *lockEntry) pack(path string) (Package, error) {
	name := cmp.Or(e.Name, nameOf(path))
	switch {
	case e.Link:
		return Package{}, errors.New("is a link to a directory")
	case !pathForm.MatchString(path), !nameForm.MatchString(name), !versionForm.MatchString(e.Version):
		return Package{}, fmt.Errorf("name %.200q and version %.100q are not those of a published package", name, e.Version)
	}
	sum, err := sha512Of(e.Integrity)
	return Package{Path: path, Name: name, Version: e.Version, SHA512: sum, Optional: e.Optional || e.DevOptional, Scripts: e.Scripts}, err
}

// nameOf returns the name of the package that is installed at a path, "" if none is.
func nameOf(path string) string {
	const dir = "node_modules/"
	if at := strings.LastIndex(path, dir); at >= 0 {
		return path[at+len(dir):]
	}
	return ""
}

const sha512Size = 64

// sha512Of returns the SHA-512 of an integrity field, in hexadecimal digits.
func sha512Of(integrity string) (string, error) {
	for word := range strings.FieldsSeq(integrity) {
		text, ok := strings.CutPrefix(word, "sha512-")
		sum, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && len(sum) == sha512Size {
			return hex.EncodeToString(sum), nil
		}
	}
	return "", fmt.Errorf("no SHA-512 in its integrity %.100q", integrity)
}
