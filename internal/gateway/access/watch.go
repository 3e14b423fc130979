package access

import (
	"context"
	"time"
)

// Connections outlive the request that authenticated them, so they watch their
// token.

// watchEvery is the interval at which tokens that another process ended are looked
// up; it keeps the delay below a second.
const (
	watchEvery = 500 * time.Millisecond
	flushEvery = 20 // intervals
)

type watcher struct{ ended chan struct{} }

// Watch returns a channel that is closed when a caller's token is revoked, expires
// or leaves the configuration. stop ends the watch. Maintain has to run.
func (s *TokenStore) Watch(c *Caller) (ended <-chan struct{}, stop func()) {
	w := &watcher{make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers[c.Token] == nil {
		s.watchers[c.Token] = map[*watcher]struct{}{}
	}
	s.watchers[c.Token][w] = struct{}{}
	return w.ended, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers[c.Token], w)
		if len(s.watchers[c.Token]) == 0 {
			delete(s.watchers, c.Token)
		}
	}
}

// UntilEnded returns a context that ends with a caller's token. stop ends the watch.
func (s *TokenStore) UntilEnded(ctx context.Context, c *Caller) (until context.Context, stop func()) {
	until, cancel := context.WithCancelCause(ctx)
	ended, release := s.Watch(c)
	go func() {
		select {
		case <-ended:
			cancel(ErrDenied)
		case <-until.Done():
		}
	}()
	return until, func() { release(); cancel(context.Canceled) }
}

// webEvery is how often the web logins of open connections are looked up: another
// process may end them, and time does.
const webEvery = 5 * time.Second

// UntilEnded returns a context that ends with a caller's token, and with its web login if
// it has one. stop ends the watch.
func (a *Access) UntilEnded(ctx context.Context, c *Caller) (until context.Context, stop func()) {
	ctx, release := a.Tokens.UntilEnded(ctx, c)
	if c.WebLogin == "" || a.Web == nil {
		return ctx, release
	}
	until, cancel := context.WithCancelCause(ctx)
	ended, forget := a.Web.watch(c.WebLogin)
	go func() {
		for a.Web.lasts(until, c.WebLogin) {
			select {
			case <-until.Done():
				return
			case <-ended:
				cancel(ErrDenied)
				return
			case <-time.After(webEvery):
			}
		}
		cancel(ErrDenied)
	}()
	return until, func() { cancel(context.Canceled); forget(); release() }
}

// watch returns a channel that is closed when this process ends a web login. stop ends
// the watch.
func (w *WebLogins) watch(id string) (ended <-chan struct{}, stop func()) {
	one := &watcher{make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchers[id] == nil {
		w.watchers[id] = map[*watcher]struct{}{}
	}
	w.watchers[id][one] = struct{}{}
	return one.ended, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers[id], one)
		if len(w.watchers[id]) == 0 {
			delete(w.watchers, id)
		}
	}
}

// notifyEnded closes the channels of a web login's watchers.
func (w *WebLogins) notifyEnded(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.watchers[id] {
		close(one.ended)
	}
	delete(w.watchers, id)
}

// notifyEnded closes the channels of a token's watchers. The caller holds the lock.
func (s *TokenStore) notifyEnded(id string) {
	for w := range s.watchers[id] {
		close(w.ended)
	}
	delete(s.watchers, id)
}

// Maintain notifies watchers of tokens that ended, and stores when tokens were last
// used, until the context ends.
func (s *TokenStore) Maintain(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			s.logError(ctx, s.Flush(context.WithoutCancel(ctx)))
			return
		case <-tick.C:
		}
		s.logError(ctx, s.endInactive(ctx))
		if n%flushEvery == 0 {
			s.logError(ctx, s.Flush(ctx))
		}
	}
}

func (s *TokenStore) logError(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.logger.ErrorContext(ctx, "gateway tokens", "error", err)
	}
}

// endInactive notifies the watchers of tokens that are no longer active.
func (s *TokenStore) endInactive(ctx context.Context) error {
	watched := s.watched()
	if len(watched) == 0 {
		return nil
	}
	active, err := s.active(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range watched {
		if !active[id] {
			s.recent.Delete(id)
			s.notifyEnded(id)
		}
	}
	return nil
}

// watched returns the ids of stored tokens that have watchers. Fixed tokens and the
// owner's socket are not in the database.
func (s *TokenStore) watched() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.watchers {
		if len(id) == idWidth && isText(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *TokenStore) active(ctx context.Context) (map[string]bool, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM gateway_tokens WHERE ifnull(revoked_at_ms, expires_at_ms) > ?1 AND expires_at_ms > ?1", s.now().UnixMilli())
	if err != nil {
		return nil, s.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	active := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, s.db.Explain(err)
		}
		active[id] = true
	}
	return active, s.db.Explain(rows.Err())
}
