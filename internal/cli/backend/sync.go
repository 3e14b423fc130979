package backend

import (
	"context"
	"os/user"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/gate/overlays"
)

// Sync carries out the verbs about what agents changed in their overlays.
type Sync interface {
	Trees(ctx context.Context, s *api.SyncSubject) (*api.SyncTrees, error)
	// Runs lists the runs on the directory of a subject whose changes wait.
	Runs(ctx context.Context, s *api.SyncSubject) (*api.SyncRuns, error)
	Diff(ctx context.Context, s *api.SyncSubject, path string) (*api.SyncDiff, error)
	History(ctx context.Context, s *api.SyncSubject) (*api.SyncHistory, error)
	Commits(ctx context.Context, s *api.SyncSubject) (*api.SyncCommits, error)
	Approve(ctx context.Context, r *api.SyncApproval) (*api.SyncApplied, error)
	Override(ctx context.Context, r *api.SyncOverride) (*api.SyncApplied, error)
	Reject(ctx context.Context, r *api.SyncRejection) (*api.SyncDone, error)
	Undo(ctx context.Context, r *api.SyncUndo) (*api.SyncDone, error)
	Take(ctx context.Context, r *api.SyncTake) (*api.SyncTaken, error)
	Refresh(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error)
	Reset(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error)
	AcceptTorn(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error)
}

// OpenSync returns the running gateway, or this process.
func OpenSync(ctx context.Context, e *console.Env) (Sync, error) {
	g, err := RunningGateway(ctx, e)
	if err != nil {
		return nil, err
	}
	if g != nil {
		return gatewaySync{g.Client}, nil
	}
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	return localSync{a.Sync, person()}, nil
}

// person returns the name of the user who decides.
func person() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// localSync decides in this process.
type localSync struct {
	*overlays.Service
	by string
}

func (l localSync) Approve(ctx context.Context, r *api.SyncApproval) (*api.SyncApplied, error) {
	return l.Service.Approve(ctx, r, l.by)
}

func (l localSync) Override(ctx context.Context, r *api.SyncOverride) (*api.SyncApplied, error) {
	return l.Service.Override(ctx, r, l.by)
}

func (l localSync) Reject(ctx context.Context, r *api.SyncRejection) (*api.SyncDone, error) {
	return l.Service.Reject(ctx, r, l.by)
}

func (l localSync) Undo(ctx context.Context, r *api.SyncUndo) (*api.SyncDone, error) {
	return l.Service.Undo(ctx, r, l.by)
}

func (l localSync) Take(ctx context.Context, r *api.SyncTake) (*api.SyncTaken, error) {
	return l.Service.Take(ctx, r, l.by)
}

func (l localSync) Refresh(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return l.Service.Refresh(ctx, r, l.by)
}

func (l localSync) Reset(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return l.Service.Reset(ctx, r, l.by)
}

func (l localSync) AcceptTorn(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return l.Service.AcceptTorn(ctx, r, l.by)
}

// gatewaySync passes decisions on to the running gateway.
type gatewaySync struct{ client *client.Client }

func query(s *api.SyncSubject) api.SyncQuery {
	return api.SyncQuery{Directory: s.Directory, Run: s.Run, Agent: s.Agent, Session: s.Session, Account: s.Account, Scope: s.Scope, Tree: s.Tree}
}

// answered returns an answer with the error that this process would give.
func answered[A any](answer *A, err error) (*A, error) {
	if err != nil {
		return nil, ProblemError(err)
	}
	return answer, nil
}

func (g gatewaySync) Trees(ctx context.Context, s *api.SyncSubject) (*api.SyncTrees, error) {
	return answered(g.client.SyncTrees(ctx, query(s)))
}

func (g gatewaySync) Runs(ctx context.Context, s *api.SyncSubject) (*api.SyncRuns, error) {
	return answered(g.client.SyncRuns(ctx, query(s)))
}

func (g gatewaySync) Diff(ctx context.Context, s *api.SyncSubject, path string) (*api.SyncDiff, error) {
	q := query(s)
	q.Path = path
	return answered(g.client.SyncDiff(ctx, q))
}

func (g gatewaySync) History(ctx context.Context, s *api.SyncSubject) (*api.SyncHistory, error) {
	return answered(g.client.SyncHistory(ctx, query(s)))
}

func (g gatewaySync) Approve(ctx context.Context, r *api.SyncApproval) (*api.SyncApplied, error) {
	return answered(g.client.ApproveSync(ctx, r))
}

func (g gatewaySync) Override(ctx context.Context, r *api.SyncOverride) (*api.SyncApplied, error) {
	return answered(g.client.OverrideSync(ctx, r))
}

func (g gatewaySync) Reject(ctx context.Context, r *api.SyncRejection) (*api.SyncDone, error) {
	return answered(g.client.RejectSync(ctx, r))
}

func (g gatewaySync) Undo(ctx context.Context, r *api.SyncUndo) (*api.SyncDone, error) {
	return answered(g.client.UndoSync(ctx, r))
}

func (g gatewaySync) Reset(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return answered(g.client.ResetSync(ctx, r))
}

func (g gatewaySync) AcceptTorn(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return answered(g.client.AcceptTornSync(ctx, r))
}

func (g gatewaySync) Commits(ctx context.Context, s *api.SyncSubject) (*api.SyncCommits, error) {
	return answered(g.client.SyncCommits(ctx, query(s)))
}

func (g gatewaySync) Take(ctx context.Context, r *api.SyncTake) (*api.SyncTaken, error) {
	return answered(g.client.TakeSync(ctx, r))
}

func (g gatewaySync) Refresh(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return answered(g.client.RefreshSync(ctx, r))
}
