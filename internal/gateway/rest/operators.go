package rest

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// examineTimeout bounds an examination of the machine.
const examineTimeout = 30 * time.Second

// doctor examines the machine, which is the same for all accounts.
func (s *Server) doctor(c *call, _, _ *none) (*api.Doctor, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	answer := &api.Doctor{Checks: []api.DoctorCheck{}}
	if s.Examine != nil {
		ctx, cancel := context.WithTimeout(c.ctx(), examineTimeout)
		defer cancel()
		answer.Checks = append(answer.Checks, s.Examine(ctx)...)
	}
	return answer, nil
}

// listTokens lists the tokens of the accounts that the caller sees.
func (s *Server) listTokens(c *call, _, _ *none) (*api.Tokens, error) {
	answer := &api.Tokens{Tokens: []api.Token{}}
	if s.Tokens == nil {
		return answer, nil
	}
	list, err := s.Tokens(c.ctx())
	for i := range list {
		if c.caller.Sees(list[i].Account) {
			answer.Tokens = append(answer.Tokens, tokenOf(&list[i]))
		}
	}
	return answer, err
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
