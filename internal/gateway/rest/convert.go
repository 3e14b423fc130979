package rest

import (
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/run"
)

// runOf converts a receipt. Struct types are converted whole where possible, so
// that a field that only one side has does not compile.
func runOf(r *run.Receipt) api.Run {
	pull := ""
	if r.Delivery != nil {
		pull = r.Delivery.Pull
	}
	return api.Run{
		Agent: r.Agent, Session: r.Session, Task: r.Task, Branch: r.Branch, Pull: pull, Trace: r.Trace, WaitingFor: r.WaitingFor(),
		ID: r.ID, KnownAs: r.KnownAs, GraphID: r.Variant, Account: r.Account, Model: r.Model, Sandbox: r.Sandbox, Image: r.Image, Step: string(r.Step), Text: r.Text,
		Error: (*api.Failure)(r.Error), Bill: api.Bill(r.Bill),
		SelfReport: api.SelfReport{Session: r.SelfReport.Session, Provider: r.SelfReport.Provider, Model: r.SelfReport.Model, Usage: api.SelfReportedUsage(r.SelfReport.Usage)},
		PeakMemory: r.PeakMemory, Notes: r.Notes, Delivery: (*api.Delivery)(r.Delivery), Changes: (*api.RunChanges)(r.Changes), Created: r.Created, Started: r.Started, Ended: r.Ended, Warnings: r.Warnings,
	}
}

// runOf converts a receipt for this caller: without paths of the host if it is
// bound to an account.
func (c *call) runOf(r *run.Receipt) api.Run {
	answer := runOf(r)
	answer.TraceURL = c.traceURL(r.Trace)
	if !c.isBound() {
		return answer
	}
	answer.Error, answer.WaitingFor = publicFailure(answer.Error), publicerr.Text(answer.WaitingFor)
	answer.Warnings = publicTexts(answer.Warnings)
	if answer.Changes != nil {
		changes := *answer.Changes
		changes.Directory = ""
		answer.Changes = &changes
	}
	if answer.Notes != nil {
		notes := map[string]string{}
		for name, note := range answer.Notes {
			notes[name] = publicerr.Text(note)
		}
		answer.Notes = notes
	}
	return answer
}

// traceURL returns where the operator's tool shows a trace, "" if nowhere. The id, which
// callers choose, is escaped for every place of an address.
func (c *call) traceURL(trace string) string {
	if strings.Trim(trace, ".") == "" || c.TraceLink == "" { // dots alone would be another page
		return ""
	}
	escaped := strings.ReplaceAll(url.QueryEscape(trace), "+", "%20")
	return strings.ReplaceAll(c.TraceLink, textcheck.TracePlaceholder, escaped)
}

// eventOf converts an event for this caller.
func (c *call) eventOf(e *run.Event) api.Event {
	answer := eventOf(e)
	if c.isBound() {
		answer.Error = publicFailure(answer.Error)
	}
	return answer
}

// isBound reports whether the caller is bound to an account, or not authenticated.
func (c *call) isBound() bool { return c.caller == nil || c.caller.Account != "" }

func publicFailure(f *api.Failure) *api.Failure {
	if f == nil {
		return nil
	}
	return &api.Failure{Code: f.Code, Message: publicerr.Text(f.Message)}
}

func publicTexts(all []string) []string {
	var list []string
	for _, text := range all {
		list = append(list, publicerr.Text(text))
	}
	return list
}

func eventOf(e *run.Event) api.Event {
	return api.Event{
		Seq: e.Seq, At: e.At, Type: e.Type, Text: e.Text, Step: string(e.Step), Call: (*api.Call)(e.Call), IsError: e.IsError, TookMs: e.TookMs,
		Usage: (*api.Usage)(e.Usage), MicroUSD: e.MicroUSD, Bill: (*api.Bill)(e.Bill), Error: (*api.Failure)(e.Error), Notes: e.Notes,
	}
}
