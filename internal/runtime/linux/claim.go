package linux

import (
	"context"
	"fmt"
	"maps"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.Claimer = (*Instance)(nil)

// Claim records that a sandbox of a pool is that of spec from now on, and where the
// sources of its mounts are by name, so that it can be started again.
func (i *Instance) Claim(_ context.Context, spec *sandbox.Spec) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reload(); err != nil {
		return err
	}
	own := *i.record.Spec
	own.Env = maps.Clone(spec.Env)
	own.Mounts = append([]sandbox.Mount(nil), own.Mounts...)
	if err := i.moveMounts(&own, spec); err != nil {
		return fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	claimed := *i.record
	claimed.Spec = &own
	claimed.Summary.Labels = maps.Clone(claimed.Summary.Labels)
	delete(claimed.Summary.Labels, sandbox.LabelPool)
	maps.Copy(claimed.Summary.Labels, sandbox.Labels(spec, i.runtime.options.Installation, claimed.Summary.CreatedAt))
	if err := claimed.save(i.dir); err != nil {
		return err
	}
	i.record = &claimed
	i.updateSeen()
	return nil
}

// moveMounts sets where the sources of mounts are now, and refuses those that are not
// what the sandbox has mounted.
func (i *Instance) moveMounts(own, spec *sandbox.Spec) error {
	for n := range own.Mounts {
		for _, m := range spec.Mounts {
			if m.Target != own.Mounts[n].Target || m.Source == own.Mounts[n].Source {
				continue
			}
			facts, err := hostpath.Identify(m.Source)
			if err != nil {
				return fmt.Errorf("mount source: %w", err)
			}
			if facts.ID() != i.record.Pins[n] {
				return sourceReplaced(m.Source)
			}
			own.Mounts[n].Source = m.Source
		}
	}
	return nil
}
