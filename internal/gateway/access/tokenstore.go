package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/tokencache"
	"github.com/atoll-run/atoll/internal/store"
)

// TokenStoreOptions configure a TokenStore.
type TokenStoreOptions struct {
	DB     *store.DB
	Now    func() time.Time // nil is time.Now
	Logger *slog.Logger     // nil discards
}

// TokenStore creates, verifies and revokes tokens. It is safe for concurrent use;
// several processes may use one database.
type TokenStore struct {
	db     *store.DB
	now    func() time.Time
	logger *slog.Logger
	recent *tokencache.Cache[storedToken]

	mu       sync.Mutex
	used     map[string]time.Time // not yet in the database
	fixed    []fixedToken
	watchers map[string]map[*watcher]struct{}
}

// storedToken is a token as the database holds it.
type storedToken struct {
	token Token
	hash  [sha256.Size]byte
}

// fixedToken is a token from the configuration or the environment. It is never
// stored. Its epoch is random, so that devices paired under it lose access when it
// is replaced.
type fixedToken struct {
	name, epoch string
	sum         [sha256.Size]byte
}

const (
	// RevocationDelay is how long a token that another process revoked may still be
	// accepted.
	RevocationDelay = 500 * time.Millisecond
	maxTokens       = 10_000
	keepEnded       = 30 * 24 * time.Hour // how long tokens that ended are listed
)

// NewTokenStore returns the token store of a database.
func NewTokenStore(o TokenStoreOptions) *TokenStore {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &TokenStore{db: o.DB, now: o.Now, logger: o.Logger, recent: tokencache.New[storedToken](RevocationDelay), used: map[string]time.Time{}, watchers: map[string]map[*watcher]struct{}{}}
}

// SetFixed replaces the tokens of the configuration, by the name of their source.
// They are admin tokens of every account. Watchers of a token that is no longer
// among them are notified.
func (s *TokenStore) SetFixed(tokens map[string]secret.Value) {
	var fixed []fixedToken
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range tokens {
		if value.IsEmpty() {
			continue
		}
		f := fixedToken{name: name, epoch: rand.Text(), sum: sha256.Sum256([]byte(value.Reveal()))}
		for _, old := range s.fixed {
			if old.name == name && old.sum == f.sum {
				f.epoch = old.epoch
			}
		}
		fixed = append(fixed, f)
	}
	before := s.fixed
	s.fixed = fixed
	for _, old := range before {
		if s.fixedEpoch(old.epoch) == nil {
			s.notifyEnded(old.name)
		}
	}
}

// fixedEpoch returns the fixed token of an epoch, or nil. The caller holds the
// lock.
func (s *TokenStore) fixedEpoch(epoch string) *fixedToken {
	for i := range s.fixed {
		if s.fixed[i].epoch == epoch {
			return &s.fixed[i]
		}
	}
	return nil
}

func (f *fixedToken) caller() *Caller { return &Caller{Token: f.name, Name: f.name, Scope: Admin} }

// Create stores a new token. Its text is returned once and is not stored.
func (s *TokenStore) Create(ctx context.Context, spec Spec) (secret.Value, *Token, error) {
	if err := spec.Check(); err != nil {
		return secret.Value{}, nil, err
	}
	if spec.Life == 0 {
		spec.Life = DefaultLife
	}
	id, proof, text := mint(prefix)
	if spec.E2B {
		id, proof, text = mintE2B()
	}
	now := s.now().Truncate(time.Millisecond)
	t := &Token{ID: id, Spec: spec, Created: now, Expires: now.Add(spec.Life)}
	if err := s.db.Tx(ctx, func(tx *sql.Tx) error { return insert(ctx, tx, t, hash(id, proof)) }); err != nil {
		return secret.Value{}, nil, err
	}
	return secret.New(text), t, nil
}

