package backend

import (
	"context"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
)

// Questions lists the gateway's questions, without their evidence.
func (g Gateway) Questions(ctx context.Context, f approval.Filter) ([]approval.Question, error) {
	page, err := g.Client.Approvals(ctx, api.ApprovalQuery{All: !f.Open, Account: f.Account, Kind: f.Kind, Limit: f.Most})
	if err != nil {
		return nil, ProblemError(err)
	}
	list := make([]approval.Question, 0, len(page.Approvals))
	for i := range page.Approvals {
		list = append(list, *questionOf(&page.Approvals[i]))
	}
	return list, nil
}

// Question returns one question with its evidence.
func (g Gateway) Question(ctx context.Context, id string) (*approval.Question, error) {
	q, err := g.Client.Approval(ctx, id)
	if err != nil {
		return nil, ProblemError(err)
	}
	return questionOf(q), nil
}

// Answer answers a question; the gateway knows by whom.
func (g Gateway) Answer(ctx context.Context, id string, r approval.Reply) (*approval.Question, string, error) {
	done, err := g.Client.AnswerApproval(ctx, id, &api.ApprovalAnswer{Answer: string(r.Answer), Hash: r.Hash})
	if err != nil {
		return nil, "", ProblemError(err)
	}
	return questionOf(&done.Approval), done.Note, nil
}

func questionOf(a *api.Approval) *approval.Question {
	return &approval.Question{
		ID: a.ID, Kind: a.Kind, Subject: a.Subject, Owner: approval.Owner(a.Owner), Summary: a.Summary, Rule: a.Rule, Evidence: a.Evidence, Hash: a.Hash,
		Created: a.Created, Expires: a.Expires, Default: approval.Answer(a.Default), State: approval.State(a.State), Answer: approval.Answer(a.Answer), AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt,
	}
}

func (d local) Questions(ctx context.Context, f approval.Filter) ([]approval.Question, error) {
	list, err := d.app.Commits.Approvals().List(ctx, f)
	for i := range list {
		list[i].Evidence = "" // as a gateway's list
	}
	return list, err
}

func (d local) Question(ctx context.Context, id string) (*approval.Question, error) {
	return d.app.Commits.Approvals().Get(ctx, id)
}

func (d local) Answer(ctx context.Context, id string, r approval.Reply) (*approval.Question, string, error) {
	return d.app.Commits.AnswerApproval(ctx, id, r)
}
