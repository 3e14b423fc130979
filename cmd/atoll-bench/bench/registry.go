package bench

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
)

const (
	curveRounds = 200
	curveAgents = 20
	// curvePage is how many entries list reads: what one screen shows.
	curvePage = 100
)

var curveSizes = []int{10, 100, 1000, 10_000}

// curveTasks are what a registry is asked on the way of a command.
var curveTasks = []struct {
	name string
	run  func(ctx context.Context, r *sandbox.Registry, n int) error
}{
	{"ensure's look", func(ctx context.Context, r *sandbox.Registry, n int) error {
		_, err := r.Get(ctx, curveName(n/2))
		return err
	}},
	{"first page of list", func(ctx context.Context, r *sandbox.Registry, _ int) error {
		_, err := r.List(ctx, curvePage)
		return err
	}},
	{"prune's decision", func(ctx context.Context, r *sandbox.Registry, _ int) error {
		agents, err := r.Agents(ctx)
		for _, agent := range agents {
			if err == nil {
				_, err = r.Stale(ctx, agent, time.Unix(0, 0), time.Unix(0, 0))
			}
		}
		return err
	}},
}

// registryCurve shows that nothing grows with the number of entries. The list
// is compared from the size of its page on: below, it reads fewer entries.
func registryCurve(ctx context.Context, r *Report) error {
	medians := map[string]map[int]float64{}
	for _, n := range curveSizes {
		registry, done, err := filledRegistry(ctx, n)
		if err != nil {
			return err
		}
		for _, task := range curveTasks {
			var samples []float64
			for range curveRounds {
				start := time.Now()
				if err := task.run(ctx, registry, n); err != nil {
					done()
					return err
				}
				samples = append(samples, microseconds(time.Since(start)))
			}
			one := row(fmt.Sprintf("%s, %d entries", task.name, n), "µs", samples)
			r.Rows = append(r.Rows, one)
			if medians[task.name] == nil {
				medians[task.name] = map[int]float64{}
			}
			medians[task.name][n] = one.P50
		}
		done()
	}
	for _, task := range curveTasks {
		m := medians[task.name]
		r.Ratios = append(r.Ratios, atMost(task.name+": 10,000 entries against 100, p50", m[10_000]/m[100], growthLimit))
	}
	return nil
}

func curveName(i int) string { return fmt.Sprintf("openclaw-sbx-agent-a%d-s%05d", i%curveAgents, i) }

func filledRegistry(ctx context.Context, n int) (*sandbox.Registry, func(), error) {
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, filepath.Join(dir, "atoll.db"))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	err = db.Tx(ctx, func(tx *sql.Tx) error {
		for i := range n {
			_, err := tx.ExecContext(ctx, `INSERT INTO sandboxes (container_name, session_key, created_at_ms, last_used_at_ms,
				image, phase, backend, agent_id) VALUES (?, ?, ?, ?, 'image', 'ready', 'docker', ?)`,
				curveName(i), fmt.Sprintf("agent:a%d:s%d", i%curveAgents, i), now.UnixMilli(), now.UnixMilli()+int64(i), fmt.Sprintf("a%d", i%curveAgents))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return sandbox.NewRegistry(db), func() { _ = db.Close(); _ = os.RemoveAll(dir) }, err
}
