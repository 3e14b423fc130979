package tool

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/policy"
)

// Tool is one thing that a model can ask for.
type Tool struct {
	Name        string
	Aliases     []string // older names; policy knows the tool by Name
	Description string   // one line, for a model
	// As names the tool whose permission is enough, where policy lists know that
	// one and not this: what may be read may also be searched.
	As string
	// Ours says that it works on what Atoll keeps, on no machine.
	Ours bool

	schema func() jsontext.Value
	check  func(args jsontext.Value) error
	run    func(ctx context.Context, c *call, args jsontext.Value) (*Result, error)
}

// Check refuses arguments that make no sense, with an *ArgumentsError. Call does
// so too: this is for those who want to know before a sandbox is made.
func (t Tool) Check(args jsontext.Value) error { return t.check(args) }

// Schema is the JSON Schema of the tool's arguments.
func (t Tool) Schema() jsontext.Value { return t.schema() }

// All returns every tool, in the order in which they are shown.
func All() []Tool { return slices.Clone(all()) }

// all makes the tools when they are first wanted, and their schemas with them: an
// agent is told them at every turn.
var all = sync.OnceValue(func() []Tool {
	return []Tool{
		execTool(), processTool(),
		readTool(), writeTool(), editTool(), patchTool(), lsTool(), grepTool(), imageTool(),
		fetchTool(), searchTool(), browserTool(),
		sessionsListTool(), sessionsHistoryTool(), memorySearchTool(), memoryGetTool(),
	}
})

// Find returns the tool of a name or alias.
func Find(name string) (Tool, bool) {
	name = policy.NormalizeTool(name)
	tools := all()
	at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name || slices.Contains(t.Aliases, name) })
	if at < 0 {
		return Tool{}, false
	}
	return tools[at], true
}

// define makes a tool of a function on checked arguments.
func define[A any](t Tool, run func(context.Context, *call, *A) (*Result, error)) Tool {
	t.schema = sync.OnceValue(schemaOf[A])
	read := func(raw jsontext.Value) (args A, err error) {
		if err := decode(raw, &args); err != nil {
			return args, &ArgumentsError{Tool: t.Name, Err: err}
		}
		return args, nil
	}
	t.check = func(raw jsontext.Value) error {
		_, err := read(raw)
		return err
	}
	t.run = func(ctx context.Context, c *call, raw jsontext.Value) (*Result, error) {
		args, err := read(raw)
		if err != nil {
			return nil, err
		}
		return run(ctx, c, &args)
	}
	return t
}
