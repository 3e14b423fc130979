package npm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Registry fetches packages on a machine without npm, from the registry that npm's
// settings name. It resolves programs that bring everything along: packages that need
// others take npm itself.
type Registry struct {
	client *http.Client
	getenv func(string) string
}

// NewRegistry returns what fetches packages through the host's proxies.
func NewRegistry(host *outbound.Host, getenv func(string) string) *Registry {
	return &Registry{getenv: getenv, client: &http.Client{Transport: host.Transport(), Timeout: registryTime, CheckRedirect: safeRedirect}}
}

const (
	maxDescription = 64 << 20 // bytes of what a registry tells of a package
	maxArchive     = 2 << 30  // bytes of a package
	registryTime   = 10 * time.Minute
)

// description is the part of a registry's answer that is read.
type description struct {
	Tags     map[string]string   `json:"dist-tags"`
	Versions map[string]released `json:"versions"`
}

type released struct {
	Version  string            `json:"version"`
	Needs    map[string]string `json:"dependencies"`
	Optional map[string]string `json:"optionalDependencies"`
	Bundled  words             `json:"bundleDependencies"`
	Bundle   words             `json:"bundledDependencies"`
	Installs bool              `json:"hasInstallScript"`
	Scripts  map[string]string `json:"scripts"`
	OS       words             `json:"os"`
	CPU      words             `json:"cpu"`
	Libc     words             `json:"libc"`
	Dist     struct {
		Integrity string `json:"integrity"`
	} `json:"dist"`
}

// Resolve returns the packages wanted and those of their optional ones that belong on a
// platform.
func (r *Registry) Resolve(ctx context.Context, _ string, on Platform, wanted []string) ([]Package, error) {
	var all []Package
	for _, spec := range wanted {
		at := strings.LastIndex(spec, "@")
		p, found, err := r.find(ctx, spec[:at], spec[:at], spec[at+1:])
		if err != nil {
			return nil, err
		}
		if missing := found.missing(); missing != "" {
			return nil, errhint.With(fmt.Errorf("package %s needs others (%s), and npm is not installed", p.Name, missing), "install npm (Debian package: npm), then run the same command again")
		}
		all = append(all, p)
		parts, err := r.optional(ctx, found, on)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	slices.SortFunc(all, func(a, b Package) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// optional returns the optional packages of a release that need no others.
func (r *Registry) optional(ctx context.Context, of *released, on Platform) (parts []Package, err error) {
	for name, version := range of.Optional {
		published := name
		if alias, ok := strings.CutPrefix(version, "npm:"); ok && strings.LastIndex(alias, "@") > 0 {
			at := strings.LastIndex(alias, "@")
			published, version = alias[:at], alias[at+1:]
		}
		if !versionForm.MatchString(version) {
			continue // a range takes npm
		}
		p, found, err := r.find(ctx, name, published, version)
		if err != nil {
			return nil, err
		}
		e := lockEntry{OS: found.OS, CPU: found.CPU, Libc: found.Libc}
		if p.Optional = true; e.fits(on) && found.missing() == "" {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// missing is a package that a release needs and does not bring along; "" if there is none.
func (f *released) missing() string {
	for _, name := range slices.Sorted(maps.Keys(f.Needs)) {
		if _, optional := f.Optional[name]; !optional && !slices.Contains(f.Bundled, name) && !slices.Contains(f.Bundle, name) {
			return name
		}
	}
	return ""
}

// installs reports whether a release has scripts to run when it is installed.
func (f *released) installs() bool {
	return f.Installs || f.Scripts["preinstall"]+f.Scripts["install"]+f.Scripts["postinstall"] != ""
}

// find returns one release of a package, installed under a name.
func (r *Registry) find(ctx context.Context, as, name, version string) (Package, *released, error) {
	if !nameForm.MatchString(name) || !nameForm.MatchString(as) {
		return Package{}, nil, fmt.Errorf("%.200q is not the name of a package", name)
	}
	body, err := r.get(ctx, name, strings.Replace(name, "/", "%2f", 1))
	if err != nil {
		return Package{}, nil, err
	}
	defer body.Close() //nolint:errcheck // it was only read
	var d description
	if err := json.NewDecoder(io.LimitReader(body, maxDescription)).Decode(&d); err != nil {
		return Package{}, nil, fmt.Errorf("package %s: the registry's answer: %w", name, err)
	}
	found, ok := d.Versions[cmp.Or(d.Tags[version], version)]
	if !ok {
		return Package{}, nil, errhint.With(fmt.Errorf("package %s: the registry has no version %s", name, version), "choose another version, or latest")
	}
	e := lockEntry{Name: name, Version: found.Version, Integrity: found.Dist.Integrity, Scripts: found.installs()}
	p, err := e.pack("node_modules/" + as)
	return p, &found, err
}

// Fetch brings the archives of packages into a directory, as Client.Fetch does.
func (r *Registry) Fetch(ctx context.Context, dir string, packages []Package, report func(done, all int)) error {
	missing := missingIn(dir, packages)
	for n, p := range missing {
		if report != nil {
			report(len(packages)-len(missing)+n, len(packages))
		}
		if err := r.fetch(ctx, dir, p); err != nil {
			return fmt.Errorf("package %s: %w", p.spec(), err)
		}
	}
	return nil
}

func (r *Registry) fetch(ctx context.Context, dir string, p Package) error {
	body, err := r.get(ctx, p.Name, path.Join(p.Name, "-", path.Base(p.Name)+"-"+p.Version+".tgz"))
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	temp, err := os.CreateTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // it has another name if all is well
	_, err = io.Copy(temp, io.LimitReader(body, maxArchive))
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	sum, err := sumOf(temp.Name())
	if err != nil {
		return err
	}
	if sum != p.SHA512 {
		return errors.New("the archive is not the one that was resolved")
	}
	return errors.Join(os.Chmod(temp.Name(), 0o644), os.Rename(temp.Name(), filepath.Join(dir, p.File())))
}

// get asks the registry of a package.
func (r *Registry) get(ctx context.Context, name, rel string) (io.ReadCloser, error) {
	s, err := readSettings(r.getenv)
	if err != nil {
		return nil, err
	}
	base, err := s.registry(name)
	if err != nil {
		return nil, err
	}
	u, err := base.Parse(base.EscapedPath() + rel)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if token := s.token(u); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*; q=0.1")
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, errhint.With(fmt.Errorf("package %s: %w", name, withoutAddress(err)), "let this machine reach the registry of npm's settings, then run the same command again; what was fetched is kept")
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("package %s: the registry answers %s", name, answer.Status)
	}
	return answer.Body, nil
}

const maxRedirects = 5

// safeRedirect follows a few redirects, with TLS; a credential goes to the registry only.
func safeRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	return checkSafe(r.URL)
}

// withoutAddress is the reason of a failed request.
func withoutAddress(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
