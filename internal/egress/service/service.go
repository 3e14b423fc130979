// Package service opens the egress of ready sandboxes: for the commands of one grant it
// serves the names that the rules allow, shows services of the host that were named,
// and has the files and variables that programs inside need for it.
package service

import (
	"context"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/preset/client"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Service opens egress for the sandboxes of an installation.
type Service struct {
	*provide.Installation
	models    *service.Service
	approvals *approval.Queue
	follower  follower
}

// New returns the egress of an installation. Its records go to the audit log of models,
// and its questions to the queue.
func New(models *service.Service, approvals *approval.Queue) *Service {
	return &Service{Installation: models.Installation, models: models, approvals: approvals}
}

// Compile returns the rules of an egress, with the hosts that the clients of this host
// name for its presets.
func Compile(ctx context.Context, e *config.Egress, projects ...string) (*rule.Policy, error) {
	return rule.Compile(e, client.Find(ctx, e.Presets(), projects...))
}
