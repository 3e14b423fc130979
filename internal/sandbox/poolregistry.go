package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
)

// Pooled returns the entries that wait in pools, or are made for them, the oldest first.
func (r *Registry) Pooled(ctx context.Context) ([]*Entry, error) {
	return r.query(ctx, "WHERE kind = 'pool' ORDER BY created_at_ms, container_name")
}

// candidates returns the names of some sandboxes of a shape that wait in the pool of an
// agent, in any order, so that many who claim at once do not all begin with the same one.
func (r *Registry) candidates(ctx context.Context, agent, shape string, most int) ([]string, error) {
	return r.strings(ctx, "SELECT container_name FROM sandboxes WHERE kind = 'pool' AND config_hash = ? AND agent_id = ? AND phase = 'ready' ORDER BY random() LIMIT ?", shape, agent, most)
}

// take takes a sandbox out of its pool, and reports whether this call did it: of all who
// try, one succeeds, and there is no way back.
func (r *Registry) take(ctx context.Context, name string) (mine bool, err error) {
	result, err := r.db.ExecContext(ctx, "UPDATE sandboxes SET phase = 'claimed' WHERE container_name = ? AND kind = 'pool' AND phase = 'ready'", name)
	if err != nil {
		return false, r.db.Explain(err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// transfer replaces the row of a sandbox that was taken out of its pool with the row of
// the name that it gets. Both happen or none.
func (r *Registry) transfer(ctx context.Context, e *Entry) error {
	return r.db.Tx(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM sandboxes WHERE container_name = ? AND kind = 'pool' AND phase = 'claimed'", e.MadeAs)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("sandbox %q is not in a pool any more: %w", e.MadeAs, ErrNotFound))
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO sandboxes ("+entryColumns+") VALUES ("+placeholders+")", e.fields()...)
		return err
	})
}

// knows reports whether a sandbox has a row, under the name that its runtime has for it.
func (r *Registry) knows(ctx context.Context, runtimeName string) (known bool, err error) {
	row := r.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sandboxes WHERE container_name = ? OR made_as = ?)", runtimeName, runtimeName)
	err = r.db.Explain(row.Scan(&known))
	return known, err
}

// identify returns what a runtime tells of a sandbox with the identity that its row has.
// What was made for a pool carries labels without one.
func (e *Entry) identify(s Summary) Summary {
	if e == nil || e.MadeAs == "" {
		return s
	}
	labels := make(map[string]string, len(s.Labels))
	maps.Copy(labels, s.Labels)
	delete(labels, LabelPool)
	labels[LabelSessionKey], labels[LabelConfigHash], labels[LabelMountsHash] = e.SessionKey, e.ConfigHash, e.MountsHash
	labels[LabelAgent], labels[LabelAccount], labels[LabelWorkspace] = e.AgentID, e.Account, e.WorkspaceDir
	s.Name, s.Labels = e.ContainerName, labels
	return s
}

// Facts returns the small stored values whose names begin with prefix, by name.
func (r *Registry) Facts(ctx context.Context, prefix string) (map[string]string, error) {
	names, err := r.strings(ctx, "SELECT name FROM facts WHERE substr(name, 1, ?) = ?", len(prefix), prefix)
	facts := make(map[string]string, len(names))
	for _, name := range names {
		value, problem := r.Fact(ctx, name)
		facts[name], err = value, errors.Join(err, problem)
	}
	return facts, err
}
