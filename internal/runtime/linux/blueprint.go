package linux

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The paths of the guest inside every sandbox.
const (
	guestHome   = "/.atoll"
	guestTarget = guestHome + "/guest"
	wireTarget  = guestHome + "/wire"
)

// draft is a blueprint in the making, and the files it refers to.
type draft struct {
	blueprint.Blueprint
	sources sources
	spec    *sandbox.Spec
	storage *os.File // of a root with a size; one of sources
}

func (d *draft) close() error {
	if d != nil {
		d.sources.close()
	}
	return nil
}

// makeBlueprint describes the sandbox of the record. The caller closes the draft.
func (i *Instance) makeBlueprint(guest string, groups []bound) (_ *draft, err error) {
	spec := i.record.Spec
	user, err := userOf(spec.User)
	if err != nil {
		return nil, err
	}
	d := &draft{spec: spec, Blueprint: blueprint.Blueprint{
		Hostname: spec.Host(), UID: user.uid, GID: user.gid, Become: privileged(),
		ReadOnly: spec.ReadOnlyRoot, Workdir: cmp.Or(spec.Workdir, "/"),
		Socket: wireTarget + "/" + socketName,
		Argv: append([]string{guestTarget, "init", "--socket", wireTarget + "/" + socketName, "--listener", strconv.Itoa(blueprint.Listener)},
			spec.QuotaArguments()...),
		Env: envList(spec.Env),
	}}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if d.Filter, err = filterOf(spec); err != nil {
		return nil, err
	}
	if d.Limits, err = rlimits(spec.Limits.Ulimits); err != nil {
		return nil, err
	}
	if err := d.addTree(i, guest, groups); err != nil {
		return nil, err
	}
	d.Writable = d.writable()
	return d, nil
}

func (d *draft) addTree(i *Instance, guest string, groups []bound) error {
	if err := d.addRoot(i); err != nil {
		return err
	}
	d.step(devices(d.spec.ShmSize)...)
	if err := d.bindDevices(); err != nil {
		return err
	}
	d.step(kernelFiles()...)
	if err := d.bindGroups(groups); err != nil {
		return err
	}
	d.step(etcFiles(d.spec)...)
	if d.spec.TrustedRoots != "" {
		if err := d.bind(d.spec.TrustedRoots, sandbox.RootsTarget, true, hostpath.ID{}); err != nil {
			return err
		}
	}
	if err := d.addSpecMounts(i); err != nil {
		return err
	}
	d.step(blueprint.Mount{Kind: blueprint.Dir, Target: guestHome, Mode: 0o755})
	if err := d.bindChanges(); err != nil {
		return err
	}
	if err := d.bind(insideOf(guest), guestTarget, true, hostpath.ID{}); err != nil {
		return err
	}
	if err := d.bind(i.path(wireDir), wireTarget, false, hostpath.ID{}); err != nil {
		return err
	}
	d.step(blueprint.Mount{Kind: blueprint.Dir, Target: d.Workdir, Mode: 0o755})
	return nil
}

func (d *draft) step(mounts ...blueprint.Mount) { d.Mounts = append(d.Mounts, mounts...) }

func (d *draft) bind(source, target string, readOnly bool, want hostpath.ID) error {
	s, err := d.sources.add(source, want)
	if err != nil {
		return err
	}
	d.step(blueprint.Mount{Kind: blueprint.Bind, Source: s, Target: target, ReadOnly: readOnly})
	return nil
}

// addRoot adds the overlay of the image's layers, its bind mounts and its masks.
func (d *draft) addRoot(i *Instance) error {
	root := i.record.Root
	d.Root = blueprint.Mount{Kind: blueprint.Overlay, Target: "/"}
	for _, layer := range root.Layers {
		s, err := d.sources.add(layer, hostpath.ID{})
		if err != nil {
			return err
		}
		d.Root.Lowers = append(d.Root.Lowers, *s)
	}
	if !d.spec.ReadOnlyRoot {
		s, err := d.addChanges(i)
		if err != nil {
			return err
		}
		d.Root.Source = s
	}
	for _, b := range root.Binds {
		if err := d.bind(b.Source, b.Target, true, hostpath.ID{}); err != nil {
			return err
		}
	}
	for _, m := range root.Masks {
		d.step(blueprint.Mount{Kind: blueprint.Mask, Target: m})
	}
	return nil
}

// addChanges opens the directory for changes to the root.
func (d *draft) addChanges(i *Instance) (*blueprint.Source, error) {
	if !i.bounded() {
		return d.sources.add(i.path(changesDir), hostpath.ID{})
	}
	mounted, err := mountStorage(i.path(storageFile))
	if err != nil {
		return nil, fmt.Errorf("docker.storageOpt: %w", err)
	}
	freeSpares(mounted)
	d.storage, d.sources.files = mounted, append(d.sources.files, mounted)
	return &blueprint.Source{File: len(d.sources.files)}, nil
}

// addSpecMounts adds the mounts of the spec: directories of the host, volumes and
// temporary file systems, outer ones first.
func (d *draft) addSpecMounts(i *Instance) error {
	var own []func() error
	var targets []string
	add := func(target string, f func() error) {
		own, targets = append(own, f), append(targets, path.Clean(target))
	}
	share := tmpfsSize(d.spec)
	for _, t := range d.spec.Tmpfs {
		add(t.Target, func() error {
			m, err := tmpfsMount(t, share)
			d.step(m)
			return err
		})
	}
	for _, m := range d.spec.Mounts {
		add(m.Target, func() error {
			return d.addMount(m)
		})
	}
	for n, v := range d.spec.Volumes {
		add(v.Target, func() error { return d.addVolume(i, n) })
	}
	order := make([]int, len(own))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Count(targets[a], "/") - strings.Count(targets[b], "/") })
	for _, n := range order {
		if err := own[n](); err != nil {
			return err
		}
	}
	return nil
}

// writable returns the directories in which files may be changed.
func (d *draft) writable() []string {
	if !d.spec.ReadOnlyRoot {
		return []string{"/"}
	}
	places := []string{"/dev", "/proc"}
	for _, t := range d.spec.Tmpfs {
		places = append(places, t.Target)
	}
	for _, v := range d.spec.Volumes {
		places = append(places, v.Target)
	}
	for _, m := range d.spec.Mounts {
		if !m.ReadOnly {
			places = append(places, m.Target)
		}
	}
	return places
}

func envList(env map[string]string) []string {
	list := sandbox.EnvList(env)
	slices.Sort(list)
	return list
}
