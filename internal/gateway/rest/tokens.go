package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/secret"
)

// Tokens are the tokens of callers; access.TokenStore implements it.
type Tokens interface {
	List(ctx context.Context) ([]access.Token, error)
	Create(ctx context.Context, spec access.Spec) (secret.Value, *access.Token, error)
	Revoke(ctx context.Context, id string) error
}

// Devices are the devices of callers; access.Devices implements it.
type Devices interface {
	List(ctx context.Context) ([]access.Device, error)
	Approve(ctx context.Context, id string) error
	Remove(ctx context.Context, id string) error
}

// errNoTokens is the answer of a gateway without tokens or devices of its own.
var errNoTokens = &api.Problem{Status: http.StatusNotImplemented, Code: "not_supported", Detail: "this gateway keeps no tokens"}

// listTokens lists the tokens of the accounts that the caller sees.
func (s *Server) listTokens(c *call, _, _ *none) (*api.Tokens, error) {
	answer := &api.Tokens{Tokens: []api.Token{}}
	if s.Tokens == nil {
		return answer, nil
	}
	list, err := s.Tokens.List(c.ctx())
	for i := range list {
		if c.caller.Sees(list[i].Account) {
			answer.Tokens = append(answer.Tokens, tokenOf(&list[i]))
		}
	}
	return answer, err
}

// createToken makes a token; a caller that is bound to an account makes them for that.
func (s *Server) createToken(c *call, _ *none, body *api.CreateToken) (*api.CreatedToken, error) {
	if s.Tokens == nil {
		return nil, errNoTokens
	}
	account, err := c.account(body.Account)
	if err != nil {
		return nil, err
	}
	spec := access.Spec{Name: body.Name, Scope: access.Scope(body.Scope), Account: account, Life: time.Duration(body.Days) * 24 * time.Hour}
	if err := spec.Check(); err != nil {
		return nil, invalid(api.FieldError{Pointer: "", Detail: err.Error()})
	}
	text, made, err := s.Tokens.Create(c.ctx(), spec)
	if err != nil {
		return nil, err
	}
	return &api.CreatedToken{Text: text.Reveal(), Token: tokenOf(made)}, nil
}

// revokeToken ends a token; one of another account is not found.
func (s *Server) revokeToken(c *call, _, _ *none) (*api.Done, error) {
	all, err := s.listTokens(c, nil, nil)
	if err != nil {
		return nil, err
	}
	for i := range all.Tokens {
		if all.Tokens[i].ID == c.path("id") {
			return &api.Done{OK: true}, s.Tokens.Revoke(c.ctx(), c.path("id"))
		}
	}
	return nil, &api.Problem{Status: http.StatusNotFound, Code: "token_not_found", Detail: "there is no such token"}
}

func tokenOf(t *access.Token) api.Token {
	answer := api.Token{ID: t.ID, Name: t.Name, Scope: string(t.Scope), Account: t.Account, Created: t.Created, Expires: t.Expires}
	if t.LastUsed != nil {
		answer.LastUsed = *t.LastUsed
	}
	if t.Revoked != nil {
		answer.Revoked = *t.Revoked
	}
	return answer
}

// listDevices lists the devices, of all accounts.
func (s *Server) listDevices(c *call, _, _ *none) (*api.Devices, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	answer := &api.Devices{Devices: []api.Device{}}
	if s.Devices == nil {
		return answer, nil
	}
	list, err := s.Devices.List(c.ctx())
	for _, d := range list {
		device := api.Device{ID: d.ID, Token: d.Token, Client: d.Client, Platform: d.Platform, Created: d.Created, Paired: d.Approved != nil}
		if d.LastUsed != nil {
			device.LastUsed = *d.LastUsed
		}
		answer.Devices = append(answer.Devices, device)
	}
	return answer, err
}

// pairDevice pairs a device that waits for it.
func (s *Server) pairDevice(c *call, _, _ *none) (*api.Done, error) {
	return s.changeDevice(c, func(d Devices) error { return d.Approve(c.ctx(), c.path("id")) })
}

// removeDevice ends a device.
func (s *Server) removeDevice(c *call, _, _ *none) (*api.Done, error) {
	return s.changeDevice(c, func(d Devices) error { return d.Remove(c.ctx(), c.path("id")) })
}

func (s *Server) changeDevice(c *call, change func(Devices) error) (*api.Done, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	if s.Devices == nil {
		return nil, errNoTokens
	}
	if err := change(s.Devices); errors.Is(err, access.ErrUnknownDevice) {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "device_not_found", Detail: "there is no such device"}
	} else if err != nil {
		return nil, fmt.Errorf("the device was not changed: %w", err)
	}
	return &api.Done{OK: true}, nil
}
