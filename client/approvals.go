package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const approvals = "/api/v1/approvals"

// Approvals lists questions that wait for a person, without their evidence.
func (c *Client) Approvals(ctx context.Context, q api.ApprovalQuery) (*api.Approvals, error) {
	return get[api.Approvals](ctx, c, approvals, q)
}

// Approval returns a question with its evidence.
func (c *Client) Approval(ctx context.Context, id string) (*api.Approval, error) {
	return get[api.Approval](ctx, c, pathWith(approvals+"/", id, ""), nil)
}

// AnswerApproval answers a question.
func (c *Client) AnswerApproval(ctx context.Context, id string, a *api.ApprovalAnswer) (*api.AnsweredApproval, error) {
	return do[api.AnsweredApproval](ctx, c, http.MethodPost, pathWith(approvals+"/", id, ""), a)
}
