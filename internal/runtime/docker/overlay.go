package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// An overlay on a directory of the host is a volume of the engine's local driver
// that mounts it. Its name follows from its directories, so that both halves of a
// pair use one volume, of which the engine makes one mount. It goes with the last
// container that uses it; what was changed stays in its upper directory.

const (
	// labelOverlay is on such a volume; its value is the directory of the changes.
	labelOverlay = "atoll.overlay"
	// labelOverlays has the names of a container's overlays, with spaces between.
	labelOverlays = "atoll.overlays"
)

// unnameable are characters that separate the options of a mount.
const unnameable = ",:\\\"\n"

// overlayOptions returns the options of the mount, which name its directories.
func overlayOptions(base, dir string) string {
	return "lowerdir=" + base + ",upperdir=" + dir + "/upper,workdir=" + dir + "/work,redirect_dir=on,nosuid,nodev"
}

// overlayVolume returns the name of the volume of a mount.
func overlayVolume(m sandbox.Mount) string {
	sum := sha256.Sum256([]byte(overlayOptions(m.Source, m.Overlay.Dir)))
	return "atoll-overlay-" + hex.EncodeToString(sum[:8])
}

func overlayVolumes(spec *sandbox.Spec) (names []string) {
	for _, m := range spec.Mounts {
		if m.Overlay != nil {
			names = append(names, overlayVolume(m))
		}
	}
	return names
}

// addOverlays makes the volumes of the spec's overlays, and adds them.
func (r *Runtime) addOverlays(ctx context.Context, made *recipe) error {
	for i, m := range made.spec.Mounts {
		if m.Overlay == nil {
			continue
		}
		facts, err := hostpath.Identify(m.Source)
		if err != nil {
			return err
		}
		options := map[string]string{"type": "overlay", "device": "overlay", "o": overlayOptions(facts.Canonical, m.Overlay.Dir)}
		name := overlayVolume(m)
		if _, err := r.makeVolume(ctx, name, options, map[string]string{labelOverlay: m.Overlay.Dir}); err != nil {
			return fmt.Errorf("overlay on %s: %w", m.Source, err)
		}
		made.mounts = append(made.mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: m.Target, VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
		changes, err := pinPath(m.Overlay.Dir+"/upper", sandbox.ChangesTarget(i))
		if err != nil {
			return err
		}
		made.mounts = append(made.mounts, changes.mount(true)) // the guest measures it
	}
	return nil
}

// removeOverlays removes volumes that no container uses any more.
func (r *Runtime) removeOverlays(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := r.removeVolume(ctx, name); err != nil && !isConflict(err) {
			return fmt.Errorf("volume %q: %w", name, err)
		}
	}
	return nil
}

// OverlayObstacle returns why this engine cannot mount an overlay of these
// directories, "" if it can.
func (r *Runtime) OverlayObstacle(ctx context.Context, base, dir string) (string, error) {
	known, err := r.facts(ctx)
	if err != nil {
		return "", err
	}
	return overlayObstacle(known, base, dir), nil
}

func overlayObstacle(known *facts, base, dir string) string {
	switch {
	case os.Geteuid() != 0:
		return "the engine would mount an overlay as root, whose files this user could not read"
	case known.where != Nearby:
		return "the engine runs on another machine"
	case known.mapsUsers():
		return "the engine maps users"
	case strings.ContainsAny(base+dir, unnameable):
		return fmt.Sprintf("the engine cannot name %q in the options of a mount", base)
	}
	return ""
}

// overlayGaps returns overlays that this engine cannot mount. Those that are not
// prepared yet are not looked at.
func overlayGaps(known *facts, spec *sandbox.Spec) (gaps []sandbox.Gap) {
	add := func(reason string) {
		gaps = append(gaps, sandbox.Gap{Field: "overlay.kind", Reason: reason, Remedy: "discard the changes with atoll sync reset and set sandbox.overlay.kind to auto or copy"})
	}
	for _, m := range spec.Mounts {
		if m.Overlay == nil || m.Overlay.Marks == "" {
			continue
		}
		switch obstacle := overlayObstacle(known, m.Source, m.Overlay.Dir); {
		case obstacle != "":
			add(obstacle)
		case m.Overlay.Marks != overlay.MarksTrusted:
			add(fmt.Sprintf("the changes in %s were made with %s attributes, and the engine mounts with trusted ones", m.Overlay.Dir, m.Overlay.Marks))
		case m.Overlay.Volatile:
			add("the engine mounts a volume more than once, which an overlay without syncing does not allow")
		}
	}
	return gaps
}
