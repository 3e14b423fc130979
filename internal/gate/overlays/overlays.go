// Package overlays opens the gates of a sandbox's overlays and decides about them, in
// the words of package api: for the command line and for the gateway alike.
package overlays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Service decides about the overlays of one installation. It is safe for concurrent
// use, also by several processes: every gate has a lock.
type Service struct {
	*provide.Installation
	models    *service.Service
	questions *approval.Queue
	// OnChange, if set, is called after a decision changed something.
	OnChange func(Change)
}

// Change says that a decision changed something.
type Change struct {
	Account, Agent, Session string
	Verb                    string // approve, reject and so on
	Files                   int
}

// New returns the service of an installation, which asks people in a queue.
func New(models *service.Service, questions *approval.Queue) *Service {
	return &Service{Installation: models.Installation, models: models, questions: questions}
}

// ErrNone means that a subject has no overlay.
var ErrNone = overlay.ErrNone

// subject is the sandbox that a request names, with its overlays.
type subject struct {
	*Service
	plan    *plan.Plan
	account string
	run     *provide.RunOverlay // of a run on a directory; nil for others
	unknown bool                // its commits could not be looked at
	trees   []*overlay.Tree     // with files to decide about
	git     *overlay.Tree       // of the repository that a work tree belongs to; nil if there is none
	start   func(context.Context) (*provide.ReadySandbox, error)
}

// find plans the sandbox of a subject and loads its overlays.
func (s *Service) find(of *api.SyncSubject) (*subject, error) {
	var record *provide.RunOverlay
	if of.Run != "" {
		var err error
		if record, err = s.RunOverlay(of.Run); err != nil {
			return nil, err
		}
	}
	who, start, err := s.who(of, record)
	if err != nil {
		return nil, err
	}
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	all, err := s.OverlaysOf(p)
	if errors.Is(err, overlay.ErrNone) {
		err = none(of)
	}
	found := &subject{Service: s, plan: p, account: of.Account, run: record, start: start}
	for _, t := range all {
		if isGit(p, t) {
			found.git = t
		} else {
			found.trees = append(found.trees, t)
		}
	}
	if err == nil && len(found.trees) == 0 {
		err = none(of)
	}
	return found, err
}

// isGit reports whether an overlay is of the repository that a work tree belongs to:
// its files leave as commits only.
func isGit(p *plan.Plan, t *overlay.Tree) bool {
	return slices.ContainsFunc(p.Mounts, func(m policy.Mount) bool { return m.Kind == policy.MountGit && m.Target == t.Target })
}

// who returns the subject of package provide, and what starts its sandbox. Whatever the configuration says now,
// the workspace is looked at as an overlay: it may have been made with a flag.
func (s *Service) who(of *api.SyncSubject, record *provide.RunOverlay) (who provide.Subject, start func(context.Context) (*provide.ReadySandbox, error), err error) {
	switch {
	case of.Directory != "":
		return s.whoOf(of)
	case record != nil:
		who = s.RunSubject(record)
	default:
		who = provide.Subject{AgentID: of.Agent, SessionKey: of.Session, Account: of.Account, Adjust: func(agent *config.Agent) {
			agent.Sandbox.WorkspaceAccess = config.AccessOverlay
			agent.Sandbox.Scope = cmp.Or(config.Scope(of.Scope), agent.Sandbox.Scope)
		}}
	}
	return who, func(ctx context.Context) (*provide.ReadySandbox, error) {
		return s.Provide(ctx, who, provide.Options{})
	}, nil
}

// whoOf is who for a directory of the host.
func (s *Service) whoOf(of *api.SyncSubject) (who provide.Subject, start func(context.Context) (*provide.ReadySandbox, error), err error) {
	if !filepath.IsAbs(of.Directory) {
		return who, nil, errhint.With(fmt.Errorf("directory %q is no absolute path", of.Directory), "write the whole path")
	}
	d, err := s.Directory(of.Directory)
	if err == nil {
		d, err = s.Directories().Find(d)
	}
	if errors.Is(err, directory.ErrNone) {
		err = none(of)
	}
	if err != nil {
		return who, nil, err
	}
	o := provide.DirectoryOptions{Access: config.AccessOverlay}
	return s.DirectorySubject(d, o), func(ctx context.Context) (*provide.ReadySandbox, error) { return s.ProvideDirectory(ctx, d, o) }, nil
}

// none is the error of a subject without an overlay.
func none(of *api.SyncSubject) error {
	if of.Run != "" {
		return fmt.Errorf("run %s: %w", of.Run, ErrNone)
	}
	where := cmp.Or(of.Directory, of.Session, of.Agent, "the default agent")
	return errhint.With(fmt.Errorf("%s: %w", where, ErrNone), "`atoll claude`, `atoll codex` or `atoll shell` makes one in the directory of a project; `atoll run --access overlay -- COMMAND` in the agent's workspace")
}

// slug names the overlays of the subject in the state directory.
func (s *subject) slug() string { return s.plan.Layout.Slug }

// dir returns where the gate of an overlay has its own files.
func (s *subject) dir(t *overlay.Tree) string {
	return filepath.Join(s.Paths.AtollState, "sync", s.slug(), filepath.Base(t.Dir))
}

// tree returns an overlay by its number.
func (s *subject) tree(n int) (*overlay.Tree, error) {
	if n < 0 || n >= len(s.trees) {
		return nil, errhint.With(fmt.Errorf("overlay %s: %w", strconv.Itoa(n), ErrNone), "`atoll sync status` lists them")
	}
	return s.trees[n], nil
}

// changed tells that a decision changed something.
func (s *subject) changed(verb string, files int) {
	if s.OnChange != nil {
		s.OnChange(Change{s.account, s.plan.Agent.ID, s.plan.Session.Key, verb, files})
	}
}

// onTree runs f with the chosen overlay of a subject.
func onTree[A any](s *Service, of *api.SyncSubject, f func(*subject, *overlay.Tree) (*A, error)) (*A, error) {
	found, err := s.find(of)
	if err != nil {
		return nil, err
	}
	t, err := found.tree(of.Tree)
	if err != nil {
		return nil, err
	}
	answer, err := f(found, t)
	if err != nil {
		return nil, explain(err)
	}
	return answer, nil
}

// onGate runs f with the open gate of the chosen overlay.
func onGate[A any](ctx context.Context, s *Service, of *api.SyncSubject, f func(*opened) (*A, error)) (*A, error) {
	return onTree(s, of, func(found *subject, t *overlay.Tree) (*A, error) {
		g, err := found.open(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		answer, err := f(g)
		return answer, errors.Join(err, g.Close())
	})
}
