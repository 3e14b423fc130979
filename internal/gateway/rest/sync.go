package rest

import (
	"context"
	"slices"

	"github.com/atoll-run/atoll/api"
)

// Sync decides about what agents changed in their overlays. The callers of decisions
// are named by.
type Sync interface {
	Trees(ctx context.Context, s *api.SyncSubject) (*api.SyncTrees, error)
	Runs(ctx context.Context, s *api.SyncSubject) (*api.SyncRuns, error)
	Diff(ctx context.Context, s *api.SyncSubject, path string) (*api.SyncDiff, error)
	History(ctx context.Context, s *api.SyncSubject) (*api.SyncHistory, error)
	Commits(ctx context.Context, s *api.SyncSubject) (*api.SyncCommits, error)
	Approve(ctx context.Context, r *api.SyncApproval, by string) (*api.SyncApplied, error)
	Override(ctx context.Context, r *api.SyncOverride, by string) (*api.SyncApplied, error)
	Reject(ctx context.Context, r *api.SyncRejection, by string) (*api.SyncDone, error)
	Undo(ctx context.Context, r *api.SyncUndo, by string) (*api.SyncDone, error)
	Take(ctx context.Context, r *api.SyncTake, by string) (*api.SyncTaken, error)
	Refresh(ctx context.Context, r *api.SyncRequest, by string) (*api.SyncDone, error)
	Reset(ctx context.Context, r *api.SyncRequest, by string) (*api.SyncDone, error)
	AcceptTorn(ctx context.Context, r *api.SyncRequest, by string) (*api.SyncDone, error)
}

// checkSubject binds a subject to the caller's account. Directories of the host, and
// runs on them, are for callers that are bound to none.
func (c *call) checkSubject(s *api.SyncSubject) error {
	account, err := c.account(s.Account)
	switch {
	case err != nil:
		return err
	case c.isBound() && s.Directory+s.Run != "":
		return refused("bound_token", "directories of the host and runs on them are not for tokens that are bound to an account", "name the agent or the session")
	case s.Directory != "" && s.Run+s.Agent+s.Session+s.Account+s.Scope != "":
		return invalid(api.FieldError{Pointer: "/subject/directory", Detail: "names the sandbox by itself: leave run, agent, session, account and scope out"})
	case s.Run != "" && s.Agent+s.Session+s.Account+s.Scope != "":
		return invalid(api.FieldError{Pointer: "/subject/run", Detail: "names the sandbox by itself: leave agent, session, account and scope out"})
	case !slices.Contains([]string{"", "session", "agent", "shared"}, s.Scope):
		return invalid(api.FieldError{Pointer: "/subject/scope", Detail: "must be session, agent or shared"})
	case s.Tree < 0:
		return invalid(api.FieldError{Pointer: "/subject/tree", Detail: "must be at least 0"})
	}
	s.Account = account
	return nil
}

// lookAt is a route that shows something of a subject.
func lookAt[A any](do func(c *call, s *api.SyncSubject, q *api.SyncQuery) (*A, error)) shape {
	return answers(func(c *call, q *api.SyncQuery, _ *none) (*A, error) {
		s := q.Subject()
		if err := c.checkSubject(s); err != nil {
			return nil, err
		}
		return do(c, s, q)
	})
}

// decision is a route that decides about the subject of its body.
func decision[B, A any](subject func(*B) *api.SyncSubject, do func(s Sync, ctx context.Context, body *B, by string) (*A, error)) shape {
	return answers(func(c *call, _ *none, body *B) (*A, error) {
		if err := c.checkSubject(subject(body)); err != nil {
			return nil, err
		}
		answer, err := do(c.Sync, c.ctx(), body, c.person())
		if applied, ok := any(answer).(*api.SyncApplied); ok && err == nil && c.isBound() {
			applied.Base = ""
		}
		return answer, err
	})
}

func (s *Server) syncTrees(c *call, subject *api.SyncSubject, _ *api.SyncQuery) (*api.SyncTrees, error) {
	all, err := s.Sync.Trees(c.ctx(), subject)
	if err == nil && c.isBound() {
		for i := range all.Trees {
			all.Trees[i].Base = ""
		}
	}
	return all, err
}

func (s *Server) syncRuns(c *call, subject *api.SyncSubject, _ *api.SyncQuery) (*api.SyncRuns, error) {
	if subject.Directory == "" {
		return nil, invalid(api.FieldError{Pointer: "directory", Detail: "is needed"})
	}
	return s.Sync.Runs(c.ctx(), subject)
}

func (s *Server) syncDiff(c *call, subject *api.SyncSubject, q *api.SyncQuery) (*api.SyncDiff, error) {
	if q.Path == "" {
		return nil, invalid(api.FieldError{Pointer: "path", Detail: "is needed"})
	}
	return s.Sync.Diff(c.ctx(), subject, q.Path)
}

func (s *Server) syncHistory(c *call, subject *api.SyncSubject, _ *api.SyncQuery) (*api.SyncHistory, error) {
	return s.Sync.History(c.ctx(), subject)
}

func (s *Server) syncCommits(c *call, subject *api.SyncSubject, _ *api.SyncQuery) (*api.SyncCommits, error) {
	return s.Sync.Commits(c.ctx(), subject)
}
