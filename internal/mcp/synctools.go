package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gate/overlays"
)

// maxChanges bounds the changes in one answer.
const maxChanges = 200

// addSync adds the tools that show what waits for the person's decision.
func (s *Session) addSync(server *sdk.Server) {
	add(s, server, &sdk.Tool{
		Name: "sync_status", Description: "List what was changed in the sandbox and waits for the person's approval.", Annotations: looks(),
	}, s.syncStatus)
	add(s, server, &sdk.Tool{
		Name: "sync_diff", Description: "Show what was changed in one file that waits for the person's approval.", Annotations: looks(),
	}, s.syncDiff)
}

func (s *Session) syncStatus(ctx context.Context, _ *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	all, err := s.Sync.Trees(ctx, &s.Changes)
	if errors.Is(err, overlays.ErrNone) {
		return s.said("nothing waits: the sandbox has no overlay yet"), nil
	}
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := range all.Trees {
		s.writeTree(&b, &all.Trees[i])
	}
	b.WriteString("the person decides: atoll sync review\n")
	return s.said(b.String()), nil
}

func (s *Session) writeTree(b *strings.Builder, t *api.SyncTree) {
	fmt.Fprintf(b, "%s: %d pass, %d need approval, %d blocked, %d in conflict, %d withheld\n",
		t.Target, t.Counts.Pass, t.Counts.Approval, t.Counts.Blocked, t.Counts.Conflict, t.Counts.Withheld)
	for i := range t.Entries[:min(len(t.Entries), maxChanges)] {
		e := &t.Entries[i]
		fmt.Fprintf(b, "  %-9s %-9s %q", e.Verdict, e.Kind, e.Path)
		for _, r := range e.Reasons {
			fmt.Fprintf(b, " (%s)", r.Rule)
		}
		b.WriteByte('\n')
	}
	if more := len(t.Entries) - maxChanges; more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
	if t.Commits != nil && len(t.Commits.Commits) > 0 {
		fmt.Fprintf(b, "  %d commits on %q\n", len(t.Commits.Commits), t.Commits.Branch)
	}
}

type diffArgs struct {
	Path string `json:"path" jsonschema:"Path of a changed file, relative to the workspace, as sync_status shows it."`
}

func (s *Session) syncDiff(ctx context.Context, _ *sdk.CallToolRequest, in *diffArgs) (*sdk.CallToolResult, error) {
	if _, err := s.Sync.Trees(ctx, &s.Changes); err != nil { // a difference is one of what was collected
		return nil, err
	}
	diff, err := s.Sync.Diff(ctx, &s.Changes, in.Path)
	if err != nil {
		return nil, err
	}
	return fromInside(diff.Diff), nil
}

// fromInside is a result of words from inside the sandbox.
func fromInside(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: bounded(text)}}}
}
