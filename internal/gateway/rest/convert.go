package rest

import (
	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/run"
)

// runOf is a receipt as callers see it. Where types are converted whole, a field
// that only one side has does not compile.
func runOf(r *run.Receipt) api.Run {
	return api.Run{
		ID: r.ID, GraphID: r.Variant, Account: r.Account, Model: r.Model, Sandbox: r.Sandbox, Image: r.Image, Step: string(r.Step), Text: r.Text,
		Error: (*api.Failure)(r.Error), Bill: api.Bill(r.Bill),
		Told:       api.Told{Session: r.Told.Session, Provider: r.Told.Provider, Model: r.Told.Model, Usage: api.ToldUsage(r.Told.Usage)},
		PeakMemory: r.PeakMemory, Notes: r.Notes, Delivery: (*api.Delivery)(r.Delivery), Created: r.Created, Started: r.Started, Ended: r.Ended, Warnings: r.Warnings,
	}
}

func eventOf(e *run.Event) api.Event {
	return api.Event{
		Seq: e.Seq, At: e.At, Type: e.Type, Text: e.Text, Step: string(e.Step), Call: (*api.Call)(e.Call), IsError: e.IsError, TookMs: e.TookMs,
		Usage: (*api.Usage)(e.Usage), Bill: (*api.Bill)(e.Bill), Error: (*api.Failure)(e.Error), Notes: e.Notes,
	}
}
