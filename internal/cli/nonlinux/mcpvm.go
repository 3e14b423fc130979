package nonlinux

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/cli/vmcmd"
	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/version"
	"github.com/atoll-run/atoll/internal/vm"
)

// answerWithin is how long a client waits for a virtual machine that comes up; then it is
// told to ask again.
const answerWithin = 20 * time.Second

// machineTools are the tools of the Model Context Protocol that work on a virtual machine.
type machineTools struct {
	*vm.Manager
	state string // directory with the contexts

	mutex  sync.Mutex    // of what follows
	coming chan struct{} // closed when the start of the virtual machine has ended; nil if none is under way
	failed error         // why it is not
	first  []byte        // the client's initialize
	told   bool          // the client was answered without a gateway
}

// machineTools returns the tools of the virtual machine of the configuration, if its
// gateway is the one that is meant: no other is named, and the current context is none
// or its own.
func (e *env) machineTools() (*machineTools, error) {
	if e.gateway != "" || e.Getenv(contexts.URLVariable) != "" {
		return nil, nil
	}
	m, err := vmcmd.Open(e.vmHost())
	if err != nil || m == nil {
		return nil, err
	}
	state, err := e.stateDir()
	if err != nil {
		return nil, err
	}
	all, err := contexts.Load(state)
	if err != nil || all.Current != "" && all.Current != m.InstanceName() {
		return nil, err
	}
	return &machineTools{Manager: m, state: state}, nil
}

// greeted reports whether the client's first message was answered here.
func (t *machineTools) greeted() bool {
	if t == nil {
		return false
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.told
}

// errNotOurs is returned for a message that is the gateway's to answer.
var errNotOurs = errors.New("the message is for the gateway")

// incoming is what is read of a client's message.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"params"`
}

// answerHere answers what is about the virtual machine, and everything while it does not
// run.
func (b *bridge) answerHere(ctx context.Context, message []byte) error {
	var in incoming
	if err := json.Unmarshal(message, &in); err != nil {
		return err
	}
	if in.Method == "initialize" {
		return b.hello(ctx, &in, message)
	}
	if in.Method == "tools/call" {
		switch in.Params.Name {
		case "sandbox_up":
			return b.machineUp(ctx, &in, message)
		case "sandbox_down":
			return b.machineDown(ctx, &in, message)
		case "sandbox_status":
			return b.machineStatus(ctx, &in, message)
		}
	}
	if b.begun() || in.ID != nil && in.Method != "ping" && b.connect(ctx) == nil {
		return errNotOurs
	}
	return b.answerWithout(&in)
}

// hello answers the first message: the gateway does, if the virtual machine runs.
func (b *bridge) hello(ctx context.Context, in *incoming, message []byte) error {
	found := b.findGateway(ctx)
	b.vm.mutex.Lock()
	b.vm.first, b.vm.told = message, !found
	b.vm.mutex.Unlock()
	if found {
		return errNotOurs
	}
	return b.result(in, map[string]any{
		"protocolVersion": in.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{"listChanged": true}},
		"serverInfo":   map[string]any{"name": "atoll", "title": "Atoll sandbox", "version": version.Current().Version},
		"instructions": "The sandbox is in a virtual machine that does not run: sandbox_up starts it, and has the other tools.",
	})
}

// findGateway reports whether the virtual machine runs, and notes its gateway.
func (b *bridge) findGateway(ctx context.Context) bool {
	all, err := contexts.Load(b.vm.state)
	if err != nil || !b.vm.Runs(ctx) {
		return false
	}
	to, ok := all.Contexts[b.vm.InstanceName()]
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.to = to
	return ok
}

var errNoMachine = errors.New("the virtual machine does not run: the tool sandbox_up starts it")

// answerWithout answers without a gateway.
func (b *bridge) answerWithout(in *incoming) error {
	switch {
	case in.ID == nil:
		return nil // a notification: it has no answer, and the gateway gets its own at connect
	case in.Method == "ping":
		return b.result(in, map[string]any{})
	case in.Method == "tools/list":
		return b.result(in, map[string]any{"tools": machineToolList()})
	case in.Method == "tools/call":
		return b.said(in, "", errNoMachine)
	}
	return errNoMachine
}

// connect sends the client's initialize to the gateway, and notifies the client that the
// list of tools has changed.
func (b *bridge) connect(ctx context.Context) error {
	if !b.findGateway(ctx) {
		return errNoMachine
	}
	b.vm.mutex.Lock()
	defer b.vm.mutex.Unlock()
	if b.begun() {
		return nil
	}
	nothing := func([]byte) error { return nil }
	if err := b.send(ctx, b.vm.first, nothing); err != nil {
		return err
	}
	if err := b.send(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nothing); err != nil || !b.vm.told {
		return err
	}
	b.vm.told = false
	return b.write([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
}

// result answers a request.
func (b *bridge) result(in *incoming, result any) error {
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": in.ID, "result": result})
	if err != nil {
		return err
	}
	return b.write(answer)
}
