package rest

import (
	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
)

// forkSandbox makes a sandbox with the files of that of the path.
func (s *Server) forkSandbox(c *call, _ *none, body *api.ForkSandbox) (*api.Sandbox, error) {
	source, err := c.madeSandbox()
	if err != nil {
		return nil, err
	}
	r, err := s.Made.Fork(c.ctx(), source, &sandboxes.Request{
		CreateSandbox: &api.CreateSandbox{Metadata: body.Metadata, TimeoutSeconds: body.TimeoutSeconds}, MostSandboxes: c.quota().Sandboxes, Bound: c.isBound(),
	})
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", "/api/v1/sandboxes/"+r.ID)
	return c.sandboxOf(r)
}

// createSnapshot keeps the files of the sandbox of the path.
func (s *Server) createSnapshot(c *call, _ *none, body *api.CreateSnapshot) (*api.Template, error) {
	source, err := c.madeSandbox()
	if err != nil {
		return nil, err
	}
	r, err := s.Made.Snapshot(c.ctx(), source, body.Name, c.quota().Sandboxes)
	if err != nil {
		return nil, err
	}
	answer := sandboxes.TemplateOf(r)
	return &answer, nil
}

func (s *Server) listTemplates(c *call, q *api.TemplateQuery, _ *none) (*api.Templates, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	answer := &api.Templates{Templates: []api.Template{}}
	if s.Made == nil {
		return answer, nil
	}
	list, err := s.Made.Templates(c.ctx(), account)
	for _, r := range list {
		answer.Templates = append(answer.Templates, sandboxes.TemplateOf(r))
	}
	return answer, err
}

func (s *Server) removeTemplate(c *call, q *api.TemplateQuery, _ *none) (*api.Template, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	if s.Made == nil {
		return nil, sandboxes.ErrNoTemplate
	}
	r, err := s.Made.Template(c.ctx(), account, c.path("name"))
	if err != nil {
		return nil, err
	}
	answer := sandboxes.TemplateOf(r)
	return &answer, s.Made.Remove(c.ctx(), r)
}
