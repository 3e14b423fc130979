package sandboxes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/store"
)

// Record is a sandbox that a program made.
type Record struct {
	ID         string
	Name       string // in the registry of sandboxes
	Account    string
	Phase      Phase
	Created    time.Time
	Deadline   time.Time
	OnDeadline string // OnDeadlineRemove or OnDeadlineStop
	Template   string
	Metadata   map[string]string
	Details    Details
	agent      string // whose session or run has the sandbox; "" if a program made it
}

// What becomes of a sandbox at its deadline.
const (
	OnDeadlineRemove = "remove"
	OnDeadlineStop   = "stop"
)

// Phase is how far the making or removing of a sandbox has come.
type Phase string

// The phases.
const (
	Creating Phase = "creating"
	Ready    Phase = "ready"
	Removing Phase = "removing"
	Snapshot Phase = "snapshot" // it is stopped, and what sandboxes of a template begin with
)

// Details are what is needed to work in a sandbox and to remove it.
type Details struct {
	SessionKey   string            `json:"sessionKey"`
	WorkspaceDir string            `json:"workspaceDir"` // on the host
	Workdir      string            `json:"workdir"`
	SearchPath   string            `json:"searchPath"`
	Env          map[string]string `json:"env"`
	AllowSecret  []string          `json:"allowSecret,omitempty"`
	Roots        []Root            `json:"roots"`
	PortToken    string            `json:"portToken"`      // that requests to its ports need
	AccessToken  string            `json:"accessToken"`    // that requests of E2B's clients to work in it need
	Bound        bool              `json:"bound,omitzero"` // see Request
	E2B          bool              `json:"e2b,omitzero"`   // see Request
	// Request is what it was made from.
	Request *api.CreateSandbox `json:"request"`
}

// Root is a directory of the sandbox whose files may be reached.
type Root struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly,omitzero"`
}

// records are the rows of api_sandboxes.
type records struct{ db *store.DB }

const columns = "id, name, account, phase, created_at_ms, deadline_ms, on_deadline, template, metadata, details"

func (s records) insert(ctx context.Context, r *Record) error {
	metadata, err := json.Marshal(r.Metadata)
	if err != nil {
		return err
	}
	details, err := json.Marshal(&r.Details)
	if err != nil {
		return err
	}
	return s.exec(ctx, "INSERT INTO api_sandboxes ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Name, r.Account, r.Phase, r.Created.UnixMilli(), r.Deadline.UnixMilli(), r.OnDeadline, r.Template, string(metadata), string(details))
}

// finish marks a sandbox as made, or as a snapshot, unless it was ended meanwhile.
func (s records) finish(ctx context.Context, r *Record, as Phase) error {
	details, err := json.Marshal(&r.Details)
	if err != nil {
		return err
	}
	return s.one(ctx, "UPDATE api_sandboxes SET phase = ?, details = ? WHERE id = ? AND phase = 'creating'", as, string(details), r.ID)
}

// setDeadline moves the deadline of a sandbox that is not being removed.
func (s records) setDeadline(ctx context.Context, id string, at time.Time) error {
	return s.one(ctx, "UPDATE api_sandboxes SET deadline_ms = ? WHERE id = ? AND phase <> 'removing'", at.UnixMilli(), id)
}

func (s records) setRemoving(ctx context.Context, id string) error {
	return s.one(ctx, "UPDATE api_sandboxes SET phase = 'removing' WHERE id = ?", id)
}

// abandonCreating marks what a process that died was making for removal.
func (s records) abandonCreating(ctx context.Context) error {
	return s.exec(ctx, "UPDATE api_sandboxes SET phase = 'removing' WHERE phase = 'creating'")
}

func (s records) delete(ctx context.Context, id string) error {
	return s.exec(ctx, "DELETE FROM api_sandboxes WHERE id = ?", id)
}

// get returns the record of an id, or of a sandbox's name.
func (s records) get(ctx context.Context, id string) (*Record, error) {
	list, err := s.query(ctx, "WHERE id = ?1 OR name = ?1", id)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, ErrNotFound
	}
	return list[0], nil
}

// ofAccount returns the records of an account, "" for all.
func (s records) ofAccount(ctx context.Context, account string) ([]*Record, error) {
	if account == "" {
		return s.query(ctx, "")
	}
	return s.query(ctx, "WHERE account = ?", account)
}

func (s records) query(ctx context.Context, rest string, args ...any) ([]*Record, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT "+columns+" FROM api_sandboxes "+rest, args...)
	if err != nil {
		return nil, s.db.Explain(err)
	}
	defer rows.Close()
	var list []*Record
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, s.db.Explain(err)
		}
		list = append(list, r)
	}
	return list, s.db.Explain(rows.Err())
}

func scan(rows *sql.Rows) (*Record, error) {
	var r Record
	var created, deadline int64
	var metadata, details string
	if err := rows.Scan(&r.ID, &r.Name, &r.Account, &r.Phase, &created, &deadline, &r.OnDeadline, &r.Template, &metadata, &details); err != nil {
		return nil, err
	}
	r.Created, r.Deadline = time.UnixMilli(created).UTC(), time.UnixMilli(deadline).UTC()
	return &r, errors.Join(json.Unmarshal([]byte(metadata), &r.Metadata), json.Unmarshal([]byte(details), &r.Details))
}

func (s records) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.db.ExecContext(ctx, query, args...)
	return s.db.Explain(err)
}

// one is exec for a row that must be there.
func (s records) one(ctx context.Context, query string, args ...any) error {
	done, err := s.db.ExecContext(ctx, query, args...)
	if err != nil {
		return s.db.Explain(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return fmt.Errorf("%w, or it is being ended", ErrNotFound)
}
