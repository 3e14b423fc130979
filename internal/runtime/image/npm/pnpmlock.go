package npm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/errhint"
)

// pnpmLock is the part of a pnpm-lock.yaml that is read.
type pnpmLock struct {
	Packages map[string]struct {
		Resolution map[string]string `yaml:"resolution"`
	} `yaml:"packages"`
}

// ParsePnpmLock returns the packages of a pnpm-lock.yaml. Packages that are not in a
// registry are refused.
func ParsePnpmLock(text []byte) ([]Package, error) {
	var lock pnpmLock
	if err := yaml.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("pnpm-lock.yaml: %w", err)
	}
	if len(lock.Packages) == 0 || len(lock.Packages) > maxPackages {
		return nil, fmt.Errorf("pnpm-lock.yaml has %d packages; there must be between 1 and %d", len(lock.Packages), maxPackages)
	}
	var list []Package
	for key, entry := range lock.Packages {
		p, err := resolved(key, entry.Resolution)
		if err != nil {
			return nil, fmt.Errorf("pnpm-lock.yaml: package %.200q: %w", key, err)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Package) int { return cmp.Compare(a.spec(), b.spec()) })
	return slices.CompactFunc(list, func(a, b Package) bool { return a.spec() == b.spec() }), nil
}

// resolved checks one package, whose key is name@version, with a slash before and peers
// in parentheses behind in older files. All of it becomes part of paths and command lines.
func resolved(key string, resolution map[string]string) (Package, error) {
	key, _, _ = strings.Cut(strings.TrimPrefix(key, "/"), "(")
	at := strings.LastIndex(key, "@")
	if at <= 0 || resolution["integrity"] == "" || resolution["tarball"] != "" {
		return Package{}, errhint.With(errors.New("is not a package of a registry"), "build the store on a machine with a container engine, or take the package from a registry")
	}
	name, version := key[:at], key[at+1:]
	if !nameForm.MatchString(name) || !versionForm.MatchString(version) {
		return Package{}, fmt.Errorf("version %.100q is not that of a published package", version)
	}
	sum, err := sha512Of(resolution["integrity"])
	return Package{Path: "node_modules/" + name, Name: name, Version: version, SHA512: sum}, err
}
