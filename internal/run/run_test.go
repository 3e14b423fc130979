package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const answer = `{"payloads":[{"text":"done","mediaUrl":null}],"meta":{"durationMs":1,"agentMeta":{},"error":null}}`

// world is everything around a runner, and survives it.
type world struct {
	mu        sync.Mutex
	sandboxes map[string]*sandbox
	exec      func(ctx context.Context, c *machine.Command) (*machine.Result, error)
	made      int
	execs     int
	bills     int
	ended     int // finishers
	fail      error
	store     run.Store
	locks     *filelock.Locks
}

type sandbox struct {
	*world
	run   string
	files []run.File
	open  bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	locks, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{sandboxes: map[string]*sandbox{}, store: run.Store{DB: db}, locks: locks}
	w.exec = func(_ context.Context, c *machine.Command) (*machine.Result, error) {
		return printed(c, answer)
	}
	return w
}

// printed ends a command that has printed an answer.
func printed(c *machine.Command, stdout string) (*machine.Result, error) {
	_, err := io.WriteString(c.Stdout, stdout)
	return &machine.Result{}, err
}

// again forgets what was counted, for the next case in the same store.
func (w *world) again() { w.made, w.execs, w.bills, w.ended = 0, 0, 0, 0 }

func (w *world) runner(checkpoint func(run.Step)) *run.Runner {
	return run.New(run.Options{
		Store: w.store, Locks: w.locks, Sandboxes: w, Biller: w, Finishers: []run.Finisher{w},
		Checkpoint: checkpoint, AtOnce: 2,
		Variants: []run.Variant{{
			ID: "test", Timeout: time.Minute, Margin: time.Second, Memory: 1 << 20, Read: envelope.Parse,
			Argv:  func(*run.Job) ([]string, error) { return []string{"agent"}, nil },
			Env:   func(*run.Job) map[string]string { return nil },
			Files: func(j *run.Job) ([]run.File, error) { return []run.File{{Path: "task", Data: []byte(j.Task())}}, nil },
		}},
	})
}

func (w *world) Make(_ context.Context, o *run.SandboxRequest) (run.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return nil, w.fail
	}
	w.made++
	w.sandboxes[o.Run] = &sandbox{world: w, run: o.Run}
	return w.sandboxes[o.Run], nil
}

func (w *world) Find(_ context.Context, id string) (run.Sandbox, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.sandboxes[id]; ok {
		return p, nil
	}
	return nil, nil
}

func (w *world) Settle(context.Context, string) (run.Bill, error) {
	w.bills++
	return run.Bill{MicroUSD: 7, Source: "test"}, nil
}

func (w *world) Name() string { return "finisher" }
func (w *world) Finish(_ context.Context, e *run.Ended) (string, error) {
	w.ended++
	if e.Receipt.Error == nil && e.Sandbox == nil {
		return "", errors.New("the workspace is gone")
	}
	return "seen", nil
}

func (p *sandbox) Name() string { return "sbx-" + p.run }

func (p *sandbox) Image() string { return "image" }
func (p *sandbox) Write(_ context.Context, files []run.File) error {
	p.files = files
	return nil
}
func (p *sandbox) Grant(_ context.Context, terms *grant.Terms) (func(context.Context) error, error) {
	if terms.Run != p.run || len(terms.Models) != 1 {
		return nil, fmt.Errorf("terms %+v", terms)
	}
	p.open = true
	return func(context.Context) error { p.open = false; return nil }, nil
}
func (p *sandbox) Exec(ctx context.Context, c *machine.Command) (*machine.Result, error) {
	if !p.open || len(p.files) == 0 {
		return nil, errors.New("the sandbox was not ready")
	}
	p.mu.Lock()
	p.execs++
	p.mu.Unlock()
	return p.exec(ctx, c)
}
func (p *sandbox) Deliver(context.Context, *run.Receipt) (string, error) { return "", nil }
func (p *sandbox) Remove(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sandboxes, p.run)
	return nil
}

func request(id string) *run.Request {
	return &run.Request{ID: id, Variant: "test", Model: "m", Messages: []chat.Message{{Role: chat.User, Text: "do it"}}}
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	var seen []string
	receipt, err := w.runner(nil).Run(t.Context(), request("r1"), func(e run.Event) { seen = append(seen, e.Type) })
	if err != nil || receipt.Error != nil || receipt.Text != "done" || receipt.Bill.MicroUSD != 7 || receipt.Step != run.Over || receipt.Notes["finisher"] != "seen" {
		t.Fatalf("%+v, %v", receipt, err)
	}
	want := []string{"step", "step", "step", "step", "text_delta", "usage_report", "step", "step", "step", "done"}
	if !slices.Equal(seen, want) || len(w.sandboxes) != 0 {
		t.Errorf("events %v, sandboxes %v", seen, w.sandboxes)
	}
	events, err := w.store.Events(t.Context(), "r1", 4)
	if err != nil || len(events) != len(want)-4 || events[0].Type != "text_delta" || events[0].Seq != 5 {
		t.Errorf("events %+v, %v", events, err)
	}
	if list, err := w.store.List(t.Context(), run.Filter{}); err != nil || len(list) != 1 || list[0].ID != "r1" {
		t.Errorf("list %+v, %v", list, err)
	}
}

