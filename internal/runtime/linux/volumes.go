package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A volume is a directory of an image in the store, which sandboxes share and none
// can change. A sandbox has it as the lower directory of an overlay whose upper
// directory is its own and is removed with it.

// volumesDir holds, below the directory of a sandbox, what it changed in volumes.
const volumesDir = "volumes"

// volumeGaps returns the volumes that cannot be had here.
func volumeGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, v := range spec.Volumes {
		if !v.Private {
			gaps = append(gaps, sandbox.Gap{Field: "docker.volumes", Reason: fmt.Sprintf("volume %s: one that sandboxes write to together belongs to an engine", v.Name),
				Remedy: "mount a directory with docker.binds, or set sandbox.backend to docker"})
		}
	}
	return gaps
}

// takeVolumes finds the directories of the volumes, and pins them together with the
// root.
func (i *Instance) takeVolumes(pin *rootfs.Pin) error {
	for _, v := range i.record.Spec.Volumes {
		dir, err := pin.Directory(v.Name, v.Target)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		i.record.Volumes = append(i.record.Volumes, dir)
	}
	return nil
}

// makeVolumes makes the directories for changes to volumes.
func (i *Instance) makeVolumes() error {
	user, err := userOf(i.record.Spec.User)
	if err != nil {
		return err
	}
	for n := range i.record.Volumes {
		for _, name := range []string{"upper", "work"} {
			dir := filepath.Join(i.volumeChanges(n), name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if privileged() {
				if err := os.Chown(dir, user.uid, user.gid); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (i *Instance) volumeChanges(n int) string {
	return filepath.Join(i.path(volumesDir), strconv.Itoa(n))
}

// addVolume mounts one volume.
func (d *draft) addVolume(i *Instance, n int) error {
	base, err := d.sources.add(i.record.Volumes[n], hostpath.ID{})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("volume %s: its image was removed: %w", d.spec.Volumes[n].Name, sandbox.ErrNotFound)
	}
	if err != nil {
		return err
	}
	changes, err := d.sources.add(i.volumeChanges(n), hostpath.ID{})
	if err != nil {
		return err
	}
	return d.overlay(&sandbox.OverlayMount{Dir: i.volumeChanges(n), Marks: OverlayMarks()}, path.Clean(d.spec.Volumes[n].Target), base, changes)
}

// overlay mounts an overlay of two sources at a target.
func (d *draft) overlay(o *sandbox.OverlayMount, target string, base, changes *blueprint.Source) error {
	if !privileged() { // the new process mounts it in its own user namespace
		d.step(blueprint.Mount{Kind: blueprint.Overlay, Target: target, Lowers: []blueprint.Source{*base}, Source: changes, Options: volatileOption(o)})
		return nil
	}
	made, err := d.sources.mountOverlay(o, base, changes)
	if err != nil {
		return fmt.Errorf("overlay at %s: %w", target, err)
	}
	d.step(blueprint.Mount{Kind: blueprint.Bind, Source: made, Target: target})
	return nil
}
