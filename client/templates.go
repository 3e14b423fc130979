package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// ForkSandbox makes a sandbox with the files of another, which runs on.
func (c *Client) ForkSandbox(ctx context.Context, id string, q *api.ForkSandbox) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/fork"), q)
}

// CreateSnapshot keeps the files of a sandbox as a template.
func (c *Client) CreateSnapshot(ctx context.Context, id, name string) (*api.Template, error) {
	return do[api.Template](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/snapshots"), &api.CreateSnapshot{Name: name})
}

// Templates lists the templates that sandboxes can begin with.
func (c *Client) Templates(ctx context.Context, q api.TemplateQuery) (*api.Templates, error) {
	return get[api.Templates](ctx, c, "/api/v1/templates", q)
}

// RemoveTemplate removes a template.
func (c *Client) RemoveTemplate(ctx context.Context, name string, q api.TemplateQuery) (*api.Template, error) {
	return ask[api.Template](ctx, c, &request{method: http.MethodDelete, path: pathWith("/api/v1/templates/", name, ""), query: q})
}
