package rest

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
)

// Sandboxes manages the sandboxes of every account.
type Sandboxes interface {
	List(ctx context.Context) ([]api.Sandbox, error)
	Recreate(ctx context.Context, name string, discard bool) (*api.Recreated, error)
	Prune(ctx context.Context, workspaces bool) (*api.Pruned, error)
	Verify(ctx context.Context, name string) (*api.Verifications, error)
	Explain(ctx context.Context, q *api.ExplainQuery) (*api.Explanation, error)
}

// visibleSandboxes returns the sandboxes of an account ("" is all) that the caller
// may see.
func (c *call) visibleSandboxes(account string) ([]api.Sandbox, error) {
	all, err := c.Sandboxes.List(c.ctx())
	if err != nil {
		return nil, err
	}
	list := []api.Sandbox{}
	for _, s := range all {
		if !c.caller.Sees(s.Account) || account != "" && s.Account != account {
			continue
		}
		if c.caller.Account != "" {
			s.WorkspaceDir, s.Problem = "", publicerr.Text(s.Problem) // paths of the host are hidden from bound callers
		}
		list = append(list, s)
	}
	return list, nil
}

func (s *Server) listSandboxes(c *call, q *api.SandboxQuery, _ *none) (*api.Sandboxes, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	list, err := c.visibleSandboxes(account)
	if err != nil {
		return nil, err
	}
	total := len(list)
	if q.Limit > 0 && q.Limit < total {
		list = list[:q.Limit]
	}
	return &api.Sandboxes{Sandboxes: list, Total: total}, nil
}

func (s *Server) getSandbox(c *call, _, _ *none) (*api.Sandbox, error) {
	list, err := c.visibleSandboxes("")
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ContainerName == c.path("name") {
			return &list[i], nil
		}
	}
	return nil, &api.Problem{Status: http.StatusNotFound, Code: "sandbox_not_found", Detail: "there is no such sandbox"}
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
