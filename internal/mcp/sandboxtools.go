package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/version"
)

// none are the arguments of a tool that takes none.
type none struct{}

// addSandboxTools adds the tools that begin and end the sandbox.
func (s *Session) addSandboxTools(server *sdk.Server) {
	no, yes := false, true
	add(s, server, &sdk.Tool{
		Name: "sandbox_up", Description: "Make the sandbox ready, if it is not. The other tools do so too.",
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, s.up)
	add(s, server, &sdk.Tool{
		Name: "sandbox_down", Description: "Stop the sandbox and every command in it. Its files stay.",
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
	}, s.down)
	add(s, server, &sdk.Tool{Name: "sandbox_status", Description: "Say which sandbox this is, whether it runs, and what it may reach.", Annotations: looks()}, s.status)
	add(s, server, &sdk.Tool{
		Name: "sandbox_destroy", Description: "Remove the sandbox; the person is asked. What was changed in the workspace stays.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	}, s.destroy)
}

func (s *Session) up(ctx context.Context, req *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	box, err := s.tools(ctx)
	if err != nil {
		return nil, err
	}
	text, err := s.statusText(ctx)
	for _, notice := range box.Notices {
		text += "\n" + notice
	}
	return s.said(text), err
}

func (s *Session) down(ctx context.Context, _ *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	s.drop()
	err := s.stop(ctx)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return s.said("there is no sandbox"), nil
	case errors.Is(err, sandbox.ErrBusy):
		return nil, errhint.With(err, "somebody else works in it: it was left running")
	case err != nil:
		return nil, err
	}
	return s.said("stopped: " + s.plan.Spec.Name), nil
}

func (s *Session) status(ctx context.Context, _ *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	text, err := s.statusText(ctx)
	return s.said(text), err
}

// statusText describes the sandbox, a line each.
func (s *Session) statusText(ctx context.Context) (string, error) {
	p := s.plan
	var b strings.Builder
	state, backend := "not made yet", ""
	found, err := s.Agents.Status(ctx, p.Spec.Name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
	case err != nil:
		return "", err
	default:
		state, backend = string(found.State), found.Backend
	}
	fmt.Fprintf(&b, "sandbox    %s, %s", p.Spec.Name, state)
	if backend != "" {
		fmt.Fprintf(&b, ", %s", backend)
	}
	fmt.Fprintf(&b, "\nimage      %s\nworkspace  %s (access %s)\n", p.Spec.Image, p.Spec.Workdir, p.Agent.Sandbox.WorkspaceAccess)
	e := service.ConfigOf(p, policy.HalfNetworked)
	fmt.Fprintf(&b, "egress     %s, %d rules\nprogram    %s", e.Mode, len(e.Allow), "atoll "+version.Current().Version)
	return b.String(), nil
}

// confirmation is the id of the question that sandbox_destroy asks.
const confirmation = "destroy"

func (s *Session) destroy(ctx context.Context, req *sdk.CallToolRequest, _ *none) (*sdk.CallToolResult, error) {
	entry, err := s.Agents.Registry.Get(ctx, s.plan.Spec.Name)
	if err != nil {
		return nil, err
	}
	if question, err := s.confirm(req); question != nil || err != nil {
		return question, err
	}
	s.drop()
	kept, err := s.Agents.RemoveSandbox(ctx, entry, false, false)
	if err != nil {
		return nil, err
	}
	text := "removed: " + entry.ContainerName
	if kept != "" {
		text += "; its private copy of the workspace stays"
	}
	return s.said(text), nil
}

// confirm asks the person whether the sandbox may be removed: it returns the question if
// it was not asked, and an error if the answer is no or nobody can be asked.
func (s *Session) confirm(req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if s.AllowDestroy {
		return nil, nil
	}
	if answer, ok := req.Params.InputResponses[confirmation].(*sdk.ElicitResult); ok {
		if yes, _ := answer.Content[confirmation].(bool); answer.Action == "accept" && yes {
			return nil, nil
		}
		return nil, errors.New("the person did not agree: the sandbox stays")
	}
	init := req.Session.InitializeParams()
	if init == nil || init.Capabilities == nil || init.Capabilities.Elicitation == nil {
		return nil, errhint.With(errors.New("this client cannot ask the person, so the sandbox stays"), "the person can run `atoll rm "+s.plan.Spec.Name+"`, or set mcp.allowDestroy")
	}
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{confirmation: &sdk.ElicitParams{
		Mode: "form", Message: "Remove the sandbox " + s.plan.Spec.Name + "? Commands in it end; what was changed in the workspace stays.",
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{confirmation},
			"properties": map[string]any{confirmation: map[string]any{"type": "boolean", "description": "Remove it"}},
		},
	}}}, nil
}
