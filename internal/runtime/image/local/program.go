package local

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/images"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// nodeVersion is the Node.js that programs of npm run on.
const nodeVersion = "24.21.0"

// npmVersion is the npm beside it.
const npmVersion = "11.21.1"

// Program is a program of npm to make an image of.
type Program struct {
	Name     string   // of the image
	Package  string   // of npm
	Version  string   // "" is the latest
	Commands []string // that the package brings
}

var versionForm = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`)

// Program builds the image of a program, on a base with Node.js.
func (b *Builder) Program(ctx context.Context, p Program, base string) (*Result, error) {
	version := cmp.Or(p.Version, "latest")
	if !versionForm.MatchString(version) {
		return nil, errhint.With(fmt.Errorf("version %.100q is not one of npm's", version), "write a version such as 2.1.0, or a tag such as latest")
	}
	release, err := b.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b.clean(stepPrefix)
	node, err := b.node(ctx, cmp.Or(base, rootfs.HostName))
	if err != nil {
		return nil, err
	}
	b.report("resolving %s@%s", p.Package, version)
	made, err := b.packages(ctx, p.Package+"@"+version, &layer{
		recipe: p.Name, base: node.Names[0], onHost: node.OnHost, dest: "/opt/atoll/" + p.Name, commands: p.Commands, names: []string{p.Name + ":latest"},
	})
	if err != nil {
		return nil, err
	}
	b.clean(archivesDir)
	return made, nil
}

// node returns the image with Node.js and npm on a base.
func (b *Builder) node(ctx context.Context, base string) (*rootfs.Image, error) {
	name := "atoll-node:" + nodeVersion
	onHost := rootfs.IsHost(base)
	if !onHost {
		found, err := b.Store.Find(ctx, base)
		if err != nil {
			return nil, err
		}
		onHost, name = found.OnHost, name+"-"+strings.TrimPrefix(found.ID, "sha256:")[:12]
	}
	const recipe = "node"
	if found, err := b.Store.Find(ctx, name); err == nil && found.Problem == "" {
		return found, nil
	}
	b.report("resolving Node.js %s", nodeVersion)
	platform := npm.ThisMachine(false)
	made, err := b.packages(ctx, "node-linux-"+platform.CPU+"@"+nodeVersion, &layer{
		recipe: recipe, base: base, onHost: onHost, dest: "/opt/atoll/node", commands: []string{"node", "npm", "npx"}, names: []string{name},
	}, "npm@"+npmVersion)
	if err != nil {
		return nil, err
	}
	return made.Image, nil
}

// archivesDir is where fetched archives are.
const archivesDir = "packages"

// packages completes a layer whose content is packages of npm, and builds it. The
// first package wanted is the one whose version the image has.
func (b *Builder) packages(ctx context.Context, first string, l *layer, more ...string) (*Result, error) {
	dir, err := os.MkdirTemp(b.Dir, stepPrefix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := b.Npm.Resolve(ctx, dir, npm.ThisMachine(l.onHost && isMusl(rootfs.HostName)), append([]string{first}, more...))
	if err != nil {
		return nil, spaceHint(b.Dir, err)
	}
	if l.script, err = script("npm.sh"); err != nil {
		return nil, err
	}
	version := versionOf(tree, first)
	archives := filepath.Join(b.Dir, archivesDir)
	l.list, l.files = listOf(tree, archives)
	if l.env == nil {
		l.env = map[string]string{}
	}
	l.env["PROGRAMS"] = strings.Join(l.commands, " ")
	l.labels = map[string]string{LabelVersion: version}
	l.names = append(l.names, versioned(l.names[0], version)...)
	l.source = first[:strings.LastIndex(first, "@")] + "@" + version + " from npm"
	l.fetch = func(ctx context.Context) error { return b.fetchPackages(ctx, archives, tree) }
	made, err := b.build(ctx, l)
	if err != nil {
		return nil, err
	}
	made.Version = version
	return made, nil
}

// LabelVersion holds, on the image of a program, the program's version.
const LabelVersion = "atoll.version"

// versioned is the name of an image with a version as its tag.
func versioned(name, version string) []string {
	repository, tag, _ := strings.Cut(name, ":")
	if tag != "latest" || version == "" {
		return nil
	}
	return []string{repository + ":" + strings.ReplaceAll(version, "+", "-")}
}

func (b *Builder) fetchPackages(ctx context.Context, dir string, tree []npm.Package) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return b.Npm.Fetch(ctx, dir, tree, func(done, all int) {
		if done < all {
			b.report("fetching packages: %d of %d are here", done, all)
		}
	})
}

// listOf writes the list of packages for the script, outer directories first, and
// names their archives.
func listOf(tree []npm.Package, archives string) (list []byte, files map[string]string) {
	var text bytes.Buffer
	files = map[string]string{}
	slices.SortStableFunc(tree, func(a, b npm.Package) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	for _, p := range tree {
		fmt.Fprintf(&text, "%s %s %s %s\n", p.File(), p.Path, yes(p.Optional), yes(p.Scripts))
		files[p.File()] = filepath.Join(archives, p.File())
	}
	return text.Bytes(), files
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// versionOf returns the version that a wanted package was resolved to.
func versionOf(tree []npm.Package, wanted string) string {
	name := wanted[:strings.LastIndex(wanted, "@")]
	for _, p := range tree {
		if p.Path == "node_modules/"+name {
			return p.Version
		}
	}
	return ""
}

func script(name string) (string, error) {
	text, err := scriptBytes(name)
	return string(text), err
}

func scriptBytes(name string) ([]byte, error) { return images.Files.ReadFile("local/" + name) }

// clean removes the entries of the builder's directory whose names begin so.
func (b *Builder) clean(prefix string) {
	found, _ := filepath.Glob(filepath.Join(b.Dir, prefix+"*")) // Dir is absolute, and the prefix has no pattern
	for _, path := range found {
		_ = os.RemoveAll(path)
	}
}
