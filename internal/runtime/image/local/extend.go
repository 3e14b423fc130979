package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image/debian"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// debianPrograms are the programs that Extend adds, with their packages. Each is one
// file that needs nothing but the C library.
var debianPrograms = map[string]string{"gh": "gh"}

// ExtendedName begins the names of images that a program was added to.
const ExtendedName = "atoll-extended"

// Extend returns an image that is a base with a program more, and otherwise the same. It
// is made if it is not there.
func (b *Builder) Extend(ctx context.Context, base, program string) (*Result, error) {
	id, err := b.baseID(ctx, base)
	if err != nil {
		return nil, err
	}
	name := Extended(id, program)
	if found, err := b.Store.Find(ctx, name); err == nil && found.Problem == "" {
		return &Result{Image: found, Recipe: recipeExtend}, nil
	}
	if err := b.Apt.Available(); err != nil {
		return nil, errhint.With(err, "install "+program+" on this machine, or name an image that has it")
	}
	release, err := b.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b.clean(stepPrefix)
	made, err := b.extend(ctx, base, program, name)
	b.clean(aptDir)
	return made, err
}

const recipeExtend = "extend"

// Extended is the name of the image that is a base, by its id, with a program more.
func Extended(id, program string) string {
	sum := sha256.Sum256([]byte(id))
	return ExtendedName + ":" + program + "-" + hex.EncodeToString(sum[:6])
}

// extend builds the image of a program on a base.
func (b *Builder) extend(ctx context.Context, base, program, name string) (*Result, error) {
	text, err := script("extend.sh")
	if err != nil {
		return nil, err
	}
	onHost := rootfs.IsHost(base)
	if !onHost {
		found, err := b.Store.Find(ctx, base)
		if err != nil {
			return nil, err
		}
		onHost = found.OnHost
	}
	dir, pkg := filepath.Join(b.Dir, aptDir), debianPrograms[program]
	b.report("resolving %s of this machine's distribution", pkg)
	archive, err := b.Apt.FindOne(ctx, dir, pkg)
	if err != nil {
		return nil, spaceHint(b.Dir, err)
	}
	return b.build(ctx, &layer{
		recipe: recipeExtend, base: base, onHost: onHost, dest: "/opt/atoll/" + program, commands: []string{program}, names: []string{name}, script: text,
		list: debList([]debian.Archive{archive}), files: map[string]string{archive.File: filepath.Join(dir, archive.File)},
		env: map[string]string{"PROGRAM": program}, source: pkg + ", a package of this machine's distribution",
		fetch: func(ctx context.Context) error {
			b.report("fetching %s", strings.TrimSuffix(archive.File, ".deb"))
			_, err := b.Apt.FetchOne(ctx, dir, pkg, archive)
			return err
		},
	})
}

// CanExtend reports whether Extend can add a program.
func CanExtend(program string) bool { return debianPrograms[program] != "" }
