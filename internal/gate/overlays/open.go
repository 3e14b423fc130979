package overlays

import (
	"context"
	"io/fs"
	"maps"
	"slices"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// opened is the open gate of one overlay.
type opened struct {
	*gate.Gate
	*subject
	tree *overlay.Tree
}

// open opens the gate of an overlay with the rules of the configuration. It refuses
// to open without the audit log. What is in the agent's commits, if they were looked
// at, is not collected as files.
func (s *subject) open(ctx context.Context, t *overlay.Tree, offer *take.Offer) (*opened, error) {
	relays, err := deliver.OpenRelays(s.Settings)
	if err != nil {
		return nil, err
	}
	log, err := s.models.AuditLog()
	if err != nil {
		return nil, err
	}
	var committed func(path string, mode fs.FileMode, blob string) bool
	if offer != nil {
		if committed, err = offer.Committed(ctx); err != nil {
			return nil, err
		}
	}
	rules := s.plan.Agent.Sandbox.Sync
	g, err := gate.Open(ctx, gate.Options{
		Dir: s.dir(t), Base: t.Base, Source: t, Ignore: rules.Ignore, Protected: protections(rules.Protect), Known: relays.Policy().Known, Committed: committed,
		Limits:  gate.Limits{Files: rules.Limits.Files, FileBytes: rules.Limits.FileBytes, TotalBytes: rules.Limits.TotalBytes},
		Subject: audit.Subject{Account: s.account, Agent: s.plan.Agent.ID, Session: s.plan.Session.Key},
		Record: func(e audit.Event) {
			if err := log.Append(e); err != nil {
				s.Logger.Error("audit of a decision about changes", "error", err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &opened{g, s, t}, nil
}

// protections are those of sandbox.sync.protect.
func protections(own map[string]string) (list []contentpolicy.Protection) {
	for _, pattern := range slices.Sorted(maps.Keys(own)) {
		list = append(list, contentpolicy.Protection{Pattern: pattern, Verdict: contentpolicy.Verdict(own[pattern]), Why: "the configuration protects it"})
	}
	return list
}
