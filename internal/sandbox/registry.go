package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/store"
)

// Phase is how far the making or removing of a registered sandbox has come. A
// row in any phase but ready whose name is not locked was left by a crash.
type Phase string

// The phases of a registry entry.
const (
	PhaseCreating Phase = "creating"
	PhaseReady    Phase = "ready"
	PhaseRemoving Phase = "removing"
	// PhaseClaimed is a sandbox that was taken out of its pool, and is not yet that of
	// a name. It never returns to the pool.
	PhaseClaimed Phase = "claimed"
)

// Kind tells command sandboxes from browser sandboxes and those that wait in a pool.
type Kind string

// The kinds of registry entry.
const (
	KindSandbox Kind = "sandbox"
	KindBrowser Kind = "browser"
	KindPool    Kind = "pool"
)

// Entry is one row of the registry. The first six fields are OpenClaw's.
type Entry struct {
	ContainerName string `json:"containerName"`
	SessionKey    string `json:"sessionKey"` // the scope key
	CreatedAtMs   int64  `json:"createdAtMs"`
	LastUsedAtMs  int64  `json:"lastUsedAtMs"`
	Image         string `json:"image"`
	ConfigHash    string `json:"configHash,omitempty"`

	Kind         Kind   `json:"kind"`
	Phase        Phase  `json:"phase"`
	Backend      string `json:"backend"`
	AgentID      string `json:"agentId"`
	Account      string `json:"account,omitempty"`
	MountsHash   string `json:"-"`
	WorkspaceDir string `json:"workspaceDir,omitempty"`
	CDPPort      int    `json:"cdpPort,omitempty"`
	NoVNCPort    int    `json:"noVncPort,omitempty"`
	Imported     bool   `json:"imported,omitempty"` // taken over from an old registry file
	// MadeAs is the name that its machinery knows it by, if it was made for a pool; ""
	// is ContainerName.
	MadeAs string `json:"madeAs,omitempty"`
}

// RuntimeName returns the name that the runtime knows the sandbox by.
func (e *Entry) RuntimeName() string { return cmp.Or(e.MadeAs, e.ContainerName) }

const entryColumns = `container_name, session_key, created_at_ms, last_used_at_ms, image, config_hash, kind, phase,
	backend, agent_id, account, mounts_hash, workspace_dir, cdp_port, no_vnc_port, imported, made_as`

func (e *Entry) fields() []any {
	return []any{&e.ContainerName, &e.SessionKey, &e.CreatedAtMs, &e.LastUsedAtMs, &e.Image, &e.ConfigHash, &e.Kind, &e.Phase,
		&e.Backend, &e.AgentID, &e.Account, &e.MountsHash, &e.WorkspaceDir, &e.CDPPort, &e.NoVNCPort, &e.Imported, &e.MadeAs}
}

// Registry is the record of every sandbox, in the installation's database.
type Registry struct{ db *store.DB }

// NewRegistry returns the registry kept in db.
func NewRegistry(db *store.DB) *Registry { return &Registry{db} }

// Get returns the entry of name, or ErrNotFound.
func (r *Registry) Get(ctx context.Context, name string) (*Entry, error) {
	var e Entry
	row := r.db.QueryRowContext(ctx, "SELECT "+entryColumns+" FROM sandboxes WHERE container_name = ?", name)
	if err := row.Scan(e.fields()...); errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("sandbox %q: %w", name, ErrNotFound)
	} else if err != nil {
		return nil, r.db.Explain(err)
	}
	return &e, nil
}

// Put writes e, replacing a row of the same name.
func (r *Registry) Put(ctx context.Context, e *Entry) error {
	return r.exec(ctx, "INSERT OR REPLACE INTO sandboxes ("+entryColumns+") VALUES ("+placeholders+")", e.fields()...)
}

// insertMissing writes e unless the name has a row already.
func (r *Registry) insertMissing(ctx context.Context, e *Entry) error {
	return r.exec(ctx, "INSERT INTO sandboxes ("+entryColumns+") VALUES ("+placeholders+") ON CONFLICT DO NOTHING", e.fields()...)
}

const placeholders = "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"

// SetPhase records how far name has come.
func (r *Registry) SetPhase(ctx context.Context, name string, phase Phase) error {
	return r.exec(ctx, "UPDATE sandboxes SET phase = ? WHERE container_name = ?", phase, name)
}

// clockSlack is how far ahead of its reader's clock a time may be and still be
// another process's that wrote it a moment ago. What is further ahead was
// written before the clock was set back.
const clockSlack = time.Minute

