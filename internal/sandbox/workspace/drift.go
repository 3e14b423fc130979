package workspace

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
)

// Drift is how the copy's seed files, and MEMORY.md, differ from what they
// should be.
type Drift struct {
	Modified []string `json:"modified,omitempty"` // written by the agent
	Deleted  []string `json:"deleted,omitempty"`  // removed by the agent
	Stale    []string `json:"stale,omitempty"`    // the source changed since
}

// None tells whether there is no drift.
func (d Drift) None() bool { return len(d.Modified)+len(d.Deleted)+len(d.Stale) == 0 }

// DriftOf looks at eight files and nothing else, so that a list of many
// sandboxes stays quick. A sandbox without a copy cannot drift.
func DriftOf(l Layout) (Drift, error) {
	var drift Drift
	v, err := openView(l)
	if err != nil || v == nil {
		return drift, err
	}
	defer v.close()
	for _, name := range append(seedNames(), memoryName) {
		state, err := v.state(name)
		if err != nil {
			return Drift{}, err
		}
		drift.add(name, state)
	}
	return drift, nil
}

func (d *Drift) add(name string, s seedState) {
	if s.modified() {
		d.Modified = append(d.Modified, name)
	}
	if s.deleted() {
		d.Deleted = append(d.Deleted, name)
	}
	if s.stale() {
		d.Stale = append(d.Stale, name)
	}
}

// EvolvedInCopy returns the behaviour files that the agent wrote in its private
// copy: they are lost when the copy is removed.
// With access ro the agent cannot write, and with rw it writes the originals.
func EvolvedInCopy(l Layout) ([]string, error) {
	if l.Access != config.AccessNone {
		return nil, nil
	}
	drift, err := DriftOf(l)
	evolved := slices.DeleteFunc(drift.Modified, func(name string) bool {
		return name != "SOUL.md" && name != "IDENTITY.md" && name != memoryName
	})
	return evolved, err
}

// seedState is one seed file in its three forms.
type seedState struct {
	seed   seedEntry
	seeded bool
	copy   content
	source content
}

func (w *view) state(name string) (seedState, error) {
	var s seedState
	var err error
	s.seed, s.seeded = w.manifest.Files[name]
	if s.copy, err = readSeed(w.copy, name); err != nil {
		return s, copyError(w.root.layout, fmt.Errorf("%s: %w", name, err))
	}
	if s.source, err = readSeed(w.agent, name); err != nil {
		return s, agentError(w.root.layout, fmt.Errorf("%s: %w", name, err))
	}
	return s, nil
}

// modified: it is not what was seeded; or nothing was, and it is not the
// source either.
func (s seedState) modified() bool {
	expected := s.source.sum
	if s.seeded {
		expected = s.seed.SHA256
	}
	return s.copy.present && (s.copy.refused != nil || s.copy.sum != expected)
}

func (s seedState) deleted() bool { return s.seeded && !s.copy.present }

func (s seedState) stale() bool { return s.seeded && s.source.sum != s.seed.SHA256 }
