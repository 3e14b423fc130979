package rest

import (
	"cmp"
	"context"
	"os/user"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
)

// Approvals is the queue of questions to a person.
type Approvals interface {
	List(ctx context.Context, f approval.Filter) ([]approval.Question, error)
	Get(ctx context.Context, id string) (*approval.Question, error)
	// Answer answers a question and does what follows; the note says what became of
	// that.
	Answer(ctx context.Context, id string, reply approval.Reply) (q *approval.Question, note string, err error)
}

func (s *Server) listApprovals(c *call, q *api.ApprovalQuery, _ *none) (*api.Approvals, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	f := approval.Filter{Account: account, Kind: q.Kind, Open: !q.All, After: q.Cursor, Most: cmp.Or(q.Limit, approval.MaxList)}
	list, err := s.Approvals.List(c.ctx(), f)
	if err != nil {
		return nil, err
	}
	answer := &api.Approvals{Approvals: []api.Approval{}}
	for i := range list {
		row := approvalOf(&list[i])
		row.Evidence = ""
		answer.Approvals = append(answer.Approvals, row)
	}
	if len(list) == f.Most {
		answer.Next = list[len(list)-1].ID
	}
	return answer, nil
}

// approval returns the question that the path names, if the caller may see it.
func (c *call) approval() (*approval.Question, error) {
	q, err := c.Approvals.Get(c.ctx(), c.path("id"))
	if err == nil && !c.caller.Sees(q.Owner.Account) {
		err = approval.ErrNotFound
	}
	return q, err
}

func (s *Server) getApproval(c *call, _, _ *none) (*api.Approval, error) {
	q, err := c.approval()
	if err != nil {
		return nil, err
	}
	answer := approvalOf(q)
	return &answer, nil
}

func (s *Server) answerApproval(c *call, _ *none, b *api.ApprovalAnswer) (*api.AnsweredApproval, error) {
	asked, err := c.approval()
	if err != nil {
		return nil, err
	}
	if err := checkAnswer(asked, approval.Answer(b.Answer)); err != nil {
		return nil, err
	}
	q, note, err := s.Approvals.Answer(c.ctx(), asked.ID, approval.Reply{Answer: approval.Answer(b.Answer), Hash: b.Hash, By: c.person()})
	if err != nil {
		return nil, err
	}
	if c.isBound() {
		note = publicerr.Text(note)
	}
	return &api.AnsweredApproval{Approval: approvalOf(q), Note: note}, nil
}

// checkAnswer refuses an answer that the question does not offer.
func checkAnswer(q *approval.Question, a approval.Answer) error {
	switch {
	case !slices.Contains(approval.Answers(), a):
		return invalid(api.FieldError{Pointer: "/answer", Detail: "must be once, session, rule or deny"})
	case q.Rule == "" && (a == approval.Session || a == approval.Rule):
		return invalid(api.FieldError{Pointer: "/answer", Detail: "a " + q.Kind + " question is answered with once or deny"})
	case a == approval.Session && q.Owner.Session == "":
		return invalid(api.FieldError{Pointer: "/answer", Detail: "the question belongs to no session"})
	}
	return nil
}

// person names the caller of a decision: the user of this process on the owner's
// socket, else the token.
func (c *call) person() string {
	if c.caller.Token == access.Socket().Token {
		if u, err := user.Current(); err == nil {
			return u.Username
		}
	}
	if c.caller.Name != "" && c.caller.Name != c.caller.Token {
		return c.caller.Name + " (token " + c.caller.Token + ")"
	}
	return "token " + c.caller.Token
}

func approvalOf(q *approval.Question) api.Approval {
	return api.Approval{
		ID: q.ID, Kind: q.Kind, Subject: q.Subject, Owner: api.ApprovalOwner(q.Owner), Summary: q.Summary, Rule: q.Rule, Evidence: q.Evidence, Hash: q.Hash,
		Created: q.Created, Expires: q.Expires, Default: string(q.Default), State: string(q.State), Answer: string(q.Answer), AnsweredBy: q.AnsweredBy, AnsweredAt: q.AnsweredAt,
	}
}
