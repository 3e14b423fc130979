package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// newReader is a reader of a home directory, an /etc and programs of the test.
func newReader(t *testing.T) (r *reader, bin string) {
	t.Helper()
	top := t.TempDir()
	bin = filepath.Join(top, "bin")
	variables := map[string]string{"PATH": bin + ":/usr/bin:/bin", "HOME": filepath.Join(top, "home"), "NODE_OPTIONS": "--require=./evil.js"}
	write(t, filepath.Join(bin, "README"), "", 0o644)
	r = &reader{getenv: func(name string) string { return variables[name] }, home: variables["HOME"], etc: filepath.Join(top, "etc")}
	return r, bin
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// program writes a shell script.
func program(t *testing.T, path, body string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+body+"\n", 0o755)
}

func endpoints(t *testing.T, f preset.Found, want ...preset.Endpoint) {
	t.Helper()
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	if diff := gocmp.Diff(want, f.Endpoints); diff != "" {
		t.Errorf("endpoints (- want, + got):\n%s", diff)
	}
}

func TestNPM(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "npm"), `[ "$*" = "config list --json" ] || exit 1
echo '{"registry": "https://npm.example.org/", "@acme:registry": "http://npm.acme.example:4873/x", "replace-registry-host": "x", "fund": false, "@bad:registry": "https://10.0.0.1/"}'`)
	endpoints(t, r.read(t.Context(), "npm"), preset.Endpoint{Host: "npm.acme.example", Port: 4873, Plain: true}, preset.Endpoint{Host: "npm.example.org", Port: 443})
}

func TestNPMWithoutNPM(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "npm"), "exit 1")
	write(t, filepath.Join(r.home, ".npmrc"), "fund=false\nregistry = https://npm.example.org/\n@acme:registry=\"https://npm.acme.example\"\n//npm.acme.example/:_authToken=x\n", 0o600)
	endpoints(t, r.read(t.Context(), "npm"), preset.Endpoint{Host: "npm.acme.example", Port: 443}, preset.Endpoint{Host: "npm.example.org", Port: 443})
}

// The registries are those that the real npm uses, without npm being started.
func TestNPMFiles(t *testing.T) {
	r, bin := newReader(t)
	prefix := filepath.Join(filepath.Dir(bin), "usr")
	dir := filepath.Join(prefix, "lib/node_modules/npm")
	program(t, filepath.Join(dir, "bin/npm-cli.js"), "echo started >&2; exit 1")
	program(t, filepath.Join(prefix, "bin/node"), "exit 1")
	if err := os.Symlink("../lib/node_modules/npm/bin/npm-cli.js", filepath.Join(prefix, "bin/npm")); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"PATH": filepath.Join(prefix, "bin"), "HOST": "own.example"}
	r.getenv = func(name string) string { return variables[name] }
	one := func(host string) preset.Endpoint { return preset.Endpoint{Host: host, Port: 443} }
	endpoints(t, r.read(t.Context(), "npm"), one("registry.npmjs.org"))
	write(t, filepath.Join(dir, "npmrc"), "registry=https://builtin.example\n", 0o644)
	endpoints(t, r.read(t.Context(), "npm"), one("builtin.example"))
	write(t, filepath.Join(prefix, "etc/npmrc"), "; ours\nregistry=https://host.example\n@acme:registry=https://acme.example\n", 0o644)
	endpoints(t, r.read(t.Context(), "npm"), one("acme.example"), one("host.example"))
	write(t, filepath.Join(r.home, ".npmrc"), "registry = https://${HOST}/${NONE?}\n", 0o600)
	endpoints(t, r.read(t.Context(), "npm"), one("acme.example"), one("own.example"))
	variables["NPM_CONFIG_REGISTRY"] = "https://set.example"
	endpoints(t, r.read(t.Context(), "npm"), one("acme.example"), one("set.example"))
	delete(variables, "NPM_CONFIG_REGISTRY")
	write(t, filepath.Join(r.home, "mine"), "prefix="+r.home+"\n", 0o600)
	write(t, filepath.Join(r.home, "etc/npmrc"), "registry=https://elsewhere.example\n", 0o600)
	variables["npm_config_userconfig"] = filepath.Join(r.home, "mine")
	endpoints(t, r.read(t.Context(), "npm"), one("elsewhere.example"))
}