func insert(ctx context.Context, tx *sql.Tx, t *Token, sum [sha256.Size]byte) error {
	old := t.Created.Add(-keepEnded).UnixMilli()
	if _, err := tx.ExecContext(ctx, "DELETE FROM gateway_tokens WHERE min(expires_at_ms, ifnull(revoked_at_ms, expires_at_ms)) < ?", old); err != nil {
		return err
	}
	var count int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM gateway_tokens").Scan(&count); err != nil {
		return err
	}
	if count >= maxTokens {
		return errhint.With(fmt.Errorf("there are %d gateway tokens, and no more are made", count), "revoke those that nobody uses; they are dropped a month later")
	}
	quota, err := json.Marshal(t.Quota)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO gateway_tokens (id, hash, name, scope, account, quota, created_at_ms, expires_at_ms) VALUES (?,?,?,?,?,?,?,?)`,
		t.ID, sum[:], t.Name, string(t.Scope), t.Account, string(quota), t.Created.UnixMilli(), t.Expires.UnixMilli())
	return err
}

// Verify returns the caller of a token's text. Every refusal is ErrDenied.
func (s *TokenStore) Verify(ctx context.Context, text string) (*Caller, error) {
	if f := s.matchFixed(text); f != nil {
		return f.caller(), nil
	}
	id, proof, ok := split(prefix, text)
	if !ok {
		id, proof, ok = splitE2B(text)
	}
	if !ok {
		return nil, ErrDenied
	}
	t, err := s.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	sum := hash(id, proof)
	if subtle.ConstantTimeCompare(sum[:], t.hash[:]) != 1 {
		return nil, ErrDenied
	}
	return s.accept(&t.token)
}

// accept returns the caller of a verified token, or ErrDenied if it has expired or
// was revoked.
func (s *TokenStore) accept(t *Token) (*Caller, error) {
	now := s.now()
	if t.State(now) != tokencache.Active {
		return nil, ErrDenied
	}
	s.mu.Lock()
	s.used[t.ID] = now
	s.mu.Unlock()
	return t.caller(), nil
}

// matchFixed compares the text with every fixed token, in constant time.
func (s *TokenStore) matchFixed(text string) (match *fixedToken) {
	sum := sha256.Sum256([]byte(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.fixed {
		if subtle.ConstantTimeCompare(sum[:], s.fixed[i].sum[:]) == 1 {
			f := s.fixed[i]
			match = &f
		}
	}
	return match
}

// HasTokens reports whether any token could authenticate a caller.
func (s *TokenStore) HasTokens(ctx context.Context) (bool, error) {
	s.mu.Lock()
	fixed := len(s.fixed)
	s.mu.Unlock()
	if fixed > 0 {
		return true, nil
	}
	var n int
	err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM gateway_tokens WHERE ifnull(revoked_at_ms, expires_at_ms) > ?1 AND expires_at_ms > ?1", s.now().UnixMilli()).Scan(&n)
	return n > 0, s.db.Explain(err)
}

// lookup reads a token from the cache or the database.
func (s *TokenStore) lookup(ctx context.Context, id string) (storedToken, error) {
	now := s.now()
	if k, ok := s.recent.Get(id, now); ok {
		return k, nil
	}
	found, err := s.read(ctx, "WHERE id = ?", id)
	if err != nil {
		return storedToken{}, err
	}
	if len(found) == 0 {
		return storedToken{}, ErrDenied
	}
	s.recent.Put(id, found[0], now)
	return found[0], nil
}

// List returns all tokens, the newest first. Ended tokens are kept for a month.
func (s *TokenStore) List(ctx context.Context) ([]Token, error) {
	if err := s.Flush(ctx); err != nil {
		return nil, err
	}
	all, err := s.read(ctx, "ORDER BY created_at_ms DESC, id")
	tokens := make([]Token, 0, len(all))
	for i := range all {
		tokens = append(tokens, all[i].token)
	}
	return tokens, err
}

// Accounts returns the accounts of active tokens.
func (s *TokenStore) Accounts(ctx context.Context) (accounts []string, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT DISTINCT account FROM gateway_tokens WHERE ifnull(revoked_at_ms, expires_at_ms) > ?1 AND expires_at_ms > ?1 ORDER BY account", s.now().UnixMilli())
	if err != nil {
		return nil, s.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var account string
		if err := rows.Scan(&account); err != nil {
			return nil, s.db.Explain(err)
		}
		accounts = append(accounts, account)
	}
	return accounts, s.db.Explain(rows.Err())
}

func (s *TokenStore) read(ctx context.Context, where string, args ...any) (all []storedToken, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, hash, name, scope, account, quota, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms
		FROM gateway_tokens `+where, args...)
	if err != nil {
		return nil, s.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		k, err := scan(rows)
		if err != nil {
			return nil, s.db.Explain(err)
		}
		all = append(all, k)
	}
	return all, s.db.Explain(rows.Err())
}

func scan(rows *sql.Rows) (k storedToken, err error) {
	var sum []byte
	var quota string
	var created, expires int64
	var revoked, used sql.NullInt64
	t := &k.token
	if err := rows.Scan(&t.ID, &sum, &t.Name, &t.Scope, &t.Account, &quota, &created, &expires, &revoked, &used); err != nil {
		return k, err
	}
	if copy(k.hash[:], sum) != sha256.Size {
		return k, errors.New("the hash of a gateway token is damaged")
	}
	t.Created, t.Expires = time.UnixMilli(created), time.UnixMilli(expires)
	t.Revoked, t.LastUsed = timeOf(revoked), timeOf(used)
	return k, json.Unmarshal([]byte(quota), &t.Quota)
}

func timeOf(ms sql.NullInt64) *time.Time {
	if !ms.Valid {
		return nil
	}
	at := time.UnixMilli(ms.Int64)
	return &at
}

// Revoke ends a token at once in this process, and within RevocationDelay in
// others.
func (s *TokenStore) Revoke(ctx context.Context, id string) error {
	result, err := s.db.ExecContext(ctx, "UPDATE gateway_tokens SET revoked_at_ms = min(ifnull(revoked_at_ms, ?1), ?1) WHERE id = ?2", s.now().UnixMilli(), id)
	if err != nil {
		return s.db.Explain(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrUnknown, id))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.Delete(id)
	s.notifyEnded(id)
	return nil
}

// Flush stores when tokens were last used.
func (s *TokenStore) Flush(ctx context.Context) error {
	s.mu.Lock()
	used := s.used
	s.used = map[string]time.Time{}
	s.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return s.db.Tx(ctx, func(tx *sql.Tx) error {
		for id, at := range used {
			if _, err := tx.ExecContext(ctx, "UPDATE gateway_tokens SET last_used_at_ms = max(ifnull(last_used_at_ms, 0), ?) WHERE id = ?", at.UnixMilli(), id); err != nil {
				return err
			}
		}
		return nil
	})
}