// Touch records that name was used at t. An earlier time changes nothing,
// unless the one that is there cannot be true.
func (r *Registry) Touch(ctx context.Context, name string, t time.Time) error {
	return r.exec(ctx, `UPDATE sandboxes SET last_used_at_ms = CASE
		WHEN last_used_at_ms > ? THEN ? ELSE max(last_used_at_ms, ?) END WHERE container_name = ?`,
		t.Add(clockSlack).UnixMilli(), t.UnixMilli(), t.UnixMilli(), name)
}

// clampTimes corrects the times of an agent's entries that lie ahead of now: else
// they would be neither idle nor old until the clock gets there.
func (r *Registry) clampTimes(ctx context.Context, agentID string, now time.Time) error {
	limit := now.Add(clockSlack).UnixMilli()
	var ahead bool
	row := r.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sandboxes WHERE agent_id = ? AND last_used_at_ms > ?)
		OR EXISTS (SELECT 1 FROM sandboxes WHERE agent_id = ? AND created_at_ms > ?)`, agentID, limit, agentID, limit)
	if err := row.Scan(&ahead); err != nil || !ahead {
		return r.db.Explain(err) // nearly always nothing is written
	}
	return r.exec(ctx, `UPDATE sandboxes SET created_at_ms = min(created_at_ms, ?), last_used_at_ms = min(last_used_at_ms, ?)
		WHERE agent_id = ?`, now.UnixMilli(), now.UnixMilli(), agentID)
}

// Delete removes the row of name; it is no error if there is none.
func (r *Registry) Delete(ctx context.Context, name string) error {
	return r.db.Tx(ctx, func(tx *sql.Tx) error { return deleteWithSettings(ctx, tx, name) })
}

// List returns up to limit entries, the last used first; 0 means all. What waits in a
// pool is not among them: see Pooled.
func (r *Registry) List(ctx context.Context, limit int) ([]*Entry, error) {
	if limit <= 0 {
		limit = -1 // SQLite's "no limit"
	}
	return r.query(ctx, "WHERE kind <> 'pool' ORDER BY last_used_at_ms DESC, container_name LIMIT ?", limit)
}

// SharesWorkspace reports whether another sandbox of ours works in the same host
// directory: the other half of a network pair.
func (r *Registry) SharesWorkspace(ctx context.Context, e *Entry) (shared bool, err error) {
	row := r.db.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM sandboxes WHERE workspace_dir = ? AND container_name <> ? AND imported = 0)", e.WorkspaceDir, e.ContainerName)
	err = r.db.Explain(row.Scan(&shared))
	return shared, err
}

// InWorkspace returns the sandboxes of ours that work in that host directory.
func (r *Registry) InWorkspace(ctx context.Context, dir string) ([]*Entry, error) {
	return r.query(ctx, "WHERE workspace_dir = ? AND imported = 0", dir)
}

// Count is how many entries List has.
func (r *Registry) Count(ctx context.Context) (int, error) {
	var n int
	err := r.db.QueryRowContext(ctx, "SELECT count(*) FROM sandboxes WHERE kind <> 'pool'").Scan(&n)
	return n, r.db.Explain(err)
}

// NamesOf returns the names of the entries of an account, without those in pools.
func (r *Registry) NamesOf(ctx context.Context, account string) ([]string, error) {
	return r.strings(ctx, "SELECT container_name FROM sandboxes WHERE account = ? AND kind <> 'pool'", account)
}

// Agents returns the ids of the agents that have entries.
func (r *Registry) Agents(ctx context.Context) ([]string, error) {
	// The recursive query jumps from one id to the next along the index, where
	// DISTINCT would read every row.
	return r.strings(ctx, `WITH RECURSIVE ids(id) AS (
		SELECT min(agent_id) FROM sandboxes
		UNION ALL SELECT (SELECT min(agent_id) FROM sandboxes WHERE agent_id > ids.id) FROM ids WHERE ids.id IS NOT NULL
	) SELECT id FROM ids WHERE id IS NOT NULL`)
}

// Backends returns the backends that entries of ours name.
func (r *Registry) Backends(ctx context.Context) ([]string, error) {
	return r.strings(ctx, "SELECT DISTINCT backend FROM sandboxes WHERE imported = 0")
}

// Names returns the ready sandboxes of ours on one backend, by the names that it knows
// them by.
func (r *Registry) Names(ctx context.Context, backend string) (map[string]string, error) {
	list, err := r.query(ctx, "WHERE backend = ? AND imported = 0 AND phase = 'ready'", backend)
	names := make(map[string]string, len(list))
	for _, e := range list {
		names[e.RuntimeName()] = e.ContainerName
	}
	return names, err
}

// Stale returns the ready entries of one agent that were last used, or made,
// before the given times. A zero time asks for nothing.
func (r *Registry) Stale(ctx context.Context, agentID string, usedBefore, madeBefore time.Time) ([]*Entry, error) {
	// Each half is a range of its index; the + keeps the planner from walking
	// an index of the other columns, which nearly all rows share.
	const half = "SELECT " + entryColumns + " FROM sandboxes WHERE agent_id = ? AND %s < ? AND +phase = 'ready' AND +imported = 0 AND +kind <> 'pool'"
	query := fmt.Sprintf(half+" UNION "+half, "last_used_at_ms", "created_at_ms")
	return r.rows(ctx, query, agentID, limitMs(usedBefore), agentID, limitMs(madeBefore))
}

// limitMs is the bound for "before t"; nothing is before the zero time.
func limitMs(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 62
	}
	return t.UnixMilli()
}

// Unfinished returns the names of the entries in any phase but ready.
func (r *Registry) Unfinished(ctx context.Context) ([]string, error) {
	return r.strings(ctx, "SELECT container_name FROM sandboxes WHERE phase <> 'ready'")
}

// Fact returns a small stored value, "" if there is none.
func (r *Registry) Fact(ctx context.Context, name string) (string, error) {
	var value string
	err := r.db.QueryRowContext(ctx, "SELECT value FROM facts WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, r.db.Explain(err)
}

// SetFact stores a small value.
func (r *Registry) SetFact(ctx context.Context, name, value string) error {
	return r.exec(ctx, "INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)
}

// ClaimFact stores a small value unless there is one, and returns the one that is
// stored then. Of many processes that claim, one succeeds.
func (r *Registry) ClaimFact(ctx context.Context, name, value string) (string, error) {
	if err := r.exec(ctx, "INSERT OR IGNORE INTO facts VALUES (?, ?)", name, value); err != nil {
		return "", err
	}
	return r.Fact(ctx, name)
}

// Raise adds one to a stored number, which is 0 if there is none, and returns it. Of many
// processes that raise it, each gets another.
func (r *Registry) Raise(ctx context.Context, name string) (n uint64, err error) {
	err = r.db.Tx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO facts VALUES (?, '1')
			ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) RETURNING CAST(value AS INTEGER)`, name).Scan(&n)
	})
	return n, r.db.Explain(err)
}

