package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/sandbox/verify"
	"github.com/atoll-run/atoll/internal/tool"
)

// addLooks adds the tools that look at the policy and at what holds of it.
func (s *Session) addLooks(server *sdk.Server) {
	add(s, server, &sdk.Tool{
		Name: "sandbox_explain", Description: "Say what applies to the sandbox, and why a tool or a path is refused.", Annotations: looks(),
	}, s.explain)
	add(s, server, &sdk.Tool{
		Name: "sandbox_verify", Description: "Try the walls of the sandbox from inside, and compare with what the policy promises.", Annotations: looks(),
	}, s.verify)
}

type explainArgs struct {
	Tool string `json:"tool,omitzero" jsonschema:"Name of a tool, with or without the prefix sandbox_."`
	Path string `json:"path,omitzero" jsonschema:"A path inside the sandbox, or relative to the workspace."`
}

func (s *Session) explain(_ context.Context, _ *sdk.CallToolRequest, in *explainArgs) (*sdk.CallToolResult, error) {
	p := s.plan
	var b strings.Builder
	fmt.Fprintf(&b, "agent      %s, session %s\nsandboxed  %s\nsandbox    %s, scope %s\nnetwork    %s\nworkspace  %s (access %s)\ntools      %s\n",
		p.Agent.ID, p.Session.Key, p.Why, p.Spec.Name, p.Agent.Sandbox.Scope, p.Spec.Network, p.Spec.Workdir, p.Agent.Sandbox.WorkspaceAccess, strings.Join(tool.Allowed(p.Tools), ", "))
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "refused    %s: %s\n", f.Field, f.Message)
	}
	if in.Tool != "" {
		d := tool.Decide(p.Tools, strings.TrimPrefix(in.Tool, prefix))
		fmt.Fprintf(&b, "tool       %q: allowed %t, %s\n", in.Tool, d.Allowed, d.Reason)
		for _, fix := range d.Fix {
			fmt.Fprintf(&b, "           the person can change it: %s\n", fix)
		}
	}
	if in.Path != "" {
		if at, err := p.Path(in.Path); err != nil {
			fmt.Fprintf(&b, "path       %q is not in the sandbox\n", in.Path)
		} else {
			fmt.Fprintf(&b, "path       %s, writable %t\n", at.Container, at.Writable)
		}
	}
	return s.said(b.String()), nil
}

func (s *Session) verify(ctx context.Context, _ *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	if _, err := s.tools(ctx); err != nil {
		return nil, err
	}
	found, err := s.Agents.Verify(ctx, s.Subject)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, v := range found {
		gaps := 0
		for _, c := range v.Checks {
			if c.Status == verify.Gap {
				gaps++
				fmt.Fprintf(&b, "GAP  %s: promised %s, found %s\n", c.Name, c.Promised, c.Found)
			}
		}
		fmt.Fprintf(&b, "%d of %d promises hold in %s (%s)\n", len(v.Checks)-gaps, len(v.Checks), v.Sandbox, v.Backend)
	}
	return s.said(b.String()), nil
}
