package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/tool"
)

// NewToolCommand returns the command `atoll tool`.
func NewToolCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "tool", Short: "Show and call the tools that agents have", Example: `  atoll tool list
  atoll tool call exec --args '{"command": "ls -la"}'`}
	cmd.AddCommand(newToolListCommand(e), newToolCallCommand(e))
	return cmd
}

type toolListOptions struct {
	console.SubjectFlags
	asJSON bool
}

func newToolListCommand(e *env) *cobra.Command {
	var o toolListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the tools, and whether a session may use them",
		Example: `  atoll tool list
  atoll tool list --agent main --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runToolList(e, o)
		},
	}
	o.Add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// listedTool is one tool in a list.
type listedTool struct {
	Name        string         `json:"name"`
	Aliases     []string       `json:"aliases"`
	Description string         `json:"description"`
	Allowed     bool           `json:"allowed"`
	Reason      string         `json:"reason"`
	Half        policy.Half    `json:"half"`
	Schema      jsontext.Value `json:"schema"`
}

func runToolList(e *env, o toolListOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	p, err := settings.Plan(o.Who())
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	tools := listTools(p)
	if o.asJSON {
		return e.PrintJSON(map[string]any{"agentId": p.Agent.ID, "sessionKey": p.Session.Key, "sandboxed": p.Sandboxed, "tools": tools})
	}
	t := console.NewTable("NAME", "ALLOWED", "WORKS IN", "DESCRIPTION")
	for _, x := range tools {
		allowed := "yes"
		if !x.Allowed {
			allowed = "no: " + x.Reason
		}
		t.Add(x.Name, allowed, string(x.Half), x.Description)
	}
	t.Print(e.Out)
	return nil
}

func listTools(p *plan.Plan) (list []listedTool) {
	caller := host.Caller(p)
	for _, t := range tool.All() {
		d := host.Decide(t, p, caller)
		list = append(list, listedTool{
			Name: t.Name, Aliases: console.OrEmpty(t.Aliases), Description: t.Description, Schema: t.Schema(),
			Allowed: d.Allowed, Reason: d.Reason, Half: p.Router.Tool(t.Name).Half,
		})
	}
	return list
}

type toolCallOptions struct {
	console.SubjectFlags
	args      string
	hostTools bool
	asJSON    bool
}

func newToolCallCommand(e *env) *cobra.Command {
	var o toolCallOptions
	cmd := &cobra.Command{
		Use:   "call NAME [flags]",
		Short: "Call one tool, as an agent would",
		Long: `Call one tool, as an agent would: the policy decides whether the session may use
it, the sandbox of the session is made if needed, and the answer is what a model
would read.

Exit codes: 0 ok, 1 the call failed, 2 wrong arguments, 3 denied by policy,
4 no sandbox, 124 the command ran into its timeout, 137 it ran out of memory.`,
		Example: `  atoll tool call exec --args '{"command": "ls -la"}'
  atoll tool call read --args '{"path": "AGENTS.md", "limit": 20}' --json
  atoll tool call apply_patch --args @patch.json
  jq -n '{path: "a.txt", content: "hello"}' | atoll tool call write --args -`,
		Args: console.ExactlyOne("tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runToolCall(cmd.Context(), e, o, args[0])
		},
	}
	o.Add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.args, "args", "{}", "arguments as `JSON`, @FILE, or - for standard input")
	flags.BoolVar(&o.hostTools, "host-tools", false, "work on the host if the session is not sandboxed")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runToolCall(ctx context.Context, e *env, o toolCallOptions, name string) error {
	t, err := findTool(name)
	if err != nil {
		return err
	}
	args, err := readArguments(o.args, e.In)
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	if err := refuseCall(a, o.Who(), t, args); err != nil {
		return e.toolError(err, o.asJSON)
	}
	done := e.Progress("preparing the sandbox")
	box, err := a.Agents.Tools(ctx, o.Who(), o.hostTools)
	done()
	if errors.Is(err, sandbox.ErrDenied) {
		err = whereDenied(a, o.Who(), err)
	}
	if err != nil {
		return err
	}
	defer box.Release()
	e.SaySharing(ctx, a, o.Who())
	for _, n := range box.Notices {
		e.Notice(n)
	}
	result, err := box.Call(ctx, t.Name, args)
	if err != nil {
		return e.toolError(err, o.asJSON)
	}
	return e.printResult(result, o.asJSON)
}

// refuseCall refuses a call before a sandbox is made for it.
func refuseCall(a *app.App, who provide.Subject, t tool.Tool, args jsontext.Value) error {
	p, err := a.Plan(who)
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	if err := t.Authorize(host.Caller(p)); err != nil {
		return err
	}
	return t.Check(args)
}

// findTool refuses a name before anything is made for it.
func findTool(name string) (tool.Tool, error) {
	t, ok := tool.Find(name)
	if !ok {
		return t, console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("there is no tool %q", name), "`atoll tool list` shows all"))
	}
	return t, nil
}

// readArguments reads what --args means, up to the limit of a call.
func readArguments(text string, in io.Reader) (jsontext.Value, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
		defer file.Close()
		return readLimited(file)
	}
	if text == "-" {
		return readLimited(in)
	}
	return jsontext.Value(text), nil
}

func readLimited(r io.Reader) (jsontext.Value, error) {
	text, err := io.ReadAll(io.LimitReader(r, tool.MaxArguments+1))
	if err != nil {
		return nil, fmt.Errorf("--args: %w", err)
	}
	return text, nil
}

// toolError reports a call that was not made. Programs get it in the form of a
// result too: what it says is for the model.
func (e *env) toolError(err error, asJSON bool) error {
	if _, ok := errors.AsType[*tool.ArgumentsError](err); ok {
		err = console.WithCode(console.ExitUsage, err)
	}
	if _, denied := errors.AsType[*tool.DeniedError](err); asJSON && (denied || console.Code(err) == console.ExitUsage) {
		if err := e.PrintJSON(tool.ErrorResult(err)); err != nil {
			return err
		}
		return console.WithCode(console.Code(err), nil)
	}
	return err
}

// printResult shows a result and turns a failed one into an exit code.
func (e *env) printResult(r *tool.Result, asJSON bool) error {
	if asJSON {
		if err := e.PrintJSON(r); err != nil {
			return err
		}
	} else {
		e.printText(r.Text)
		for _, image := range r.Images {
			e.Notice(fmt.Sprintf("the model sees a picture of %d×%d; --json has its bytes", image.Width, image.Height))
		}
	}
	switch {
	case !r.IsError:
		return nil
	case r.TimedOut():
		return console.WithCode(console.ExitTimeout, nil)
	case r.OutOfMemory():
		return console.WithCode(console.ExitOutOfMemory, nil)
	}
	return console.WithCode(console.ExitFailure, nil)
}

// printText prints text of several lines that comes from inside.
func (e *env) printText(text string) {
	w := terminal.Harmless(e.Out)
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, strings.TrimSuffix(line, "\n"))
	}
}