// Turn reports whether it is the caller's turn to do what may be done once in
// every period, and takes the turn. Of many processes that ask, one gets it.
func (r *Registry) Turn(ctx context.Context, name string, now time.Time, period time.Duration) (mine bool, err error) {
	// Most calls end here, with one read and no write.
	last, err := r.Fact(ctx, name)
	if err != nil || isRecent(last, now, period) {
		return false, err
	}
	err = r.db.Tx(ctx, func(tx *sql.Tx) error {
		var last string
		err := tx.QueryRowContext(ctx, "SELECT value FROM facts WHERE name = ?", name).Scan(&last)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if isRecent(last, now, period) {
			return nil
		}
		mine = true
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO facts VALUES (?, ?)", name, strconv.FormatInt(now.UnixMilli(), 10))
		return err
	})
	return mine, err
}

// isRecent reports whether the time in ms is less than a period away. A time in
// the future is a clock that was set back, and counts as long ago.
func isRecent(ms string, now time.Time, period time.Duration) bool {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return false
	}
	age := now.Sub(time.UnixMilli(n))
	return age >= 0 && age < period
}

func (r *Registry) exec(ctx context.Context, query string, args ...any) error {
	_, err := r.db.ExecContext(ctx, query, args...)
	return r.db.Explain(err)
}

func (r *Registry) query(ctx context.Context, rest string, args ...any) ([]*Entry, error) {
	return r.rows(ctx, "SELECT "+entryColumns+" FROM sandboxes "+rest, args...)
}

func (r *Registry) rows(ctx context.Context, query string, args ...any) ([]*Entry, error) {
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, r.db.Explain(err)
	}
	return collect(r.db, rows, func(rows *sql.Rows) (*Entry, error) {
		var e Entry
		return &e, rows.Scan(e.fields()...)
	})
}

func (r *Registry) strings(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, r.db.Explain(err)
	}
	return collect(r.db, rows, func(rows *sql.Rows) (s string, err error) {
		return s, rows.Scan(&s)
	})
}

func collect[T any](db *store.DB, rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, db.Explain(err)
		}
		all = append(all, one)
	}
	return all, db.Explain(rows.Err())
}
