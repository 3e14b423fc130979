package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// store builds the image that holds the packages of a pnpm lockfile. pnpm fills it in
// the sandbox, from a registry on the sandbox's own loopback that has the fetched
// archives and nothing else.
func (b *Builder) store(ctx context.Context, o *order) (*Result, error) {
	packages, err := npm.ParsePnpmLock(o.lockfile)
	if err != nil {
		return nil, err
	}
	node, err := b.node(ctx, rootfs.HostName)
	if err != nil {
		return nil, err
	}
	pnpm, err := b.pnpm(ctx)
	if err != nil {
		return nil, err
	}
	archives := filepath.Join(b.Dir, archivesDir)
	l := &layer{
		recipe: recipeStore, base: node.Names[0], onHost: true, alone: true, dest: image.StorePath, names: []string{o.target},
		env: map[string]string{"PNPM": pnpm.File()}, inputs: map[string][]byte{"pnpm-lock.yaml": o.lockfile},
		labels: image.Labels(recipeStore, o.lockfile), source: "packages of npm", files: map[string]string{},
	}
	if l.script, err = script("pnpm-store.sh"); err != nil {
		return nil, err
	}
	if l.inputs["registry.js"], err = scriptBytes("registry.js"); err != nil {
		return nil, err
	}
	var list bytes.Buffer
	for _, p := range append(slices.Clone(packages), pnpm) {
		l.files[p.File()] = filepath.Join(archives, p.File())
		fmt.Fprintf(&list, "%s %s %s\n", p.File(), p.Name, p.Version)
	}
	l.list = list.Bytes()
	l.fetch = func(ctx context.Context) error { return b.fetchPackages(ctx, archives, append(packages, pnpm)) }
	return b.build(ctx, l)
}

// pnpm returns the package of the pnpm that OpenClaw's image has: it will read the store.
func (b *Builder) pnpm(ctx context.Context) (npm.Package, error) {
	recipe, err := image.Find(recipeOpenClaw)
	if err != nil {
		return npm.Package{}, err
	}
	args, err := recipe.Defaults()
	if err != nil {
		return npm.Package{}, err
	}
	dir, err := os.MkdirTemp(b.Dir, stepPrefix)
	if err != nil {
		return npm.Package{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := b.Npm.Resolve(ctx, dir, npm.ThisMachine(false), []string{"pnpm@" + args["PNPM_VERSION"]})
	if err != nil {
		return npm.Package{}, err
	}
	at := slices.IndexFunc(tree, func(p npm.Package) bool { return p.Name == "pnpm" })
	if at < 0 || !strings.EqualFold(tree[at].SHA512, args["PNPM_SHA512"]) {
		return npm.Package{}, fmt.Errorf("pnpm@%s: the registry announces another archive than the recipe", args["PNPM_VERSION"])
	}
	return tree[at], nil
}
