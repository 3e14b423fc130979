package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/tool"
	"github.com/atoll-run/atoll/internal/version"
)

const (
	// prefix is before the names of the tools of package tool.
	prefix      = "sandbox_"
	toolExec    = "exec"
	toolProcess = "process"
)

// shared are the tools of package tool that clients get.
func shared() []string {
	return []string{toolExec, toolProcess, "read", "write", "edit", "apply_patch", "ls", "grep", "view_image", "browser"}
}

// readOnly are those of them that change nothing.
func readOnly() []string { return []string{"read", "ls", "grep", "view_image"} }

// newServer returns a server with the tools of a session.
func newServer(s *Session, sessionID func() string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "atoll", Title: "Atoll sandbox", Version: version.Current().Version}, &sdk.ServerOptions{
		Instructions: s.instructions(), Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}, Logger: s.Agents.Logger, GetSessionID: sessionID,
	})
	for _, name := range shared() {
		if t, ok := tool.Find(name); ok && host.Decide(t, s.plan, s.caller()).Allowed {
			s.addShared(server, &t)
		}
	}
	s.addSandboxTools(server)
	s.addLooks(server)
	s.addSync(server)
	s.addEgress(server)
	return server
}

// caller is on whose behalf tools are called.
func (s *Session) caller() tool.Caller { return host.Caller(s.plan) }

// instructions tell a model what the tools work on.
func (s *Session) instructions() string {
	return fmt.Sprintf(`These tools work in a sandbox: commands and files are inside it, not on this machine. The workspace is %s; `+
		`it has no network but what sandbox egress allows. What is changed inside an overlay reaches the person's directory only when the person approves it `+
		`(atoll sync review); no tool here does that.`, s.plan.Spec.Workdir)
}

// addShared adds a tool of package tool, with its own schema.
func (s *Session) addShared(server *sdk.Server, t *tool.Tool) {
	open := t.Name == "browser"
	server.AddTool(&sdk.Tool{
		Name: prefix + t.Name, Description: t.Description, InputSchema: json.RawMessage(t.Schema()),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: slices.Contains(readOnly(), t.Name), OpenWorldHint: &open},
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return s.during(ctx, req, func(ctx context.Context) (*sdk.CallToolResult, error) {
			return s.callShared(ctx, t, jsontext.Value(req.Params.Arguments))
		})
	})
}

// callShared calls a tool of package tool; commands may outlive the call.
func (s *Session) callShared(ctx context.Context, t *tool.Tool, args jsontext.Value) (*sdk.CallToolResult, error) {
	call := s.call
	switch t.Name {
	case toolExec:
		call = s.exec
	case toolProcess:
		call = s.process
	}
	result, err := call(ctx, t, args)
	if err != nil {
		return nil, err
	}
	return resultOf(result), nil
}

// add adds a tool of this package.
func add[In any](s *Session, server *sdk.Server, t *sdk.Tool, do func(ctx context.Context, req *sdk.CallToolRequest, in *In) (*sdk.CallToolResult, error)) {
	sdk.AddTool(server, t, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		result, err := s.during(ctx, req, func(ctx context.Context) (*sdk.CallToolResult, error) { return do(ctx, req, &in) })
		return result, nil, err
	})
}

// looks annotates a tool that changes nothing.
func looks() *sdk.ToolAnnotations {
	open := false
	return &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &open}
}
