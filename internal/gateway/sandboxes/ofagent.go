package sandboxes

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Find returns the record of an id or a name, also that of a sandbox which a session or a
// run of an agent has: people look into those with terminals.
func (s *Service) Find(ctx context.Context, id string) (*Record, error) {
	r, err := s.records.get(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	entry, err := s.In.Registry.Get(ctx, id)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case entry.Kind != sandbox.KindSandbox || entry.Imported || entry.AgentID == config.APIAgent || provide.IsDockerContainer(entry):
		return nil, ErrNotFound
	}
	return recordOf(entry), nil
}

// recordOf describes a sandbox of an agent. Commands begin in the directory that the
// sandbox has, without the agent's variables, and reach nothing: they are under no grant.
func recordOf(e *sandbox.Entry) *Record {
	r := &Record{ID: e.ContainerName, Name: e.ContainerName, Account: e.Account, Phase: Ready, agent: e.AgentID}
	if e.Phase != sandbox.PhaseReady {
		r.Phase = Removing
	}
	r.Details.SessionKey = e.SessionKey
	return r
}

// IsOfAgent reports whether the sandbox is that of a session or a run.
func (r *Record) IsOfAgent() bool { return r.agent != "" }
