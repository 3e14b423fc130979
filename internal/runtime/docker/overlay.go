package docker

import "github.com/atoll-run/atoll/internal/sandbox"

// overlayGaps returns overlays that this engine cannot mount.
func overlayGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, m := range spec.Mounts {
		if m.Overlay != nil && m.Overlay.Marks != "" {
			gaps = append(gaps, sandbox.Gap{Field: "overlay.kind", Reason: "the engine cannot mount an overlay", Remedy: "set sandbox.overlay.kind to auto or copy"})
		}
	}
	return gaps
}
