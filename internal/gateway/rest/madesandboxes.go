package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
)

// recordsOf returns the records of sandboxes that programs made, by name.
func (c *call) recordsOf(account string) (map[string]*sandboxes.Record, error) {
	if c.Made == nil {
		return nil, nil
	}
	return c.Made.All(c.ctx(), account)
}

// madeSandbox returns the sandbox of the path, if a program made it and the caller may see
// it.
func (c *call) madeSandbox() (*sandboxes.Record, error) {
	if c.Made == nil {
		return nil, sandboxes.ErrNotFound
	}
	r, err := c.Made.Get(c.ctx(), c.path("id"))
	if err == nil && (!c.caller.Sees(r.Account) || r.Phase == sandboxes.Snapshot) {
		err = sandboxes.ErrNotFound
	}
	return r, err
}

// sandboxOf returns a sandbox that a program made, as the caller may see it.
func (c *call) sandboxOf(r *sandboxes.Record) (*api.Sandbox, error) {
	found, err := c.Sandboxes.Get(c.ctx(), r.Name)
	if err != nil {
		return nil, err
	}
	return c.show(found, r), nil
}

// createSandbox makes a sandbox within the caller's quota.
func (s *Server) createSandbox(c *call, _ *none, body *api.CreateSandbox) (*api.Sandbox, error) {
	if s.Made == nil {
		return nil, &api.Problem{Status: http.StatusNotImplemented, Code: "not_supported", Detail: "this gateway makes no sandboxes"}
	}
	account, err := c.account(body.Account)
	if err != nil {
		return nil, err
	}
	if len(account) > maxName || strings.ContainsAny(account, "\r\n\x00") {
		return nil, invalid(api.FieldError{Pointer: "/account", Detail: fmt.Sprintf("must be one line of at most %d bytes", maxName)})
	}
	r, err := s.Made.Create(c.ctx(), &sandboxes.Request{CreateSandbox: body, Account: account, MostSandboxes: c.quota().Sandboxes, Bound: c.isBound()})
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", "/api/v1/sandboxes/"+r.ID)
	return c.sandboxOf(r)
}

// sandboxMetrics says what a sandbox uses.
func (s *Server) sandboxMetrics(c *call, _, _ *none) (*api.SandboxMetrics, error) {
	r, err := c.madeSandbox()
	if err != nil {
		return nil, err
	}
	return s.Made.Metrics(c.ctx(), r)
}

func (s *Server) removeSandbox(c *call, _, _ *none) (*api.Sandbox, error) {
	return c.change(func(r *sandboxes.Record) error { return s.Made.Remove(c.ctx(), r) })
}

func (s *Server) stopSandbox(c *call, _, _ *none) (*api.Sandbox, error) {
	return c.change(func(r *sandboxes.Record) error { return s.Made.Stop(c.ctx(), r) })
}

func (s *Server) startSandbox(c *call, _, _ *none) (*api.Sandbox, error) {
	return c.change(func(r *sandboxes.Record) error { return s.Made.Start(c.ctx(), r) })
}

func (s *Server) extendSandbox(c *call, _ *none, body *api.ExtendSandbox) (*api.Sandbox, error) {
	return c.change(func(r *sandboxes.Record) error {
		moved, err := s.Made.Extend(c.ctx(), r, body.TimeoutSeconds)
		if err == nil {
			*r = *moved
		}
		return err
	})
}

// change changes the sandbox of the path and returns it as it is then, or as it was if
// it is gone.
func (c *call) change(do func(*sandboxes.Record) error) (*api.Sandbox, error) {
	r, err := c.madeSandbox()
	if err != nil {
		return nil, err
	}
	before, _ := c.sandboxOf(r)
	if err := do(r); err != nil {
		return nil, err
	}
	if after, err := c.sandboxOf(r); err == nil {
		return after, nil
	}
	if before == nil {
		before = c.show(&api.Sandbox{ContainerName: r.Name, Account: r.Account}, r)
	}
	before.State, before.Running, before.InUse = "", false, false
	return before, nil
}