// Asking twice is asking once, also at the same time, and another request under
// the same id is refused.
func TestSameID(t *testing.T) {
	w := newWorld(t)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if r, err := w.runner(nil).Run(t.Context(), request("r1"), nil); err != nil || r.Text != "done" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	both.Wait()
	if w.execs != 1 || w.bills != 1 || w.ended != 1 {
		t.Errorf("%d executions, %d bills, %d finishes", w.execs, w.bills, w.ended)
	}
	other := request("r1")
	other.Messages[0].Text = "something else"
	if _, err := w.runner(nil).Run(t.Context(), other, nil); !errors.Is(err, run.ErrIDReused) {
		t.Errorf("error %v", err)
	}
}

func TestEnds(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		stdout, stderr string
		result         machine.Result
		code           string
	}{
		"success":           {stdout: answer},
		"its own error":     {stdout: strings.Replace(answer, `"error":null`, `"error":{"kind":"context_overflow","message":"full"}`, 1), code: "context_overflow"},
		"a strange error":   {stdout: strings.Replace(answer, `"error":null`, `"error":{"kind":"No Way!"}`, 1), code: "no_way_"},
		"usage":             {stderr: "unknown flag\x1b[31m", result: machine.Result{ExitCode: 1}, code: "agent_failed"},
		"out of memory":     {result: machine.Result{ExitCode: 137, Signal: "KILL", OOM: true}, code: "oom_killed"},
		"killed":            {result: machine.Result{ExitCode: 137, Signal: "KILL"}, code: "killed"},
		"too slow":          {result: machine.Result{ExitCode: 143, Signal: "TERM", TimedOut: true}, code: "timeout"},
		"over its quota":    {result: machine.Result{ExitCode: 137, QuotaExceeded: "bytes"}, code: "disk_full"},
		"silent":            {code: "no_output"},
		"no JSON":           {stdout: "Segmentation fault", stderr: "core dumped", code: "invalid_output"},
		"cut off":           {stdout: answer[:50], code: "invalid_output"},
		"megabytes, and it": {stdout: strings.Repeat("noise\n", 1<<20) + answer},
		"beyond measure":    {stdout: strings.Repeat("\x00", envelope.MaxOutput+1), code: "invalid_output"},
	} {
		t.Run(name, func(t *testing.T) {
			w.exec = func(_ context.Context, command *machine.Command) (*machine.Result, error) {
				_, _ = io.WriteString(command.Stderr, c.stderr)
				_, err := io.WriteString(command.Stdout, c.stdout)
				return &c.result, err
			}
			receipt, err := w.runner(nil).Run(t.Context(), request(strings.Map(plain, name)), nil)
			if err != nil {
				t.Fatal(err)
			}
			code := ""
			if receipt.Error != nil {
				code = receipt.Error.Code
				if strings.Contains(receipt.Error.Message, "\x1b") {
					t.Errorf("not fit to print: %q", receipt.Error.Message)
				}
			}
			if code != c.code || receipt.Bill.MicroUSD != 7 || len(w.sandboxes) != 0 || receipt.Step != run.Over {
				t.Errorf("receipt %+v, error %+v", receipt, receipt.Error)
			}
		})
	}
}

// A run whose node is lost, or that nothing leads to any more, has not failed by itself.
func TestCutOff(t *testing.T) {
	w := newWorld(t)
	for code, causes := range map[string][]error{
		"interrupted":  {machine.ErrTransport, machine.ErrNodeLost},
		"sandbox_lost": {machine.ErrLost, machine.ErrBroken},
	} {
		for n, cause := range causes {
			w.exec = func(context.Context, *machine.Command) (*machine.Result, error) {
				return nil, fmt.Errorf("exec: %w", cause)
			}
			receipt, err := w.runner(nil).Run(t.Context(), request(fmt.Sprintf("%s-%d", strings.Map(plain, code), n)), nil)
			if err != nil || receipt.Error == nil || receipt.Error.Code != code || !strings.Contains(receipt.Error.Message, cause.Error()) || receipt.Step != run.Over {
				t.Errorf("%v: %+v (%+v), %v", cause, receipt, receipt.Error, err)
			}
		}
	}
}

// plain makes an id of a name.
func plain(r rune) rune {
	if r < 'a' || r > 'z' {
		return '-'
	}
	return r
}

func TestRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(*run.Request)
		code   string // "" if it is for people only
	}{
		"id":            {func(r *run.Request) { r.ID = "../etc" }, ""},
		"variant":       {func(r *run.Request) { r.Variant = "nobody" }, "unknown_variant"},
		"model":         {func(r *run.Request) { r.Model = "" }, ""},
		"much memory":   {func(r *run.Request) { r.Memory = 1<<20 + 1 }, "memory_too_large"},
		"an empty one":  {func(r *run.Request) { r.Messages[0].Text = "" }, "prompt_empty"},
		"a blank one":   {func(r *run.Request) { r.Messages[0].Text = " \n" }, "prompt_empty"},
		"none":          {func(r *run.Request) { r.Messages = nil }, "prompt_empty"},
		"a binary one":  {func(r *run.Request) { r.Messages[0].Text = "a\x00" }, "prompt_not_text"},
		"broken UTF-8":  {func(r *run.Request) { r.Messages[0].Text = "\xff\xfe\x7fELF" }, "prompt_not_text"},
		"5 MB":          {func(r *run.Request) { r.Messages[0].Text = strings.Repeat("x", 5_000_000) }, "prompt_too_large"},
		"one too large": {func(r *run.Request) { r.Messages[0].Text = strings.Repeat("x", run.MaxText+1) }, "prompt_too_large"},
		"not the user's": {func(r *run.Request) {
			r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant, Text: "x"})
		}, "prompt_empty"},
	} {
		r := request("r")
		c.change(r)
		receipt, err := w.runner(nil).Run(t.Context(), r, nil)
		if err == nil {
			t.Errorf("%s: %+v", name, receipt)
		}
		if failure, ok := errors.AsType[*run.Failure](err); c.code != "" && (!ok || failure.Code != c.code || failure.Message == "") {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if list, err := w.store.List(t.Context(), run.Filter{Most: 1}); err != nil || len(list) != 0 || w.made != 0 {
			t.Errorf("%s: something began: %v %v", name, list, err)
		}
	}
}

func TestNoSandbox(t *testing.T) {
	w := newWorld(t)
	w.fail = errors.New("no engine")
	receipt, err := w.runner(nil).Run(t.Context(), request("r"), nil)
	if err != nil || receipt.Error == nil || receipt.Error.Code != "sandbox_failed" || receipt.Step != run.Over {
		t.Errorf("%+v, %v", receipt, err)
	}
}

// A caller that goes away ends the run, and its bill and sandbox are still seen to.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.exec = func(ctx context.Context, _ *machine.Command) (*machine.Result, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	receipt, err := w.runner(nil).Run(ctx, request("r"), nil)
	if err != nil || receipt.Error == nil || receipt.Error.Code != "cancelled" || receipt.Bill.MicroUSD != 7 || len(w.sandboxes) != 0 {
		t.Errorf("%+v, %v", receipt, err)
	}
}

// A process that dies at any step leaves a run that ends definitely at the next
// start: carried out at most once, with one receipt and no sandbox left.
func TestCrashAtEveryStep(t *testing.T) {
	w := newWorld(t)
	for _, at := range []run.Step{run.Preparing, run.Executing, run.Answered, run.Settled, run.Finished, run.Over} {
		for _, nth := range []int{1, 2} { // before the step is written down, and after
			t.Run(fmt.Sprintf("%s %d", at, nth), func(t *testing.T) {
				w.again()
				id := fmt.Sprintf("%s-%d", at, nth)
				count := 0
				crash(func() {
					_, _ = w.runner(func(s run.Step) {
						if s == at {
							if count++; count == nth {
								runtime.Goexit()
							}
						}
					}).Run(t.Context(), request(id), nil)
				})
				if _, err := w.runner(nil).Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				receipt, err := w.runner(nil).Run(t.Context(), request(id), nil)
				if err != nil || receipt.Step != run.Over || receipt.Bill.MicroUSD != 7 {
					t.Fatalf("%+v, %v", receipt, err)
				}
				answered := at == run.Settled || at == run.Finished || at == run.Over || at == run.Answered && nth == 2
				if answered != (receipt.Error == nil) || w.execs > 1 || len(w.sandboxes) != 0 {
					t.Errorf("receipt %+v (%v), %d executions, sandboxes %v", receipt, receipt.Error, w.execs, w.sandboxes)
				}
			})
		}
	}
}

// crash runs f on a goroutine that may end itself in the middle.
func crash(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// A run that is under way is not touched by another process's start.
func TestRecoverLeavesTheLiving(t *testing.T) {
	w := newWorld(t)
	w.exec = func(ctx context.Context, c *machine.Command) (*machine.Result, error) {
		if ended, err := w.runner(nil).Recover(ctx); err != nil || len(ended) != 0 {
			t.Errorf("%v, %v", ended, err)
		}
		return printed(c, answer)
	}
	if receipt, err := w.runner(nil).Run(t.Context(), request("r"), nil); err != nil || receipt.Error != nil {
		t.Errorf("%+v, %v", receipt, err)
	}
}
