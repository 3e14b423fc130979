package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
)

// WebLogin is a web browser that is logged in to the gateway's pages. It acts for the
// token that it logged in with and ends with it. A cookie and a secret of the page
// authenticate it together: cookies of one address are sent to all its ports, so a
// cookie alone must open nothing.
type WebLogin struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"` // of the token
	Scope    Scope     `json:"scope"`
	Account  string    `json:"account,omitempty"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
	Expires  time.Time `json:"expires"`

	token string // that it acts for: its id, the epoch of a fixed one, or the owner's socket
}

// WebSecrets authenticate a web login together. They are returned once and not stored.
type WebSecrets struct{ Cookie, Page secret.Value }

// The bounds of web logins.
const (
	WebLoginLife = 12 * time.Hour
	WebLoginIdle = time.Hour
	maxWebLogins = 1000
	// touchEvery is how often the time of the last use is stored.
	touchEvery = time.Minute
)

// ErrUnknownWebLogin is returned for an id that no web login has.
var ErrUnknownWebLogin = errors.New("no web login has this id")

// WebLogins stores web logins and the codes that open them.
type WebLogins struct {
	db     *store.DB
	tokens *TokenStore
	now    func() time.Time
	codes  *codes

	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{} // by the id of the web login
}

// NewWebLogins returns the web logins in a token store's database.
func NewWebLogins(s *TokenStore) *WebLogins {
	return &WebLogins{db: s.db, tokens: s, now: s.now, codes: newCodes(s.now), watchers: map[string]map[*watcher]struct{}{}}
}

// begin stores a web login of a caller whose token is named by parent.
func (w *WebLogins) begin(ctx context.Context, c *Caller, parent string) (*WebLogin, *WebSecrets, error) {
	id, proof, cookie := mint("")
	_, page, _ := mint("")
	now := w.now().Truncate(time.Millisecond)
	l := &WebLogin{ID: id, Name: c.Name, Scope: c.Scope, Account: c.Account, Created: now, LastUsed: now, token: parent}
	l.Expires = l.end()
	err := w.db.Tx(ctx, func(tx *sql.Tx) error { return insertWebLogin(ctx, tx, l, hash(id, proof), hash(id, page)) })
	return l, &WebSecrets{Cookie: secret.New(cookie), Page: secret.New(page)}, err
}

// insertWebLogin stores a web login in place of those that ended, and of the one that
// was used least recently where there are too many.
func insertWebLogin(ctx context.Context, tx *sql.Tx, l *WebLogin, cookie, page [sha256.Size]byte) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM gateway_web_logins WHERE created_at_ms < ? OR last_used_at_ms < ?", l.Created.Add(-WebLoginLife).UnixMilli(), l.Created.Add(-WebLoginIdle).UnixMilli())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM gateway_web_logins WHERE id IN (SELECT id FROM gateway_web_logins ORDER BY last_used_at_ms DESC, id LIMIT -1 OFFSET ?)", maxWebLogins-1)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO gateway_web_logins (id, cookie_hash, page_hash, token, name, scope, account, created_at_ms, last_used_at_ms) VALUES (?,?,?,?,?,?,?,?,?)",
		l.ID, cookie[:], page[:], l.token, l.Name, string(l.Scope), l.Account, l.Created.UnixMilli(), l.LastUsed.UnixMilli())
	return err
}

// end is when a web login ends if it is not used again.
func (l *WebLogin) end() time.Time {
	whole, idle := l.Created.Add(WebLoginLife), l.LastUsed.Add(WebLoginIdle)
	if idle.Before(whole) {
		return idle
	}
	return whole
}

// Verify returns the caller of a web login by its cookie and its page's secret. Every
// refusal is ErrDenied.
func (w *WebLogins) Verify(ctx context.Context, cookie, page string) (*Caller, error) {
	l, err := w.find(ctx, cookie, page)
	if err != nil {
		return nil, err
	}
	c, err := w.tokens.callerOf(ctx, l.token)
	if err != nil {
		return nil, err
	}
	c.WebLogin = l.ID
	return c, w.touch(ctx, l)
}

// find returns the web login of a cookie and a page's secret that has not ended.
func (w *WebLogins) find(ctx context.Context, cookie, page string) (*WebLogin, error) {
	id, proof, ok := split("", cookie)
	if !ok || len(page) != secretWidth {
		return nil, ErrDenied
	}
	all, hashes, err := w.read(ctx, "WHERE id = ?", id)
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, deniedUnless(err))
	}
	first, second := hash(id, proof), hash(id, page)
	same := subtle.ConstantTimeCompare(first[:], hashes[0].cookie) & subtle.ConstantTimeCompare(second[:], hashes[0].page)
	if same != 1 || !w.now().Before(all[0].Expires) {
		return nil, ErrDenied
	}
	return &all[0], nil
}

// deniedUnless returns ErrDenied if there is no other error.
func deniedUnless(err error) error {
	if err == nil {
		return ErrDenied
	}
	return nil
}

// touch stores that a web login was used.
func (w *WebLogins) touch(ctx context.Context, l *WebLogin) error {
	now := w.now()
	if now.Sub(l.LastUsed) < touchEvery {
		return nil
	}
	_, err := w.db.ExecContext(ctx, "UPDATE gateway_web_logins SET last_used_at_ms = max(last_used_at_ms, ?) WHERE id = ?", now.UnixMilli(), l.ID)
	return w.db.Explain(err)
}

// lasts reports whether a web login has not ended, and notes that it is used. One that
// cannot be looked up now lasts.
func (w *WebLogins) lasts(ctx context.Context, id string) bool {
	all, _, err := w.read(ctx, "WHERE id = ?", id)
	if err != nil {
		return true
	}
	if len(all) == 0 || !w.now().Before(all[0].Expires) {
		return false
	}
	_ = w.touch(ctx, &all[0]) // the next look tries again
	return true
}

// List returns the web logins that have not ended, those used last first.
func (w *WebLogins) List(ctx context.Context) ([]WebLogin, error) {
	now := w.now()
	all, _, err := w.read(ctx, "WHERE created_at_ms > ? AND last_used_at_ms > ? ORDER BY last_used_at_ms DESC, id", now.Add(-WebLoginLife).UnixMilli(), now.Add(-WebLoginIdle).UnixMilli())
	return all, err
}

// End ends a web login.
func (w *WebLogins) End(ctx context.Context, id string) error {
	result, err := w.db.ExecContext(ctx, "DELETE FROM gateway_web_logins WHERE id = ?", id)
	if err != nil {
		return w.db.Explain(err)
	}
	w.notifyEnded(id)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, fmt.Errorf("%w: %.80s", ErrUnknownWebLogin, id))
	}
	return nil
}

// webHashes are the stored hashes of a web login.
type webHashes struct{ cookie, page []byte }

func (w *WebLogins) read(ctx context.Context, where string, args ...any) (all []WebLogin, hashes []webHashes, err error) {
	rows, err := w.db.QueryContext(ctx, "SELECT id, cookie_hash, page_hash, token, name, scope, account, created_at_ms, last_used_at_ms FROM gateway_web_logins "+where, args...)
	if err != nil {
		return nil, nil, w.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var l WebLogin
		var h webHashes
		var created, used int64
		if err := rows.Scan(&l.ID, &h.cookie, &h.page, &l.token, &l.Name, &l.Scope, &l.Account, &created, &used); err != nil {
			return nil, nil, w.db.Explain(err)
		}
		l.Created, l.LastUsed = time.UnixMilli(created), time.UnixMilli(used)
		l.Expires = l.end()
		all, hashes = append(all, l), append(hashes, h)
	}
	return all, hashes, w.db.Explain(rows.Err())
}
