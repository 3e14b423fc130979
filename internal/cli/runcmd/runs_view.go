package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/runview"
	"github.com/atoll-run/atoll/internal/config"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// runView shows a run under way: which it is, its steps and its events.
type runView struct {
	runview.View
	env      *env
	scripted func() string // returns the notice that the scripted model answers; nil through a gateway
	title    string        // which run it is; "" once it was said
	begun    bool
	quiet    bool
	done     func() // ends the progress line; nil if there is none
}

func (v *runView) event(e run.Event) {
	if !v.begun {
		v.begun = true
		if v.scripted != nil && v.scripted() != "" {
			v.env.Notice(v.scripted())
		}
	}
	if v.quiet {
		return
	}
	v.sayTitle()
	if e.Type != "step" {
		v.endProgress()
	}
	if e.Type == "step" {
		v.step(e.Step)
	}
	v.Event(&e)
}

// announce has the first event say which run it is, and says what an interruption
// does, until it is ended. A run that is refused has no event.
func (v *runView) announce(ctx context.Context, t *execute.Task) (end func()) {
	if v.quiet {
		return func() {}
	}
	v.title = "run " + t.ID + " · " + t.Variant
	text := "interrupted: the run is being ended"
	switch {
	case t.Branch != "":
		text += "; what it did on its branch is kept"
	case t.Directory != nil:
		text += "; what it changed is kept for review"
	}
	stop := context.AfterFunc(ctx, func() { v.env.Notice(text) })
	return func() { stop() }
}

// sayTitle prints which run it is, once.
func (v *runView) sayTitle() {
	if v.title != "" {
		v.Line(v.env.Style().Dim(v.title))
		v.title = ""
	}
}

func (v *runView) endProgress() {
	if v.done != nil {
		v.done()
		v.done = nil
	}
}

func (v *runView) step(s run.Step) {
	v.endProgress()
	switch s {
	case run.Executing:
		v.done = v.env.Progress("the agent works")
	case run.Preparing:
		v.done = v.env.Progress("preparing the sandbox")
	case run.Answered:
		v.done = v.env.Progress("reconciling the bill")
	}
}

// end prints how it ended.
func (v *runView) end(ctx context.Context, r *run.Receipt) error {
	v.endProgress()
	end := endOf(r)
	if ctx.Err() != nil && r.Error != nil && r.Error.Code == "cancelled" {
		end = context.Canceled
	}
	if v.quiet {
		return console.FirstOf(v.env.printRunEnvelope(r), end)
	}
	if !v.Spoken() && r.Text != "" {
		v.Text(strings.TrimRight(r.Text, "\n"))
	}
	for _, w := range r.Warnings {
		v.env.Notice(w)
	}
	if errors.Is(end, context.Canceled) {
		v.Line("the run was interrupted, and its sandbox is removed" + keptWords(r))
	}
	v.Line(v.env.Style().Dim(strings.Join(receiptWords(r), " · ")))
	runChanges(r).Say(v.env.Err, true)
	return end
}

// keptWords says where the work of a run is that was interrupted.
func keptWords(r *run.Receipt) string {
	if r.Delivery == nil {
		return "; `atoll runs events " + r.ID + "` shows what it did"
	}
	return "; " + r.Delivery.Branch + ": " + runview.Clip(r.Delivery.Note, 500)
}

// receiptWords is a receipt in a line.
func receiptWords(r *run.Receipt) []string {
	took := r.Ended.Sub(r.Created)
	if r.Ended.IsZero() {
		took = 0
	}
	words := []string{
		r.ID, r.Variant, cmp.Or(r.SelfReport.Model, r.Model), fmt.Sprintf("%d model calls", r.Bill.Calls), fmt.Sprintf("%d tokens", r.Bill.Input+r.Bill.Output),
		billText(&r.Bill), took.Round(time.Millisecond).String(),
	}
	for _, by := range slices.Sorted(maps.Keys(r.Notes)) {
		words = append(words, by+": "+runview.Clip(r.Notes[by], 500))
	}
	return words
}

// billText is a bill, and how far it can be believed.
func billText(b *run.Bill) string {
	text := money.Dollars(b.MicroUSD)
	if b.Unpriced > 0 {
		text += fmt.Sprintf(" and %d calls without a price", b.Unpriced)
	}
	switch {
	case b.Provisional:
		return text + " (provisional)"
	case b.Source == config.DefaultLLMProvider:
		return text + " (reconciled)"
	}
	return text
}

// undelivered is the error of work that did not reach its branch; nil if it did,
// or if there was none.
func undelivered(d *run.Delivery) error {
	switch {
	case d.Denied():
		return console.WithCode(console.ExitDenied, fmt.Errorf("nothing was delivered to %s: %s", d.Branch, d.Note))
	case d.Undelivered():
		return console.WithCode(console.ExitFailure, fmt.Errorf("nothing was delivered to %s: %s", d.Branch, d.Note))
	}
	return nil
}

// endOf is the exit code of a run.
func endOf(r *run.Receipt) error {
	if r.Error == nil {
		return undelivered(r.Delivery)
	}
	code := console.ExitFailure
	switch r.Error.Code {
	case "timeout":
		code = console.ExitTimeout
	case "oom_killed":
		code = console.ExitOutOfMemory
	case "sandbox_failed", "workspace_failed", "sandbox_lost", "interrupted":
		code = console.ExitNoSandbox
	}
	return console.WithCode(code, fmt.Errorf("%s: %s", r.Error.Code, r.Error.Message))
}

// runMeta is what we tell of a run beyond the common form.
type runMeta struct {
	Run      string            `json:"run"`
	Variant  string            `json:"variant"`
	Sandbox  string            `json:"sandbox,omitempty"`
	Image    string            `json:"image,omitempty"`
	Step     run.Step          `json:"step"`
	Bill     run.Bill          `json:"bill"`
	Warnings []string          `json:"warnings,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"`   // by finisher
	Relay    *relayMeta        `json:"relay,omitempty"`   // of runs on a branch
	Changes  *run.Changes      `json:"changes,omitempty"` // of runs on a checkout
}

func (e *env) printRunEnvelope(r *run.Receipt) error {
	extra, err := json.Marshal(&runMeta{r.ID, r.Variant, r.Sandbox, r.Image, r.Step, r.Bill, r.Warnings, r.Notes, relayMetaOf(r.Delivery), r.Changes})
	if err != nil {
		return err
	}
	result := envelope.Envelope{Payloads: []envelope.Payload{}, Meta: envelope.Meta{
		DurationMs: max(r.Ended.Sub(r.Created).Milliseconds(), 0),
		AgentMeta: envelope.AgentMeta{
			SessionID: cmp.Or(r.SelfReport.Session, r.ID), Provider: cmp.Or(r.SelfReport.Provider, "cogni"), Model: cmp.Or(r.SelfReport.Model, "cogni/"+r.Model), Usage: r.SelfReport.Usage,
		},
		Atoll: extra,
	}}
	if r.Text != "" {
		result.Payloads = append(result.Payloads, envelope.Payload{Text: r.Text})
	}
	if r.Error != nil {
		result.Meta.Error = &envelope.Error{Kind: r.Error.Code, Message: r.Error.Message}
	}
	return e.PrintJSON(&result)
}
