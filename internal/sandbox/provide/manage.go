package provide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Listed is one sandbox and what a person wants to know of it.
type Listed struct {
	sandbox.Status
	ImageMatch bool            `json:"imageMatch"` // made from the image now configured
	Drift      workspace.Drift `json:"drift,omitzero"`
}

// List returns up to limit sandboxes, the last used first, and their number. Their drift
// is not among it: see AddDrift.
func (a *Installation) List(ctx context.Context, limit int) ([]Listed, int, error) {
	statuses, total, err := a.Manager.List(ctx, limit)
	return a.Describe(statuses), total, err
}

// Describe returns sandboxes as List does.
func (a *Installation) Describe(statuses []sandbox.Status) []Listed {
	d := &describer{in: a, agents: map[string]*config.Agent{}, packaged: sync.OnceValues(a.packagedImage)}
	list := make([]Listed, 0, len(statuses))
	for _, s := range statuses {
		list = append(list, d.describe(s))
	}
	return list
}

// describer has what all sandboxes of a list are compared with.
type describer struct {
	in       *Installation
	agents   map[string]*config.Agent
	packaged func() (string, error)
}

func (d *describer) describe(s sandbox.Status) Listed {
	entry := *s.Entry // others may have the same list
	s.Entry = &entry
	l := Listed{Status: s, ImageMatch: isOfRequest(s.Entry)}
	d.in.WithEndpoints(s.Entry)
	if agent := d.in.agent(d.agents, s.AgentID); agent != nil && !isOfRequest(s.Entry) {
		l.ImageMatch = s.Image == d.expectedImage(agent, s.Entry)
		l.Problem = cmp.Or(l.Problem, oneWall(agent, s.Entry))
	}
	return l
}

// AddDrift adds how the copies of sandboxes differ from their sources.
func (a *Installation) AddDrift(list []Listed) {
	agents, reader := map[string]*config.Agent{}, new(workspace.DriftReader)
	for i := range list {
		if agent := a.agent(agents, list[i].AgentID); agent != nil {
			list[i].Drift = a.drift(reader, agent, list[i].Entry)
		}
	}
}

// oneWall says of a browser that Chromium has no sandbox of its own.
func oneWall(agent *config.Agent, entry *sandbox.Entry) string {
	if entry.Kind == sandbox.KindBrowser && agent.Sandbox.Browser.NoSandbox {
		return "one wall: dangerouslyNoSandbox"
	}
	return ""
}

// Status returns one sandbox as List does, with its drift.
func (a *Installation) Status(ctx context.Context, name string) (*Listed, error) {
	status, err := a.Manager.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	list := a.Describe([]sandbox.Status{*status})
	a.AddDrift(list)
	return &list[0], nil
}

// agent resolves each agent once; nil if it is no longer configured.
func (a *Installation) agent(known map[string]*config.Agent, id string) *config.Agent {
	if agent, ok := known[id]; ok {
		return agent
	}
	agent, err := a.Config.Resolve(id)
	if err != nil {
		agent = nil
	}
	known[id] = agent
	return agent
}

func (d *describer) expectedImage(agent *config.Agent, entry *sandbox.Entry) string {
	switch {
	case entry.Kind == sandbox.KindBrowser:
		return agent.Sandbox.Browser.Image
	case entry.Backend == BackendLinux && UsesHostPrograms(agent):
		if !strings.HasPrefix(entry.Image, packagedName+":") {
			return HostImage
		}
		if name, err := d.packaged(); err == nil {
			return name
		}
		return HostImage
	}
	return agent.Sandbox.Docker.Image
}

// drift is how a sandbox's copy differs from its seed. What cannot be read
// shows no drift: doctor and diff tell more.
func (a *Installation) drift(reader *workspace.DriftReader, agent *config.Agent, entry *sandbox.Entry) workspace.Drift {
	layout, ok := a.seededLayout(agent, entry)
	if !ok {
		return workspace.Drift{}
	}
	drift, err := reader.Drift(layout)
	if err != nil {
		return workspace.Drift{}
	}
	return drift
}

// seededLayout returns the layout of a sandbox that works in the copy which its agent's
// configuration gives it.
func (a *Installation) seededLayout(agent *config.Agent, entry *sandbox.Entry) (workspace.Layout, bool) {
	layout, err := plan.LayoutOf(a.Config, agent, entry.SessionKey)
	return layout, err == nil && layout.WorkspaceDir == entry.WorkspaceDir && !isOfRequest(entry)
}

// Selector says which sandboxes a verb means.
type Selector struct {
	All     bool
	Session string // scope key, or a session whose scope key is meant
	Agent   string
	Browser bool // browser sandboxes instead of command sandboxes
	Discard bool // private copies are to be wiped, also those without a sandbox
}

