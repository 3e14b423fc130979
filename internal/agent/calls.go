package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// carryOut has the calls of one answer done: neighbours that may run beside
// each other do, everything else in the model's order. Each call gets exactly
// one result in the transcript, in the model's order.
func (r *run) carryOut(ctx context.Context, calls []chat.Call) error {
	for len(calls) > 0 {
		n := r.parallelPrefix(calls)
		if err := r.callParallel(ctx, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// parallelPrefix returns how many calls from the first on may run at the same time.
func (r *run) parallelPrefix(calls []chat.Call) int {
	n := 0
	for n < len(calls) && n < r.limits.Parallel && r.Tools.Parallel(calls[n].Name) {
		n++
	}
	return max(n, 1)
}

func (r *run) callParallel(ctx context.Context, calls []chat.Call) error {
	results, failures := make([]Result, len(calls)), make([]error, len(calls))
	var under sync.WaitGroup
	for i := range calls {
		if err := r.Transcript.begin(&calls[i]); err != nil {
			under.Wait()
			return err
		}
		r.Calls++
		r.emit(Event{Type: ToolCall, Call: &calls[i]})
		under.Go(func() { results[i], failures[i] = r.callOne(ctx, &calls[i]) })
	}
	under.Wait()
	for i := range calls {
		if failures[i] != nil {
			return failures[i] // the calls of this group without a result count as interrupted
		}
		if err := r.Transcript.Add(results[i].message(calls[i].ID)); err != nil {
			return err
		}
	}
	return nil
}

// message returns the result as a step of the conversation.
func (r *Result) message(call string) chat.Message {
	return chat.Message{Role: chat.Tool, CallID: call, Text: r.Text, IsError: r.IsError, Images: r.Images}
}

func (r *run) callOne(ctx context.Context, call *chat.Call) (Result, error) {
	start := time.Now()
	result, err := r.Tools.Call(ctx, call.Name, call.Args)
	if err != nil {
		return Result{}, &Error{Code: CodeTool, Text: fmt.Sprintf("%s: %v", call.Name, err), Err: err}
	}
	r.emit(Event{Type: ToolResult, Call: call, Text: result.Text, IsError: result.IsError, TookMs: milliseconds(time.Since(start))})
	return result, nil
}