// TestNPMFilesAreThoseOfNPM compares with what the npm of this machine says.
func TestNPMFilesAreThoseOfNPM(t *testing.T) {
	home := t.TempDir()
	r := &reader{getenv: os.Getenv, home: home, etc: "/etc"}
	if _, err := r.program("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	dir, prefix := r.npmPackage()
	if dir == "" {
		t.Skip("npm is behind a program of another kind")
	}
	t.Setenv("HOME", home)
	t.Setenv("ADDRESS", "own.example")
	write(t, filepath.Join(home, ".npmrc"), "# mine\nregistry = \"https://${ADDRESS}/x\"\n@acme:registry=https://acme.example/${NONE}\n[section]\n", 0o600)
	for range 2 {
		text, err := r.output(t.Context(), slices.Concat(npmVariables, []string{"ADDRESS", "PREFIX"}), "npm", "config", "list", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var says map[string]any
		if err := json.Unmarshal([]byte(text), &says); err != nil {
			t.Fatal(err)
		}
		is := r.npmSettings(filepath.Join(dir, "npmrc"), prefix)
		for _, key := range []string{"registry", "@acme:registry"} {
			if want, _ := says[key].(string); strings.TrimSuffix(cmp.Or(is[key], npmRegistry), "/") != strings.TrimSuffix(want, "/") && want != "" {
				t.Errorf("%s is %q, npm says %q", key, is[key], want)
			}
		}
		t.Setenv("NPM_CONFIG_GLOBALCONFIG", filepath.Join(home, "global"))
		write(t, filepath.Join(home, "global"), "@acme:registry=https://lower.example\n", 0o600)
		write(t, filepath.Join(home, ".npmrc"), "", 0o600)
	}
}

func TestGo(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "go"), `echo 'https://goproxy.example.org,http://athens.example.org|direct'; echo 'sums.example.org+abc+def'`)
	endpoints(t, r.read(t.Context(), "go"), preset.Endpoint{Host: "goproxy.example.org", Port: 443},
		preset.Endpoint{Host: "athens.example.org", Port: 80, Plain: true}, preset.Endpoint{Host: "sums.example.org", Port: 443})
	program(t, filepath.Join(bin, "go"), `echo 'off'; echo 'off'`)
	if f := r.read(t.Context(), "go"); !errors.Is(f.Err, errNoServer) {
		t.Errorf("off: %+v", f)
	}
}

func TestPip(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "python3"), `[ "$1" = -I ] || exit 1
case "$2" in
-m) echo "global.cert='/etc/ssl'"; printf '%s\n' "global.extra-index-url='https://one.example.org/simple\nhttps://two.example.org/simple'" ;;
-c) echo https://index.example.org/simple; echo https://files.example.org/ ;;
esac`)
	endpoints(t, r.read(t.Context(), "pip"), preset.Endpoint{Host: "one.example.org", Port: 443}, preset.Endpoint{Host: "two.example.org", Port: 443},
		preset.Endpoint{Host: "index.example.org", Port: 443}, preset.Endpoint{Host: "files.example.org", Port: 443})
	program(t, filepath.Join(bin, "python3"), `[ "$2" = -m ] || exit 1
echo ":env:.index-url='https://mirror.example.org/simple'"`)
	endpoints(t, r.read(t.Context(), "pip"), preset.Endpoint{Host: "mirror.example.org", Port: 443})
}

