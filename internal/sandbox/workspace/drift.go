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

// DriftOf looks at eight files and nothing else. A sandbox without a copy cannot drift.
func DriftOf(l Layout) (Drift, error) { return new(DriftReader).Drift(l) }

// DriftReader tells the drift of many sandboxes: it reads the files of each agent
// workspace once.
type DriftReader struct {
	sources map[string]map[string]content // by agent workspace and name
}

// Drift is DriftOf.
func (r *DriftReader) Drift(l Layout) (drift Drift, err error) {
	err = r.states(l, func(name string, s seedState) { drift.add(name, s) })
	if err != nil {
		return Drift{}, err
	}
	return drift, nil
}

// states calls do with every file that can drift; with none if there is no copy.
func (r *DriftReader) states(l Layout, do func(string, seedState)) error {
	w, err := openCopyView(l)
	if err != nil || w == nil {
		return err
	}
	defer w.close()
	sources, err := r.read(l)
	if err != nil {
		return err
	}
	for _, name := range append(seedNames(), memoryName) {
		s, err := w.copyState(name)
		if err != nil {
			return err
		}
		s.source = sources[name]
		do(name, s)
	}
	return nil
}

// read returns what the agent workspace of a layout has under the names that can drift.
func (r *DriftReader) read(l Layout) (map[string]content, error) {
	if known, ok := r.sources[l.AgentDir]; ok {
		return known, nil
	}
	dir, err := openAgentDir(l)
	if ignoreMissing(err) != nil {
		return nil, err
	}
	defer closeAll(dir)
	files := map[string]content{}
	for _, name := range append(seedNames(), memoryName) {
		if files[name], err = readSeed(dir, name); err != nil {
			return nil, agentError(l, fmt.Errorf("%s: %w", name, err))
		}
	}
	if r.sources == nil {
		r.sources = map[string]map[string]content{}
	}
	r.sources[l.AgentDir] = files
	return files, nil
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
	s, err := w.copyState(name)
	if err != nil {
		return s, err
	}
	if s.source, err = readSeed(w.agent, name); err != nil {
		return s, agentError(w.root.layout, fmt.Errorf("%s: %w", name, err))
	}
	return s, nil
}

// copyState is state without the source.
func (w *view) copyState(name string) (s seedState, err error) {
	s.seed, s.seeded = w.manifest.Files[name]
	if s.copy, err = readSeed(w.copy, name); err != nil {
		return s, copyError(w.root.layout, fmt.Errorf("%s: %w", name, err))
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
