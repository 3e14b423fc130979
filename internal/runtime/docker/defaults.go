package docker

import "github.com/atoll-run/atoll/internal/sandbox"

// enforceable returns the defaults of a spec that the engine can enforce.
func enforceable(known *facts, d sandbox.Defaults) sandbox.Defaults {
	if !known.MemoryLimit {
		d.Memory = 0
	}
	if !known.PidsLimit {
		d.Pids = 0
	}
	return d
}

// withDefaults returns the spec with those of its defaults that the engine can
// enforce as limits like any other.
func withDefaults(known *facts, spec *sandbox.Spec) *sandbox.Spec {
	own := *spec
	own.Limits = spec.Limits.WithDefaults(enforceable(known, spec.Limits.Defaults))
	return &own
}