func TestCargo(t *testing.T) {
	r, _ := newReader(t)
	write(t, filepath.Join(r.home, ".cargo/registry/index/index.example.org-1949cf8c6b5b557f/config.json"), `{"dl": "https://static.example.org/crates/{crate}", "api": "https://example.org"}`, 0o644)
	endpoints(t, r.read(t.Context(), "cargo"), preset.Endpoint{Host: "index.example.org", Port: 443}, preset.Endpoint{Host: "static.example.org", Port: 443})
	write(t, filepath.Join(r.home, ".cargo/config.toml"), `[source.crates-io]
replace-with = "mirror"
[source.mirror]
registry = "sparse+https://mirror.example.org/index/" # ours
[registries.acme]
index = 'https://git.acme.example/index'
[http]
proxy = "http://proxy.example.org"
`, 0o644)
	endpoints(t, r.read(t.Context(), "cargo"), preset.Endpoint{Host: "mirror.example.org", Port: 443}, preset.Endpoint{Host: "git.acme.example", Port: 443})
}

func TestApt(t *testing.T) {
	r, _ := newReader(t)
	write(t, filepath.Join(r.etc, "apt/sources.list"), "# deb http://old.example.org/debian x main\ndeb [signed-by=/a] http://deb.example.org/debian x main\ndeb cdrom:[x]/ x main\n", 0o644)
	write(t, filepath.Join(r.etc, "apt/sources.list.d/a.sources"), "Types: deb\nURIs: https://one.example.org/a http://two.example.org/b\n\nTypes: deb\nEnabled: no\nURIs: https://off.example.org\n", 0o644)
	write(t, filepath.Join(r.etc, "apt/sources.list.d/b.list.save"), "deb http://saved.example.org x main\n", 0o644)
	endpoints(t, r.read(t.Context(), "apt"), preset.Endpoint{Host: "deb.example.org", Port: 80, Plain: true},
		preset.Endpoint{Host: "one.example.org", Port: 443}, preset.Endpoint{Host: "two.example.org", Port: 80, Plain: true})
}

// TestProjectsSteerNothing has programs, links and settings in a project, which
// PATH and the environment name.
func TestProjectsSteerNothing(t *testing.T) {
	r, bin := newReader(t)
	project := filepath.Join(filepath.Dir(bin), "project")
	const evil = `echo '{"registry": "https://evil.example.net/"}'`
	program(t, filepath.Join(project, "bin/npm"), evil)
	program(t, filepath.Join(project, "node_modules/.bin/npm"), evil)
	link := filepath.Join(filepath.Dir(bin), "link")
	if err := os.Symlink(filepath.Join(project, "bin"), link); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(filepath.Dir(bin), "linked")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(project, "bin/npm"), filepath.Join(linked, "npm")); err != nil {
		t.Fatal(err)
	}
	program(t, filepath.Join(bin, "npm"), `[ "$PWD" = / ] && [ -z "$NODE_OPTIONS$NPM_CONFIG_USERCONFIG" ] || exit 1
case $PATH in *project*) exit 1 ;; esac
echo '{"registry": "https://npm.example.org/"}'`)
	variables := map[string]string{
		"PATH":                  strings.Join([]string{"bin", "", ".", project + "/bin", project + "/node_modules/.bin", "/x/node_modules/.bin", link, linked, bin, "/usr/bin", "/bin"}, ":"),
		"NODE_OPTIONS":          "--require=./evil.js",
		"NPM_CONFIG_USERCONFIG": project + "/.npmrc",
	}
	r.getenv = func(name string) string { return variables[name] }
	r.projects = []string{project}
	t.Chdir(project)
	endpoints(t, r.read(t.Context(), "npm"), preset.Endpoint{Host: "npm.example.org", Port: 443})

	write(t, filepath.Join(project, ".npmrc"), "registry=https://evil.example.net", 0o600)
	if text := r.file(filepath.Join(project, ".npmrc")); text != "" {
		t.Errorf("a file of the project was read: %q", text)
	}
}

