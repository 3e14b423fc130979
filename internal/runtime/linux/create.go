package linux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var nameForm = lazyregexp.Word{First: "a-zA-Z0-9", Rest: "a-zA-Z0-9_.-", Most: 63}

func validName(name string) bool { return nameForm.MatchString(name) }

// Create makes the sandbox of spec, stopped.
func (r *Runtime) Create(ctx context.Context, spec *sandbox.Spec) (sandbox.Instance, error) {
	i, err := r.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", spec.Name, err)
	}
	return i, nil
}

func (r *Runtime) create(ctx context.Context, spec *sandbox.Spec) (_ *Instance, err error) {
	if err := refuse(spec); err != nil {
		return nil, err
	}
	if gaps := append(specGaps(spec), r.limitGaps(spec)...); len(gaps) > 0 {
		return nil, errhint.With(fmt.Errorf("%s: %s: %w", gaps[0].Field, gaps[0].Reason, sandbox.ErrUnsupported), gaps[0].Remedy)
	}
	if _, err := r.open(spec.Name); err == nil {
		return nil, sandbox.ErrExists
	} else if !errors.Is(err, sandbox.ErrNotFound) {
		return nil, err
	}
	if err := r.discard(ctx, spec.Name, nil); err != nil { // of a creation or removal that did not finish
		return nil, err
	}
	i := &Instance{runtime: r, name: spec.Name, dir: filepath.Join(r.dir, spec.Name), record: r.newRecord(spec)}
	defer func() {
		if err != nil && !errors.Is(err, sandbox.ErrExists) {
			r.prestarted.take(i.name).end() // it is in the control group that discard removes
			err = errors.Join(err, r.discard(context.WithoutCancel(ctx), i.name, i.record))
		}
	}()
	if err := i.makeFiles(ctx); err != nil {
		return nil, err
	}
	i.updateSeen()
	return i, nil
}

func (r *Runtime) newRecord(spec *sandbox.Spec) *record {
	now := time.Now()
	own := *spec
	own.Mounts = slices.Clone(spec.Mounts)
	rec := &record{Spec: &own, Summary: sandbox.Summary{
		Name: spec.Name, ID: r.prestarted.id(spec.Name), Image: spec.Image, CreatedAt: now,
		Labels: sandbox.Labels(spec, r.options.Installation, now),
	}}
	if limits, err := r.groupLimits(spec); err == nil && limits.None() {
		rec.Groupless = true
	}
	for _, m := range spec.Mounts {
		rec.Pins = append(rec.Pins, hostpath.ID{Device: m.Device, Inode: m.Inode})
	}
	return rec
}

// makeFiles makes the directory and its files; the record comes last, and makes it a
// sandbox.
func (i *Instance) makeFiles(ctx context.Context) error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	if err := i.takeRoot(ctx); err != nil {
		return err
	}
	if err := errors.Join(i.makeChanges(), i.makeVolumes(), i.makeStorage(ctx)); err != nil {
		return err
	}
	if err := i.pinMounts(); err != nil {
		return err
	}
	if err := i.writeID(); err != nil {
		return err
	}
	return i.record.save(i.dir)
}

// pinMounts records device and inode of the sources of the mounts, and refuses
// those that are not what was checked.
func (i *Instance) pinMounts() error {
	for n, m := range i.record.Spec.Mounts {
		facts, err := hostpath.Identify(m.Source)
		if err != nil {
			return fmt.Errorf("mount source: %w", err)
		}
		if pin := &i.record.Pins[n]; *pin == (hostpath.ID{}) {
			*pin = facts.ID()
		} else if *pin != facts.ID() {
			return sourceReplaced(m.Source)
		}
		i.record.Spec.Mounts[n].Device, i.record.Spec.Mounts[n].Inode = i.record.Pins[n].Device, i.record.Pins[n].Inode
	}
	return nil
}

