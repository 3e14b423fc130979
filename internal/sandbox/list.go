package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Status is a registry entry and what its machinery says of it.
type Status struct {
	*Entry
	State   State  `json:"state"` // "" if it is gone, foreign, or the engine does not answer
	Running bool   `json:"running"`
	InUse   bool   `json:"inUse,omitzero"` // a command or an agent works in it
	Problem string `json:"problem,omitempty"`
	Unknown bool   `json:"-"` // the machinery did not answer
	ImageID string `json:"-"` // of the image that it was made from
	// LastSavedAtMs is when the workspace of a sandbox on another machine was last brought to
	// this one; 0 if never, or if it is on this one.
	LastSavedAtMs int64 `json:"lastSavedAtMs,omitzero"`
}

// List returns up to limit sandboxes, the last used first (0: all), and how
// many there are. It costs one query and one call per backend.
func (m *Manager) List(ctx context.Context, limit int) ([]Status, int, error) {
	entries, err := m.Registry.List(ctx, limit)
	if err != nil {
		return nil, 0, err
	}
	total := len(entries)
	if limit > 0 && total == limit {
		if total, err = m.Registry.Count(ctx); err != nil {
			return nil, 0, err
		}
	}
	list := m.statuses(ctx, entries)
	held, _ := m.Leases.WhichHeld(useLocks(entries)) // one that cannot be asked is shown by its last use
	for i := range list {
		list[i].InUse = held[useLock(list[i].ContainerName)]
	}
	return list, total, nil
}

// Pooled returns the sandboxes that wait in pools, or are made for them, the oldest first.
// It costs one query and one call per backend.
func (m *Manager) Pooled(ctx context.Context) ([]Status, error) {
	entries, err := m.Registry.Pooled(ctx)
	if err != nil {
		return nil, err
	}
	return m.statuses(ctx, entries), nil
}

// CurrentImage returns the id of the image that a reference names now; "" if the
// machinery does not know, or does not answer.
func (m *Manager) CurrentImage(ctx context.Context, backend, ref string) string {
	rt, err := m.Runtime(ctx, backend)
	if err != nil {
		return ""
	}
	id, err := currentImage(ctx, rt, ref)
	if err != nil {
		return ""
	}
	return id
}

func currentImage(ctx context.Context, rt Runtime, ref string) (string, error) {
	resolver, ok := rt.(ImageResolver)
	if !ok {
		return "", nil
	}
	return resolver.ImageID(ctx, ref)
}

// statuses adds to entries what their machinery says, which is asked once per backend.
func (m *Manager) statuses(ctx context.Context, entries []*Entry) []Status {
	engines := map[string]backendView{}
	list := make([]Status, 0, len(entries))
	for _, e := range entries {
		if _, asked := engines[e.Backend]; !asked {
			engines[e.Backend] = m.look(ctx, e.Backend)
		}
		list = append(list, engines[e.Backend].status(e))
	}
	return list
}

func useLocks(entries []*Entry) []string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, useLock(e.ContainerName))
	}
	return names
}

// Status returns one sandbox as List shows it, or ErrNotFound.
func (m *Manager) Status(ctx context.Context, name string) (*Status, error) {
	entry, err := m.Registry.Get(ctx, name)
	if err == nil && entry.Kind == KindPool {
		err = fmt.Errorf("sandbox %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	seen, err := m.summary(ctx, name)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForeign) {
		err = nil // its container is gone
	}
	s := backendView{map[string]Summary{entry.RuntimeName(): seen}, err}.status(entry)
	s.InUse, _ = m.Leases.IsHeld(useLock(name))
	return &s, nil
}

// backendView is what one backend answered.
type backendView struct {
	present map[string]Summary
	err     error
}

func (m *Manager) look(ctx context.Context, backend string) backendView {
	_, present, err := m.inventory(ctx, backend)
	view := backendView{make(map[string]Summary, len(present)), err}
	for _, s := range present {
		view.present[s.Name] = s
	}
	return view
}

func (v backendView) status(e *Entry) Status {
	seen := v.present[e.RuntimeName()]
	s := Status{Entry: e, State: seen.State, ImageID: seen.ImageID, Problem: seen.Problem}
	if !seen.SavedAt.IsZero() {
		s.LastSavedAtMs = seen.SavedAt.UnixMilli()
	}
	s.Running = s.State == StateRunning
	switch {
	case v.err != nil:
		s.Problem, s.Unknown = v.err.Error(), true
	case e.Imported:
		s.Problem = "taken over from an old registry; its container is not ours to manage"
	case e.Phase != PhaseReady:
		s.Problem = string(e.Phase)
	case s.State == "":
		s.Problem = "its container is gone"
	}
	return s
}