// Select returns the registry entries that a selector means. Private copies
// without a sandbox that are to be changed come as entries without a backend.
func (a *Installation) Select(ctx context.Context, s Selector) ([]*sandbox.Entry, error) {
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	left, err := a.outdatedCopies(ctx, s.Discard)
	if err != nil {
		return nil, err
	}
	entries = append(entries, left...)
	wanted := a.Selects(s)
	var chosen []*sandbox.Entry
	for _, e := range entries {
		if wanted(e) {
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

// Selects tells which entries of a registry a selector means.
func (s *Settings) Selects(sel Selector) func(*sandbox.Entry) bool {
	kind := sandbox.KindSandbox
	if sel.Browser {
		kind = sandbox.KindBrowser
	}
	wanted := sel.matcher(s)
	return func(e *sandbox.Entry) bool { return e.Kind == kind && !IsDockerContainer(e) && wanted(e) }
}

func (s Selector) matcher(settings *Settings) func(*sandbox.Entry) bool {
	switch {
	case s.All:
		return func(*sandbox.Entry) bool { return true }
	case s.Agent != "":
		id := policy.NormalizeAgentID(s.Agent)
		return func(e *sandbox.Entry) bool { return e.AgentID == id || policy.ScopeHasAgent(e.SessionKey, id) }
	}
	scopeKey := s.Session
	if p, err := settings.Plan(Subject{SessionKey: s.Session}); err == nil {
		scopeKey = p.ScopeKey
		if b, err := p.Browser(); err == nil && s.Browser {
			scopeKey = b.ScopeKey
		}
	}
	return func(e *sandbox.Entry) bool { return e.SessionKey == s.Session || e.SessionKey == scopeKey }
}

// Recreated is what became of one sandbox.
type Recreated struct {
	Entry  *sandbox.Entry   `json:"sandbox"`
	Report workspace.Report `json:"workspace"`
	Error  string           `json:"error,omitempty"`
	Err    error            `json:"-"`
}

// Recreate removes a sandbox, so that the next use makes it anew, and brings
// its copy up to date: unchanged seed files are copied again, changed ones are
// moved aside; with discard the whole copy is wiped.
func (a *Installation) Recreate(ctx context.Context, entry *sandbox.Entry, discard bool) Recreated {
	result := Recreated{Entry: entry}
	if discard {
		result.Err = a.Manager.Discard(ctx, entry.ContainerName)
	} else {
		result.Err = a.Manager.Remove(ctx, entry.ContainerName, nil)
	}
	if result.Err == nil {
		result.Err = a.IfGone(ctx, entry.ContainerName, func() (err error) {
			result.Report, err = a.reseed(ctx, entry, discard)
			return err
		})
	}
	if result.Err != nil {
		result.Error = result.Err.Error()
	}
	return result
}

// IfGone runs f, which changes the copy of a removed sandbox, while it holds the
// sandbox's lock. It returns ErrBusy if the sandbox was made anew before.
func (a *Installation) IfGone(ctx context.Context, name string, f func() error) error {
	return a.Manager.Exclusively(name, func() error {
		_, err := a.Registry.Get(ctx, name)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			return f()
		case err != nil:
			return err
		}
		return fmt.Errorf("sandbox %q: made anew meanwhile, so its copy stays: %w", name, sandbox.ErrBusy)
	})
}

// reseed brings the copy of a removed sandbox up to date, or wipes it.
func (a *Installation) reseed(ctx context.Context, entry *sandbox.Entry, discard bool) (workspace.Report, error) {
	if entry.Imported {
		return workspace.Report{}, nil
	}
	if entry.Kind == sandbox.KindBrowser {
		return workspace.Report{}, a.removeProfile(entry)
	}
	if shared, err := a.Registry.SharesWorkspace(ctx, entry); shared || err != nil {
		return workspace.Report{}, err // the last half to go does it
	}
	now, agent, err := a.layoutNow(entry)
	switch {
	case err != nil:
		return workspace.Report{}, err
	case discard || agent == nil || !now.HasCopy() || now.WorkspaceDir != entry.WorkspaceDir || isTemporary(entry):
		return a.discardOld(ctx, entry, discard || isTemporary(entry))
	}
	return workspace.Reseed(ctx, now, workspace.Options{User: numericUser(agent.Sandbox.Docker.User)}, false)
}

// layoutNow is the layout that the configuration gives a sandbox now; the agent
// is nil if it is no longer configured.
func (a *Installation) layoutNow(entry *sandbox.Entry) (workspace.Layout, *config.Agent, error) {
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return workspace.Layout{}, nil, nil
	}
	layout, err := plan.LayoutOf(a.Config, agent, entry.SessionKey)
	return layout, agent, err
}

// Prune repairs and removes what is due now. With workspaces, every private
// copy goes too that no sandbox uses.
func (a *Installation) Prune(ctx context.Context, workspaces bool) ([]sandbox.Removal, error) {
	a.sweep(ctx)
	defer a.tidyImages(ctx) // when the sandboxes that stood on them are gone
	defer a.RemoveDecidedRuns(ctx)
	removed, err := a.Manager.Prune(ctx, a.PruneLimits)
	if err == nil {
		removed = append(removed, a.forgetImported(ctx)...)
		removed = append(removed, a.removePools(ctx)...)
	}
	if err != nil || !workspaces {
		return removed, err
	}
	for i, r := range removed {
		if r.Err != nil {
			continue
		}
		err := a.IfGone(ctx, r.Entry.ContainerName, func() error { return a.removeCopy(ctx, r.Entry) })
		if !errors.Is(err, sandbox.ErrBusy) {
			removed[i].Err = err
		}
	}
	left, err := a.removeLeftCopies(ctx)
	return append(removed, left...), errors.Join(err, a.removeLeftProfiles(ctx))
}

// DockerAgent owns the containers of the docker front end. No configured agent
// can have this id, so no configuration applies to them but the defaults.
const DockerAgent = "(docker)"

// IsDockerContainer reports whether a sandbox was made with the docker front end: its
// makers decide when it goes, and recreate could not make it again.
func IsDockerContainer(e *sandbox.Entry) bool { return e.AgentID == DockerAgent }

// isOfRequest reports whether a sandbox is as its maker asked for, not as an agent is
// configured: it is never made anew with other settings, and has no behaviour files.
func isOfRequest(e *sandbox.Entry) bool { return IsDockerContainer(e) || e.AgentID == config.APIAgent }
