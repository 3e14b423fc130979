package nonlinux

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm"
)

// machineToolList returns the tools that there are without a gateway.
func machineToolList() (list []map[string]any) {
	for _, t := range []struct{ name, about string }{
		{"sandbox_up", "Start the virtual machine, and make the sandbox in it ready."},
		{"sandbox_down", "Stop the sandbox, and the virtual machine if nothing else runs in it. Files stay."},
		{"sandbox_status", "Say how the virtual machine and the sandbox in it are."},
	} {
		list = append(list, map[string]any{"name": t.name, "description": t.about, "inputSchema": map[string]any{"type": "object", "properties": map[string]any{}}})
	}
	return list
}

// said answers a call of a tool with a text, or with why it failed and what helps.
func (b *bridge) said(in *incoming, text string, err error) error {
	if err != nil {
		text = err.Error()
		if hint := hintOf(err); hint != "" {
			text += "\nhint: " + hint
		}
	}
	return b.result(in, map[string]any{"content": []any{textOf(text)}, "isError": err != nil})
}

func textOf(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// bringUp brings the virtual machine up if it does not run. What takes long goes on: the
// next call waits for it.
func (t *machineTools) bringUp(ctx context.Context) error {
	t.mutex.Lock()
	if t.coming == nil {
		if t.Runs(ctx) {
			t.mutex.Unlock()
			return nil
		}
		t.coming = make(chan struct{})
		go t.up(context.WithoutCancel(ctx), t.coming)
	}
	coming := t.coming
	t.mutex.Unlock()
	select {
	case <-coming:
		t.mutex.Lock()
		defer t.mutex.Unlock()
		return t.failed
	case <-time.After(answerWithin):
		return errComing
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errComing is returned while the virtual machine comes up.
var errComing = errors.New("the virtual machine is being set up, which takes minutes the first time: call sandbox_up again to wait for it")

// up brings the virtual machine up, and closes a channel when that is over.
func (t *machineTools) up(ctx context.Context, over chan struct{}) {
	err := t.Up(ctx, "")
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.failed, t.coming = err, nil
	close(over)
}

// machineUp brings the virtual machine up, then the sandbox.
func (b *bridge) machineUp(ctx context.Context, in *incoming, message []byte) error {
	switch err := b.vm.bringUp(ctx); {
	case errors.Is(err, errComing):
		return b.said(in, err.Error(), nil)
	case err != nil:
		return b.said(in, "", err)
	}
	if err := b.connectSoon(ctx); err != nil {
		return b.said(in, "", errhint.With(fmt.Errorf("the gateway in the virtual machine: %w", err), "the person can look at `atoll vm logs`"))
	}
	return b.sendWith(ctx, in, message, "machine    "+b.vm.InstanceName()+", running")
}

// connectSoon is connect for a gateway that may just have been started.
func (b *bridge) connectSoon(ctx context.Context) error {
	for began := time.Now(); ; {
		err := b.connect(ctx)
		if err == nil || errors.Is(err, errNoMachine) || time.Since(began) > answerWithin {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// machineDown stops the sandbox of this client, then the virtual machine if no other
// sandbox runs in it.
func (b *bridge) machineDown(ctx context.Context, in *incoming, message []byte) error {
	if b.connect(ctx) == nil { // else nothing runs in it that could be asked
		if failed, err := b.ask(ctx, in, message); failed || err != nil {
			return err
		}
		others, err := b.running(ctx)
		if err != nil {
			return b.said(in, "", err)
		}
		if others > 0 {
			return b.said(in, fmt.Sprintf("stopped: the sandbox; %s goes on: %d others run in it", b.vm.InstanceName(), others), nil)
		}
	}
	err := b.vm.Down(ctx, false)
	b.setSession("")
	if errors.Is(err, vm.ErrNone) {
		return b.said(in, "there is no virtual machine", nil)
	}
	return b.said(in, "stopped: "+b.vm.InstanceName(), err)
}

// running returns how many sandboxes run at the gateway.
func (b *bridge) running(ctx context.Context) (n int, err error) {
	b.mutex.Lock()
	to := b.to
	b.mutex.Unlock()
	c, err := client.New(client.Options{URL: to.URL, Token: to.Token})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	list, err := c.Sandboxes(ctx, api.SandboxQuery{State: "running"})
	if err != nil {
		return 0, err
	}
	return len(list.Sandboxes), nil
}

// machineStatus says how the virtual machine is, then the sandbox.
func (b *bridge) machineStatus(ctx context.Context, in *incoming, message []byte) error {
	s, err := b.vm.Status(ctx)
	if err != nil {
		return b.said(in, "", err)
	}
	lines := []string{"machine    " + s.Name + ", " + s.State}
	if s.Mounts != "" {
		lines = append(lines, "mounts     "+s.Mounts, "gateway    "+s.Gateway)
	}
	for _, d := range s.Drift {
		lines = append(lines, "differs    "+d.What+": the person can run "+d.Remedy)
	}
	text := strings.Join(lines, "\n")
	if b.connect(ctx) != nil {
		return b.said(in, text+"\nsandbox_up starts it", nil)
	}
	return b.sendWith(ctx, in, message, text)
}

// sendWith passes a call on, and adds a text to what the gateway answers.
func (b *bridge) sendWith(ctx context.Context, in *incoming, message []byte, text string) error {
	return b.send(ctx, message, func(answer []byte) error {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Result map[string]any  `json:"result"`
		}
		content, ok := []any(nil), false
		if json.Unmarshal(answer, &m) == nil && bytes.Equal(m.ID, in.ID) {
			content, ok = m.Result["content"].([]any)
		}
		if !ok {
			return b.write(answer)
		}
		m.Result["content"] = append([]any{textOf(text)}, content...)
		return b.result(in, m.Result)
	})
}

// ask passes a call on, and reports whether it failed: only then the answer is written.
func (b *bridge) ask(ctx context.Context, in *incoming, message []byte) (failed bool, err error) {
	err = b.send(ctx, message, func(answer []byte) error {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Error  any             `json:"error"`
			Result struct {
				IsError bool `json:"isError"`
			} `json:"result"`
		}
		if json.Unmarshal(answer, &m) == nil && bytes.Equal(m.ID, in.ID) && m.Error == nil && !m.Result.IsError {
			return nil
		}
		failed = failed || bytes.Equal(m.ID, in.ID)
		return b.write(answer)
	})
	return failed, err
}
