package token

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/tokencache"
	"github.com/atoll-run/atoll/internal/store"
)

// Store mints, verifies and revokes tokens. It is safe for concurrent use;
// several processes may have one on the same database.
type Store struct {
	db     *store.DB
	now    func() time.Time
	recent *tokencache.Cache[cached]
}

// cached is a token as it is stored.
type cached struct {
	token Token
	hash  [sha256.Size]byte
}

const (
	// CacheTime is how long a token that was revoked elsewhere may still be taken.
	CacheTime = time.Second
	keepOld   = 30 * 24 * time.Hour // how long expired tokens are listed
)

// NewStore returns the token store of a database; now may be nil.
func NewStore(db *store.DB, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{db: db, now: now, recent: tokencache.New[cached](CacheTime)}
}

// Create mints a token. Its text is returned only here.
func (d *Store) Create(ctx context.Context, who Identity, life time.Duration) (secret.Value, *Token, error) {
	if err := who.check(); err != nil {
		return secret.Value{}, nil, err
	}
	if life == 0 {
		life = DefaultLife
	}
	if life < 0 || life > MaxLife {
		return secret.Value{}, nil, fmt.Errorf("a session token lives at most %v", MaxLife)
	}
	id, proof, text := mint()
	now := d.now().Truncate(time.Millisecond)
	t := &Token{ID: id, Identity: who, Created: now, Expires: now.Add(life)}
	err := d.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM session_tokens WHERE expires_at_ms < ?", now.Add(-keepOld).UnixMilli()); err != nil {
			return err
		}
		return insert(ctx, tx, t, hash(id, proof))
	})
	if err != nil {
		return secret.Value{}, nil, err
	}
	return secret.New(text), t, nil
}

func insert(ctx context.Context, tx *sql.Tx, t *Token, sum [sha256.Size]byte) error {
	models, err := json.Marshal(t.Models)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO session_tokens (id, hash, account, agent, session, run, attempt, graph, trace, models, created_at_ms, expires_at_ms)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`, t.ID, sum[:], t.Account, t.Agent, t.Session, t.Run, t.Attempt, t.Graph, t.Trace, string(models),
		t.Created.UnixMilli(), t.Expires.UnixMilli())
	return err
}

// Verify returns the token whose text a caller sent.
func (d *Store) Verify(ctx context.Context, text string) (*Token, error) {
	id, proof, ok := split(text)
	if !ok {
		return nil, ErrInvalid
	}
	k, err := d.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	sum := hash(id, proof)
	if subtle.ConstantTimeCompare(sum[:], k.hash[:]) != 1 {
		return nil, ErrInvalid
	}
	switch k.token.State(d.now()) {
	case tokencache.Revoked:
		return nil, ErrRevoked
	case tokencache.Expired:
		return nil, ErrExpired
	}
	return &k.token, nil
}

// lookup returns a token, from the cache if it was read a moment ago.
func (d *Store) lookup(ctx context.Context, id string) (cached, error) {
	now := d.now()
	if k, ok := d.recent.Get(id, now); ok {
		return k, nil
	}
	tokens, hashes, err := d.read(ctx, "WHERE id = ?", id)
	if err != nil {
		return cached{}, err
	}
	if len(tokens) == 0 {
		return cached{}, ErrInvalid
	}
	k := cached{tokens[0], hashes[0]}
	d.recent.Put(id, k, now)
	return k, nil
}

// List returns all tokens, the newest first; expired ones stay for a month.
func (d *Store) List(ctx context.Context) ([]Token, error) {
	tokens, _, err := d.read(ctx, "ORDER BY created_at_ms DESC, id")
	return tokens, err
}

func (d *Store) read(ctx context.Context, where string, args ...any) (tokens []Token, hashes [][sha256.Size]byte, err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT id, hash, account, agent, session, run, attempt, graph, trace, models, created_at_ms, expires_at_ms, revoked_at_ms
		FROM session_tokens `+where, args...)
	if err != nil {
		return nil, nil, d.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		t, sum, err := scan(rows)
		if err != nil {
			return nil, nil, d.db.Explain(err)
		}
		tokens, hashes = append(tokens, t), append(hashes, sum)
	}
	return tokens, hashes, d.db.Explain(rows.Err())
}

func scan(rows *sql.Rows) (t Token, sum [sha256.Size]byte, err error) {
	var raw []byte
	var models string
	var created, expires int64
	var revoked sql.NullInt64
	err = rows.Scan(&t.ID, &raw, &t.Account, &t.Agent, &t.Session, &t.Run, &t.Attempt, &t.Graph, &t.Trace, &models, &created, &expires, &revoked)
	if err != nil {
		return t, sum, err
	}
	t.Created, t.Expires = time.UnixMilli(created), time.UnixMilli(expires)
	if revoked.Valid {
		at := time.UnixMilli(revoked.Int64)
		t.Revoked = &at
	}
	copy(sum[:], raw)
	return t, sum, json.Unmarshal([]byte(models), &t.Models)
}

// Revoke ends a token at once; other processes notice within Forget.
func (d *Store) Revoke(ctx context.Context, id string) error {
	return d.revokeAt(ctx, id, d.now())
}

func (d *Store) revokeAt(ctx context.Context, id string, at time.Time) error {
	result, err := d.db.ExecContext(ctx, "UPDATE session_tokens SET revoked_at_ms = min(ifnull(revoked_at_ms, ?1), ?1) WHERE id = ?2", at.UnixMilli(), id)
	if err != nil {
		return d.db.Explain(err)
	}
	d.recent.Delete(id)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrUnknown, id))
	}
	return nil
}

// Rotate mints a token of the same identity and ends the old one after grace,
// so that its user has time to change.
func (d *Store) Rotate(ctx context.Context, id string, life, grace time.Duration) (secret.Value, *Token, error) {
	tokens, _, err := d.read(ctx, "WHERE id = ?", id)
	if err != nil {
		return secret.Value{}, nil, err
	}
	if len(tokens) == 0 {
		return secret.Value{}, nil, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	if state := tokens[0].State(d.now()); state != tokencache.Active {
		return secret.Value{}, nil, fmt.Errorf("%w: it is %s", ErrInvalid, state)
	}
	text, made, err := d.Create(ctx, tokens[0].Identity, life)
	if err != nil {
		return secret.Value{}, nil, err
	}
	return text, made, d.revokeAt(ctx, id, d.now().Add(grace))
}
