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
func (d *TokenStore) Watch(c *Caller) (ended <-chan struct{}, stop func()) {
	w := &watcher{make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watchers[c.Token] == nil {
		d.watchers[c.Token] = map[*watcher]struct{}{}
	}
	d.watchers[c.Token][w] = struct{}{}
	return w.ended, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers[c.Token], w)
		if len(d.watchers[c.Token]) == 0 {
			delete(d.watchers, c.Token)
		}
	}
}

// notifyEnded closes the channels of a token's watchers. The caller holds the lock.
func (d *TokenStore) notifyEnded(id string) {
	for w := range d.watchers[id] {
		close(w.ended)
	}
	delete(d.watchers, id)
}

// Maintain notifies watchers of tokens that ended, and stores when tokens were last
// used, until the context ends.
func (d *TokenStore) Maintain(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			d.logError(ctx, d.Flush(context.WithoutCancel(ctx)))
			return
		case <-tick.C:
		}
		d.logError(ctx, d.endInactive(ctx))
		if n%flushEvery == 0 {
			d.logError(ctx, d.Flush(ctx))
		}
	}
}

func (d *TokenStore) logError(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		d.logger.ErrorContext(ctx, "gateway tokens", "error", err)
	}
}

// endInactive notifies the watchers of tokens that are no longer active.
func (d *TokenStore) endInactive(ctx context.Context) error {
	watched := d.watched()
	if len(watched) == 0 {
		return nil
	}
	active, err := d.active(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range watched {
		if !active[id] {
			d.recent.Forget(id)
			d.notifyEnded(id)
		}
	}
	return nil
}

// watched returns the ids of stored tokens that have watchers. Fixed tokens and the
// owner's socket are not in the database.
func (d *TokenStore) watched() (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.watchers {
		if len(id) == idWidth && isText(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d *TokenStore) active(ctx context.Context) (map[string]bool, error) {
	rows, err := d.db.QueryContext(ctx, "SELECT id FROM gateway_tokens WHERE ifnull(revoked_at_ms, expires_at_ms) > ?1 AND expires_at_ms > ?1", d.now().UnixMilli())
	if err != nil {
		return nil, d.db.Explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	active := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, d.db.Explain(err)
		}
		active[id] = true
	}
	return active, d.db.Explain(rows.Err())
}
