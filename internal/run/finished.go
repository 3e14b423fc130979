package run

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// The variants of runs that no Runner carries out.
const (
	// HostAgent is an agent's loop on the host, with its tools in a sandbox that
	// outlives it.
	HostAgent = "agent"
	// HostCommand is a command of a person's that could ask models.
	HostCommand = "command"
)

// SaveFinished writes down the receipt of such a run when it is over. The same id again
// is its agent's next task or the next command, and the latest counts; the id of any other run is
// ErrIDReused.
func (s Store) SaveFinished(ctx context.Context, r *Receipt) error {
	kept := *r
	kept.Variant, kept.Step = cmp.Or(r.Variant, HostAgent), Over
	state, err := json.Marshal(&kept)
	if err != nil {
		return err
	}
	done, err := s.DB.ExecContext(ctx, `INSERT INTO runs (id, account, variant, request, step, receipt, created_at_ms, changed_at_ms)
		VALUES (?, ?, ?, '{}', ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET receipt = excluded.receipt, changed_at_ms = excluded.changed_at_ms
		WHERE variant = excluded.variant AND account = excluded.account`,
		kept.ID, kept.Account, kept.Variant, kept.Step, string(state), kept.Created.UnixMilli(), time.Now().UnixMilli())
	if err != nil {
		return s.DB.Explain(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return fmt.Errorf("run %s: %w", r.ID, ErrIDReused)
	}
	return nil
}
