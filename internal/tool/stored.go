package tool

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/store"
)

// seenFor is how long a file that a session has seen is remembered.
const seenFor = 30 * 24 * time.Hour

// NewStoredMemory returns a memory that a session's next process has too. The
// session is named so that no other has the same name.
func NewStoredMemory(db *store.DB, session string) Memory {
	return &storedMemory{db: db, session: session, now: time.Now}
}

type storedMemory struct {
	db      *store.DB
	session string
	now     func() time.Time
}

func (m *storedMemory) Recall(ctx context.Context, key string) (version guestfs.Version, err error) {
	row := m.db.QueryRowContext(ctx, "SELECT version FROM seen_files WHERE session = ? AND file = ?", m.session, key)
	if err := row.Scan(&version); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", m.db.Explain(err)
	}
	return version, nil
}

func (m *storedMemory) Remember(ctx context.Context, key string, version guestfs.Version) error {
	if version == "" {
		_, err := m.db.ExecContext(ctx, "DELETE FROM seen_files WHERE session = ? AND file = ?", m.session, key)
		return m.db.Explain(err)
	}
	now := m.now()
	return m.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO seen_files (session, file, version, seen_at_ms) VALUES (?, ?, ?, ?)",
			m.session, key, version, now.UnixMilli())
		if err != nil {
			return err
		}
		return m.forgetOld(ctx, tx, now)
	})
}

// forgetOld keeps the memory within its bounds.
func (m *storedMemory) forgetOld(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM seen_files WHERE (session, file) IN (
		SELECT session, file FROM seen_files WHERE session = ? ORDER BY seen_at_ms DESC LIMIT -1 OFFSET ?)`, m.session, MaxSeen)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM seen_files WHERE seen_at_ms < ?", now.Add(-seenFor).UnixMilli())
	return err
}