// takeRoot resolves the image to its layers and pins them.
func (i *Instance) takeRoot(ctx context.Context) error {
	spec := i.record.Spec
	user, err := userOf(spec.User)
	if err != nil {
		return err
	}
	root, pin, err := i.runtime.options.Roots.Resolve(ctx, spec.Image, rootfs.Identity{UID: user.uid, GID: user.gid, Home: spec.Workdir})
	if errors.Is(err, rootfs.ErrNoImage) {
		return noImage(spec.Image)
	}
	if err != nil {
		return err
	}
	defer pin.Release()
	i.record.Root, i.record.Summary.ImageID = root, root.ID
	if err := i.takeVolumes(pin); err != nil {
		return err
	}
	return pin.Keep(i.name) // under the name, so that it is found without a record
}

// makeChanges makes the directories for changes to the root, if it may be changed.
func (i *Instance) makeChanges() error {
	if i.record.Spec.ReadOnlyRoot || i.bounded() {
		return nil
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil {
		return err
	}
	for _, name := range []string{"", "upper", "work"} {
		dir := filepath.Join(i.path(changesDir), name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if privileged() {
			if err := os.Chown(dir, user.uid, user.gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// imageMissing is ErrNoImage with OpenClaw's text.
type imageMissing struct{ ref string }

func (e imageMissing) Error() string {
	return "Sandbox image not found: " + e.ref + ". Build or pull it first."
}

func (e imageMissing) Is(target error) bool { return target == sandbox.ErrNoImage }

func noImage(ref string) error {
	return errhint.With(imageMissing{ref}, rootfs.ImportHint(ref))
}

func denied(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, sandbox.ErrDenied)...)
}

// refuse returns everything in spec that is invalid or endangers the guest. Package
// policy has checked it before, with better messages.
func refuse(spec *sandbox.Spec) error {
	var problems []error
	if !validName(spec.Name) {
		problems = append(problems, denied("sandbox name %q", spec.Name))
	}
	for _, profile := range []string{spec.SeccompProfile, spec.AppArmorProfile} {
		if strings.EqualFold(strings.TrimSpace(profile), "unconfined") {
			problems = append(problems, denied("security profile %q", profile))
		}
	}
	for name, value := range spec.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			problems = append(problems, denied("environment variable %q", name))
		}
	}
	for _, m := range spec.Mounts {
		if !path.IsAbs(m.Source) || m.Overlay != nil && (!path.IsAbs(m.Overlay.Dir) || m.Overlay.Marks == "") {
			problems = append(problems, denied("mount source %q", m.Source))
		}
	}
	for _, target := range targets(spec) {
		if !path.IsAbs(target) || reserved(path.Clean(target)) {
			problems = append(problems, denied("mount target %q", target))
		}
	}
	for _, host := range spec.ExtraHosts {
		if name, address, ok := strings.Cut(host, ":"); !ok || name == "" || address == "" || strings.ContainsAny(host, "\n\r") {
			problems = append(problems, denied("extra host %q is not name:address", host))
		}
	}
	return errors.Join(append(problems, refuseLimits(spec.Limits))...)
}

func refuseLimits(l sandbox.Limits) error {
	if l.Pids < 0 || l.Memory < 0 || l.MemorySwap < -1 || l.CPUs < 0 || !l.IO.Valid() || !l.Storage.Valid() || !l.Workspace.Valid() {
		return denied("limits %+v", l)
	}
	for _, u := range l.Ulimits {
		if u.Name == "" || u.Hard != -1 && (u.Soft > u.Hard || u.Soft == -1) {
			return denied("ulimit %s=%d:%d", u.Name, u.Soft, u.Hard)
		}
	}
	return nil
}

// reserved reports whether a spec may not mount at target.
func reserved(target string) bool {
	if target == "/" {
		return true
	}
	for _, dir := range []string{guestHome, "/proc", "/sys", "/dev"} {
		if target == dir || strings.HasPrefix(target, dir+"/") && target != "/dev/shm" {
			return true
		}
	}
	return false
}

func targets(spec *sandbox.Spec) []string {
	var all []string
	for _, m := range spec.Mounts {
		all = append(all, m.Target)
	}
	for _, t := range spec.Tmpfs {
		all = append(all, t.Target)
	}
	for _, v := range spec.Volumes {
		all = append(all, v.Target)
	}
	if spec.Workdir != "" && spec.Workdir != "/" {
		all = append(all, spec.Workdir)
	}
	return all
}
