package rest

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Sandboxes manages the sandboxes of every account.
type Sandboxes interface {
	// List returns all of them, without their drift.
	List(ctx context.Context) ([]api.Sandbox, error)
	// AddDrift adds the drift of sandboxes to what List returned of them.
	AddDrift(list []api.Sandbox)
	Get(ctx context.Context, name string) (*api.Sandbox, error)
	DriftDiffs(ctx context.Context, name string) (*api.DriftDiffs, error)
	Recreate(ctx context.Context, name string, discard bool) (*api.Recreated, error)
	Prune(ctx context.Context, workspaces bool) (*api.Pruned, error)
	Verify(ctx context.Context, name string) (*api.Verifications, error)
	Explain(ctx context.Context, q *api.ExplainQuery) (*api.Explanation, error)
}

// visibleSandboxes returns the sandboxes of an account ("" is all) that the caller
// may see, with what only hide takes away.
func (c *call) visibleSandboxes(account string) ([]api.Sandbox, error) {
	all, err := c.Sandboxes.List(c.ctx())
	if err != nil {
		return nil, err
	}
	return c.visibleOf(all, account)
}

// visibleOf returns those of a list of all sandboxes that visibleSandboxes returns.
func (c *call) visibleOf(all []api.Sandbox, account string) ([]api.Sandbox, error) {
	made, err := c.recordsOf(account)
	if err != nil {
		return nil, err
	}
	list := []api.Sandbox{}
	for _, s := range all {
		if r := made[s.ContainerName]; r != nil && r.Phase == sandboxes.Snapshot {
			continue // a template is no sandbox to work in
		}
		if c.caller.Sees(s.Account) && (account == "" || s.Account == account) {
			list = append(list, *c.withRecord(&s, made[s.ContainerName]))
		}
	}
	return list, nil
}

// show adds what a program gave a sandbox, and hides paths of the host from bound
// callers.
func (c *call) show(s *api.Sandbox, r *sandboxes.Record) *api.Sandbox {
	c.hide(s)
	return c.withRecord(s, r)
}

// hide takes away what callers that are bound to an account do not see.
func (c *call) hide(s *api.Sandbox) {
	if c.caller.Account != "" {
		s.WorkspaceDir, s.Problem = "", publicerr.Text(s.Problem)
	}
}

// showAll adds the drift of sandboxes and hides what the caller does not see.
func (c *call) showAll(list []api.Sandbox) {
	c.Sandboxes.AddDrift(list)
	for i := range list {
		c.hide(&list[i])
	}
}

// withRecord adds what a program gave a sandbox.
func (c *call) withRecord(s *api.Sandbox, r *sandboxes.Record) *api.Sandbox {
	if r != nil {
		s.ID, s.Deadline, s.OnDeadline, s.Metadata, s.Workdir = r.ID, r.Deadline, r.OnDeadline, r.Metadata, r.Details.Workdir
		s.Template = r.Template
		if c.caller.May(access.Run) {
			s.PortToken = r.Details.PortToken
		}
	}
	return s
}

func (s *Server) getSandbox(c *call, _, _ *none) (*api.Sandbox, error) {
	r, err := c.madeSandbox()
	if err == nil {
		return c.sandboxOf(r)
	} else if !errors.Is(err, sandboxes.ErrNotFound) || r != nil { // that of another account, or a template
		return nil, err
	}
	found, err := s.Sandboxes.Get(c.ctx(), c.path("id"))
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && !c.caller.Sees(found.Account) {
		return nil, sandboxes.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return c.show(found, nil), nil
}

// sandboxDrift shows what differs in the files of a drift.
func (s *Server) sandboxDrift(c *call, _, _ *none) (*api.DriftDiffs, error) {
	box, err := s.getSandbox(c, nil, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.Sandboxes.DriftDiffs(c.ctx(), box.ContainerName)
	if err == nil && c.isBound() {
		for i := range answer.Files {
			answer.Files[i].Note = publicerr.Text(answer.Files[i].Note)
		}
	}
	return answer, err
}

func (s *Server) recreateSandbox(c *call, _ *none, body *api.RecreateRequest) (*api.Recreated, error) {
	box, err := s.getSandbox(c, nil, nil)
	if err != nil {
		return nil, err
	}
	done, err := s.Sandboxes.Recreate(c.ctx(), box.ContainerName, body.Discard)
	if err == nil && c.caller.Account != "" {
		done.Aside = ""
	}
	return done, err
}

func (s *Server) verifySandbox(c *call, _, _ *none) (*api.Verifications, error) {
	box, err := s.getSandbox(c, nil, nil)
	if err != nil {
		return nil, err
	}
	found, err := s.Sandboxes.Verify(c.ctx(), box.ContainerName)
	if err == nil && c.isBound() {
		for _, v := range found.Verified {
			for i := range v.Checks {
				v.Checks[i].Promised, v.Checks[i].Found = publicerr.Text(v.Checks[i].Promised), publicerr.Text(v.Checks[i].Found)
			}
		}
	}
	return found, err
}

// pruneSandboxes is refused to callers bound to an account: it covers every
// account.
func (s *Server) pruneSandboxes(c *call, _ *none, body *api.PruneRequest) (*api.Pruned, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	return s.Sandboxes.Prune(c.ctx(), body.Workspaces)
}

// requireUnbound refuses callers that are bound to an account.
func (c *call) requireUnbound() error {
	if c.caller.Account != "" {
		return refused("bound_token", "this is about all accounts, and the token is bound to one", "")
	}
	return nil
}

func (s *Server) explain(c *call, q *api.ExplainQuery, _ *none) (*api.Explanation, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	q.Account = account
	x, err := s.Sandboxes.Explain(c.ctx(), q)
	if err == nil && c.isBound() {
		x.Reason, x.Refused = publicerr.Text(x.Reason), publicTexts(x.Refused)
	}
	return x, err
}
