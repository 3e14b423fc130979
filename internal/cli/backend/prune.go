package backend

import (
	"context"

	"github.com/atoll-run/atoll/internal/app"
)

func (d local) Prune(ctx context.Context, workspaces bool) (rows []Pruned, silent, err error) {
	rows, err = prune(ctx, d.app, workspaces)
	if err != nil {
		return nil, nil, err
	}
	return rows, d.app.Doctor().EnginesAnswer(ctx), nil
}

// Pruned is one row of prune's answer.
type Pruned struct {
	Name   string `json:"containerName"`
	Reason string `json:"reason"`
	Error  string `json:"error,omitempty"`
}

// prune removes what is idle or old, and returns a row for each.
func prune(ctx context.Context, a *app.App, workspaces bool) ([]Pruned, error) {
	removals, err := a.Prune(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	rows := []Pruned{}
	for _, r := range removals {
		row := Pruned{Name: r.Entry.ContainerName, Reason: r.Reason}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}
