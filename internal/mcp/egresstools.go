package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/policy"
)

// addEgress adds the tools that say what the sandbox reaches.
func (s *Session) addEgress(server *sdk.Server) {
	add(s, server, &sdk.Tool{
		Name: "egress_explain", Description: "Say whether the sandbox reaches a name or an address of the web, and by which rule.", Annotations: looks(),
	}, s.egressExplain)
	if s.Propose == nil {
		return
	}
	add(s, server, &sdk.Tool{
		Name: "egress_propose", Description: "List rules for what was learned of commands' connections. Nothing is put in force: the person adopts rules.", Annotations: looks(),
	}, func(ctx context.Context, _ *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
		text, err := s.Propose(ctx)
		return s.said(text + "the person adopts rules: atoll egress adopt\n"), err
	})
}

type egressArgs struct {
	Address string `json:"address" jsonschema:"A URL, or NAME or NAME:PORT."`
	Method  string `json:"method,omitzero" jsonschema:"Method of the request; GET if none is given."`
}

func (s *Session) egressExplain(ctx context.Context, _ *sdk.CallToolRequest, in *egressArgs) (*sdk.CallToolResult, error) {
	c := service.ConfigOf(s.plan, policy.HalfNetworked)
	rules, err := service.Compile(ctx, &c, s.plan.Agent.Workspace)
	if err != nil {
		return nil, err
	}
	x, err := rules.Explain(in.Method, in.Address)
	if err != nil {
		return nil, err
	}
	return s.said(explained(&x)), nil
}

// explained is a decision in words.
func explained(x *rule.Explanation) string {
	verdict := "denied"
	switch {
	case x.Allow:
		verdict = "allowed"
	case x.Ask:
		verdict = "a person is asked"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s:%d\n", verdict, x.Name, x.Port)
	for _, row := range [][2]string{{"rule", x.Rule}, {"reason", x.Reason}, {"hint", x.Hint}} {
		if row[1] != "" {
			fmt.Fprintf(&b, "%-7s %s\n", row[0], row[1])
		}
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&b, "note    %s\n", note)
	}
	return b.String()
}
