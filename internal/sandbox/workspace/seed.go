package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// MaxSeedBytes is the size of the largest file that is seeded.
const MaxSeedBytes = 2 << 20

// memoryName is the agent's own memory: never seeded, but watched for drift.
const memoryName = "MEMORY.md"

// seedNames are the files that make an agent what it is. No defaults are made
// for those that the agent workspace lacks, so skipBootstrap has nothing to skip.
func seedNames() []string {
	return []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md", "HEARTBEAT.md"}
}

// seeder copies seed files from the agent workspace into a copy.
type seeder struct {
	*view
	layout  Layout
	owner   *hostpath.Owner
	report  *Report
	changed bool // the manifest must be saved
}

func (w *view) newSeeder(report *Report) (*seeder, error) {
	owner, err := ownerOf(w.copy)
	if err != nil {
		return nil, copyError(w.root.layout, err)
	}
	return &seeder{view: w, layout: w.root.layout, owner: owner, report: report}, nil
}

// seedMissing seeds what the copy never had, and records it also when it failed
// in the middle: what was copied until then is complete.
func (w *view) seedMissing(report *Report) error {
	s, err := w.newSeeder(report)
	if err != nil {
		return err
	}
	fresh, err := removeHalfWritten(w.copy)
	if err != nil {
		return copyError(s.layout, err)
	}
	if fresh && len(w.manifest.Files) > 0 {
		// The manifest is of a copy that somebody removed.
		w.manifest, s.changed = newManifest(), true
	}
	if w.manifest.ScopeKey != s.layout.ScopeKey && s.layout.ScopeKey != "" {
		w.manifest.ScopeKey, s.changed = s.layout.ScopeKey, true
	}
	for _, name := range seedNames() {
		if err = s.seed(name); err != nil {
			break
		}
	}
	if s.changed {
		err = errors.Join(err, w.root.saveManifest(w.manifest))
	}
	return err
}

// seed copies name if the copy has no such file and never had one. A file that
// the agent removed, as it should BOOTSTRAP.md, stays removed until Reseed.
func (s *seeder) seed(name string) error {
	taken, err := existsAt(s.copy, name)
	if err != nil {
		return copyError(s.layout, fmt.Errorf("%s: %w", name, err))
	}
	_, seeded := s.manifest.Files[name]
	switch {
	case taken && seeded:
		s.report.Kept = append(s.report.Kept, name)
		return nil
	case taken:
		return s.adopt(name)
	case seeded:
		s.report.Deleted = append(s.report.Deleted, name)
		return nil
	}
	return s.copySeed(name, false)
}

// adopt keeps a file that we have no record of. If it equals the source it was
// seeded, by us before a crash or by another program; else its seed is unknown
// and it counts as changed.
func (s *seeder) adopt(name string) error {
	s.report.Kept = append(s.report.Kept, name)
	have, err := readSeed(s.copy, name)
	if err != nil {
		return copyError(s.layout, err)
	}
	source, err := readSeed(s.agent, name)
	if err != nil {
		return agentError(s.layout, err)
	}
	if have.plain() && have.sum == source.sum {
		s.record(name, have.data)
	}
	return nil
}

// copySeed copies name from the source, if that is a plain file of its own.
func (s *seeder) copySeed(name string, replace bool) error {
	source, err := readSeed(s.agent, name)
	switch {
	case err != nil:
		return agentError(s.layout, err)
	case source.refused != nil:
		s.report.Warnings.add(Warning{
			Subject: name,
			Message: fmt.Sprintf("not seeded: in the agent workspace it %v", source.refused),
			Hint:    fmt.Sprintf("Make it a regular file of at most %d MiB with one name.", MaxSeedBytes>>20),
		})
		return nil
	case !source.present:
		return nil
	}
	_, err = hostpath.WriteBeneath(s.copy, name, bytes.NewReader(source.data),
		hostpath.WriteOptions{Mode: sharedFileMode, Owner: s.owner, Replace: replace})
	switch {
	case errors.Is(err, fs.ErrExist): // the agent was quicker
		s.report.Kept = append(s.report.Kept, name)
		return nil
	case err != nil:
		return seedError(s.layout, name, err)
	}
	s.record(name, source.data)
	s.report.Seeded = append(s.report.Seeded, name)
	return nil
}

func (s *seeder) record(name string, data []byte) {
	s.manifest.Files[name] = newEntry(data)
	s.changed = true
}

func seedError(l Layout, name string, err error) error {
	return withHint(fmt.Errorf("sandbox workspace %s: seed %s: %w", l.SandboxDir, name, reason(err)), l.Root)
}

// content is what a directory holds under one name.
type content struct {
	present bool
	refused error // why it is not a file that could have been seeded
	data    []byte
	sum     string
}

func (c content) plain() bool { return c.present && c.refused == nil }

// readSeed reads a file that may be a seed. A nil directory holds nothing.
func readSeed(dir *os.File, name string) (content, error) {
	if dir == nil {
		return content{}, nil
	}
	data, err := hostpath.ReadRegularBeneath(dir, name, MaxSeedBytes)
	switch {
	case err == nil:
		return content{present: true, data: data, sum: digest(data)}, nil
	case errors.Is(err, fs.ErrNotExist):
		return content{}, nil
	case isRefusal(err):
		return content{present: true, refused: reason(err)}, nil
	}
	return content{}, err
}