func TestHomeIsNoProject(t *testing.T) {
	r := &reader{home: "/home/kai"}
	for _, c := range []struct {
		path, project string
		want          bool
	}{
		{"/home/kai/bin", "/home/kai", false},
		{"/home/kai/bin", "/home", false},
		{"/home/other/bin", "/home", true},
		{"/usr/bin", "/", false},
		{"/home/kai/work/bin", "/home/kai/work", true},
		{"/home/kai/workshop/bin", "/home/kai/work", false},
		{"/srv/x/bin", "/srv/x", true},
	} {
		if got := r.liesIn(c.path, c.project); got != c.want {
			t.Errorf("%s is the project's of %s: %v", c.path, c.project, got)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "npm"), "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done")
	if f := r.read(t.Context(), "npm"); f.Err == nil || !strings.Contains(f.Err.Error(), "more than 262144 bytes") {
		t.Errorf("%+v", f)
	}
}

func TestTimeIsBounded(t *testing.T) {
	r, bin := newReader(t)
	program(t, filepath.Join(bin, "npm"), "sleep 600 & wait")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	endpoints(t, r.read(ctx, "npm"), preset.Endpoint{Host: "registry.npmjs.org", Port: 443})
	program(t, filepath.Join(bin, "go"), "sleep 600 & wait")
	if f := r.read(ctx, "go"); f.Err == nil || !strings.Contains(f.Err.Error(), "no answer") {
		t.Errorf("%+v", f)
	}
	if runTimeout > 10*time.Second {
		t.Errorf("a client may take %v", runTimeout)
	}
}

func TestServersAreBounded(t *testing.T) {
	var addresses []string
	for i := range 2 * maxEndpoints {
		addresses = append(addresses, "https://a"+strings.Repeat("b", i%50)+".example.org:"+strings.Repeat("1", 1+i/50))
	}
	if f := found("npm", addresses); len(f.Endpoints) != maxEndpoints {
		t.Errorf("%d servers", len(f.Endpoints))
	}
}

func TestMissingProgram(t *testing.T) {
	r, _ := newReader(t)
	r.getenv = func(string) string { return "" }
	for _, name := range []string{"npm", "go", "pip"} {
		if f := r.read(t.Context(), name); !errors.Is(f.Err, errMissing) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, name := range []string{"apt", "cargo"} {
		if f := r.read(t.Context(), name); !errors.Is(f.Err, errNoServer) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestEveryClientOfAPresetIsRead wants a reader for each client of the data files.
func TestEveryClientOfAPresetIsRead(t *testing.T) {
	for _, name := range preset.Clients(preset.Names()) {
		if clients[name] == nil {
			t.Errorf("client %s has no reader", name)
		}
	}
}

func FuzzConfigurations(f *testing.F) {
	f.Add("[source.x]\nregistry = \"sparse+https://a.example/\"")
	f.Add("deb [a] http://a.example/ x main")
	f.Add("Types: deb\nURIs: https://a.example")
	f.Add("@a:registry=https://${b}.example/${c?}")
	f.Add("global.index-url='https://a.example/simple'")
	f.Fuzz(func(t *testing.T, text string) {
		indexes, _ := pipIndexes(text)
		crates, _ := cargoRegistries(text)
		npm := registries((&reader{getenv: func(string) string { return "x" }}).npmLines(text), "")
		for _, list := range [][]string{indexes, crates, listSources(text), stanzaSources(text), npm, {checksumDatabase(text), text}} {
			for _, e := range found("x", list).Endpoints {
				if e.Port < 1 || e.Port > 65535 || strings.ContainsAny(e.Host, ":/@ ") || e.Host == "" {
					t.Errorf("endpoint %+v", e)
				}
			}
		}
	})
}

// TestFindAsksTheRealGo runs the go of this machine, and once only.
func TestFindAsksTheRealGo(t *testing.T) {
	t.Setenv("GOPROXY", "https://goproxy.example.org,direct")
	t.Setenv("GOSUMDB", "off")
	want := preset.Endpoint{Host: "goproxy.example.org", Port: 443}
	endpoints(t, Find(t.Context(), []string{"go", "github-read"})["go"], want)
	t.Setenv("GOPROXY", "https://other.example.org")
	endpoints(t, Find(t.Context(), []string{"go-read"})["go"], want)
	if hosts := Find(t.Context(), []string{"github-read"}); len(hosts) != 0 {
		t.Errorf("a preset with hosts of its own asked %v", hosts)
	}
}
