package local

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/runtime/image/debian"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// Step is work for a sandbox without a network.
type Step struct {
	Name   string            // of the sandbox
	Image  string            // that it is made from
	Inputs string            // a directory of the host, seen read-only at InputsPath
	Work   string            // a directory of the host, written to at Dest
	Dest   string            // path inside
	Env    map[string]string // of the script
	Stdout io.Writer         // gets the archive that the script writes
	Stderr io.Writer         // gets its messages
}

// The paths inside a sandbox that builds.
const (
	InputsPath = "/build"
	ScriptPath = InputsPath + "/script"
)

// Builder builds images into a store.
type Builder struct {
	Store *rootfs.Store
	// Run carries a step out: sh runs the script in a sandbox. An error holds the
	// last messages of the script.
	Run func(ctx context.Context, s *Step) error
	// Dir is a directory of this installation for what is fetched. What a build
	// that failed had fetched is there for the next one.
	Dir string
	Npm Packages
	Apt *debian.Client
	// Report gets a line at each step.
	Report func(line string)
}

// Packages finds and fetches packages of npm: npm.Client, or npm.Registry on a machine
// without npm.
type Packages interface {
	Resolve(ctx context.Context, dir string, on npm.Platform, wanted []string) ([]npm.Package, error)
	Fetch(ctx context.Context, dir string, packages []npm.Package, report func(done, all int)) error
}

// Result is an image that was asked for.
type Result struct {
	Image  *rootfs.Image `json:"image"`
	Built  bool          `json:"built"` // false if it was there already
	Recipe string        `json:"recipe"`
	// Version is that of the program in it, "" if it has none.
	Version string `json:"version,omitempty"`
}

// LabelKey names, on an image that was built here, what it was made from: the recipe,
// the packages with their checksums, and the base.
const LabelKey = "atoll.build"

// layer is one image to build: a base and what one script makes on top.
type layer struct {
	recipe string
	base   string // an image of the store, or the host
	onHost bool   // below the base are the host's own programs
	alone  bool   // the image has no base: it is only what the script runs in
	isRoot bool   // the content is that of the root, not of dest

	script string
	dest   string // directory inside that is the layer's content
	env    map[string]string
	list   []byte                      // what the script reads: names and checksums of files
	files  map[string]string           // by name in the sandbox: files of the host
	fetch  func(context.Context) error // brings the files
	inputs map[string][]byte           // more files for the script, by name

	commands []string          // programs of dest/bin to link where the base keeps programs
	texts    map[string]string // files of the image beside the content
	names    []string
	labels   map[string]string
	source   string
	user     string // of the image
}

// key is the hash of everything that the result depends on.
func (l *layer) key(baseID string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %q %q %q %q %q %t %t %q", l.recipe, baseID, l.script, l.dest, l.env, l.list, l.inputs, l.commands, l.texts, l.alone, l.isRoot, l.user)
	return hex.EncodeToString(sum.Sum(nil))
}

func (b *Builder) report(format string, args ...any) {
	if b.Report != nil {
		b.Report(fmt.Sprintf(format, args...))
	}
}

// baseID returns what a base is at present. The host counts by its kind: what is
// built on it must work after an upgrade.
func (b *Builder) baseID(ctx context.Context, base string) (string, error) {
	if rootfs.IsHost(base) {
		return fmt.Sprint(rootfs.HostName, " ", npm.ThisMachine(isMusl(base))), nil
	}
	image, err := b.Store.Find(ctx, base)
	if err != nil {
		return "", err
	}
	return image.ID, nil
}

// find returns the image of a key, and gives it the names that it lacks.
func (b *Builder) find(ctx context.Context, key string, names []string) (*rootfs.Image, error) {
	images, err := b.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if image.Config.Labels[LabelKey] != key || image.Problem != "" {
			continue
		}
		for _, name := range names {
			if slices.Contains(image.Names, name) {
				continue
			}
			if err := b.Store.Tag(ctx, image.ID, name); err != nil {
				return nil, err
			}
		}
		return b.Store.Find(ctx, image.ID)
	}
	return nil, nil
}

// hold lets one build of this installation work at a time: builds share what they
// fetch.
func (b *Builder) hold(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return nil, err
	}
	locks, err := filelock.Open(filepath.Join(b.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	held, err := locks.HoldInTurn(ctx, "build", func(int) { b.report("waiting for another build to end") })
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// isMusl reports whether the programs of a base use musl: its shell does. That musl is
// installed beside another C library does not count.
func isMusl(base string) bool {
	return rootfs.IsHost(base) && strings.Contains(interpreter("/bin/sh"), "ld-musl-")
}

// interpreter returns the dynamic loader that a program names; "" if it names none.
func interpreter(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	section := file.Section(".interp")
	if section == nil {
		return ""
	}
	name, err := section.Data()
	if err != nil {
		return ""
	}
	return string(name)
}
