package provide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// Find says for whom a sandbox of that name, or the sandbox of a session of
// that name, was made.
func (a *Installation) Find(ctx context.Context, nameOrSession string) (Subject, error) {
	entry, err := a.Registry.Get(ctx, nameOrSession)
	if errors.Is(err, sandbox.ErrNotFound) {
		return a.forkOf(ctx, Subject{SessionKey: nameOrSession}), nil
	} else if err != nil {
		return Subject{}, err
	}
	if entry.AgentID == config.APIAgent && a.FindMade != nil {
		return a.FindMade(ctx, entry)
	}
	who := Subject{AgentID: entry.AgentID, Account: entry.Account}
	if _, key := policy.ScopeAccount(entry.SessionKey); policy.ScopeHasAgent(key, entry.AgentID) && key != "agent:"+entry.AgentID {
		who.SessionKey = key
	}
	who = a.forkOf(ctx, who)
	p, err := a.Plan(who)
	if err != nil {
		return who, err
	}
	if entry.Kind == sandbox.KindBrowser {
		if p, err = p.Browser(); err != nil {
			return who, err
		}
	}
	if entry.ContainerName != p.Spec.Name && (p.Net == nil || entry.ContainerName != p.Net.Name) {
		return who, errhint.With(fmt.Errorf("sandbox %q is not one that the configuration now makes", nameOrSession),
			"name its session with --session, or remove it with atoll sandbox prune")
	}
	return who, nil
}

// Entries returns every sandbox of the registry, the last used first.
func (a *Installation) Entries(ctx context.Context) ([]*sandbox.Entry, error) {
	return a.Registry.List(ctx, 0)
}

// FirstTime reports whether this is the first call with name, and remembers it. What cannot be remembered is not the first time.
func (a *Installation) FirstTime(ctx context.Context, name string) bool {
	fact, err := a.Registry.Fact(ctx, "first:"+name)
	if err != nil || fact != "" {
		return false
	}
	return a.Registry.SetFact(ctx, "first:"+name, "1") == nil
}

// HasState reports whether there is a state directory: opening one would make it.
func (s *Settings) HasState() bool {
	_, err := os.Stat(filepath.Join(s.Paths.AtollState, databaseFile))
	return err == nil
}

// Attach enters the sandboxes of a session that run, as they are. It makes and
// starts none: the list may be empty.
func (a *Installation) Attach(ctx context.Context, who Subject) ([]*sandbox.Handle, error) {
	p, err := a.Plan(who)
	if err != nil {
		return nil, err
	}
	var handles []*sandbox.Handle
	for _, spec := range specs(p) {
		h, err := a.Manager.Attach(ctx, spec.Name)
		if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrNotRunning) {
			continue
		}
		if err != nil {
			release(handles...)
			return nil, err
		}
		handles = append(handles, h)
	}
	return handles, nil
}

// specs are the sandboxes of a plan: one, or two halves.
func specs(p *plan.Plan) []*sandbox.Spec {
	if p.Net == nil {
		return []*sandbox.Spec{p.Spec}
	}
	return []*sandbox.Spec{p.Spec, p.Net}
}
