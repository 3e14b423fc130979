package serve

import (
	"cmp"
	"context"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/doctor"
	"github.com/atoll-run/atoll/internal/run"
)

// restChoices is what callers can choose from.
type restChoices struct {
	parts    *Parts
	variants []run.Variant
}

// Variants lists the kinds of agents, and says which of them cannot work.
func (r restChoices) Variants(ctx context.Context) ([]api.Variant, error) {
	list := make([]api.Variant, 0, len(r.variants))
	for i := range r.variants {
		v := &r.variants[i]
		list = append(list, api.Variant{
			ID: v.ID, Name: cmp.Or(v.Name, v.ID), Description: v.Description, Image: v.Image, Timeout: int(v.Timeout.Seconds()), Memory: v.Memory,
			Remote: v.Remote != nil, OnDirectory: v.OnDirectory, Unavailable: r.parts.Runs.WhyUnavailable(ctx, v),
		})
	}
	return list, nil
}

// Models lists the models of the configuration.
func (r restChoices) Models(ctx context.Context) ([]api.Model, error) {
	cfg, err := r.parts.Config.LLM()
	if err != nil {
		return nil, err
	}
	all, err := (&gatewayCatalogue{parts: r.parts, models: &cfg}).Models(ctx)
	list := make([]api.Model, 0, len(all))
	for i := range all {
		m := &all[i]
		list = append(list, api.Model{ID: m.Provider + "/" + m.ID, Name: m.Name, Provider: m.Provider, ContextWindow: m.ContextWindow, Reasoning: m.Reasoning})
	}
	return list, err
}

// examine returns what looks at the machine, as the HTTP interface tells it.
func examine(d *doctor.Doctor) func(context.Context) []api.DoctorCheck {
	return func(ctx context.Context) (list []api.DoctorCheck) {
		for _, c := range d.Examine(ctx) {
			list = append(list, api.DoctorCheck{Name: c.Name, Status: string(c.Status), Detail: c.Detail, Fix: c.Fix})
		}
		return list
	}
}
