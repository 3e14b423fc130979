package secret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// How long other keys are preferred to one, and how often sources are read again.
const (
	DefaultCooldown        = 30 * time.Second // after 429
	DefaultRefusedCooldown = 5 * time.Minute  // after 401 or 403, unless the source has a new key
	DefaultReload          = time.Minute
	DefaultPause           = 2 * time.Second // between two readings, however many keys are refused
)

// PoolOptions are the numbers of a Pool; zero is the default.
type PoolOptions struct {
	Rest, RefusedRest, Reload, Pause time.Duration
	Now                              func() time.Time
}

// Pool is several keys for one upstream. It is safe for concurrent use; Pick
// takes no lock.
//
// A key that the upstream refused or throttled goes behind the others for a
// while. It is still used where there is no other: who asked for a model that
// the key may not use, or too often, must not stop all other callers.
type Pool struct {
	options PoolOptions
	sources []Source
	keys    atomic.Pointer[[]*entry]
	breaker breaker

	refused chan struct{} // tells Refresh that the upstream refused a key

	mu sync.Mutex // one reload at a time
}

// entry is one key and its state.
type entry struct {
	value Value
	name  string
	until atomic.Int64 // unix nanoseconds; others go before it until then
}

// Key is a key in use.
type Key struct {
	Value Value
	pool  *Pool
	entry *entry
}

// NewPool reads every source. It fails if none can be read.
func NewPool(ctx context.Context, o PoolOptions, sources ...Source) (*Pool, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Rest = cmp.Or(o.Rest, DefaultCooldown)
	o.RefusedRest = cmp.Or(o.RefusedRest, DefaultRefusedCooldown)
	o.Reload = cmp.Or(o.Reload, DefaultReload)
	o.Pause = cmp.Or(o.Pause, DefaultPause)
	p := &Pool{options: o, sources: sources, refused: make(chan struct{}, 1)}
	return p, p.Reload(ctx)
}

// Replace changes the sources. If none of the new ones can be read, the old ones
// stay.
func (p *Pool) Replace(ctx context.Context, sources ...Source) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.sources
	p.sources = sources
	err := p.read(ctx)
	if err != nil {
		p.sources = before
	}
	return err
}

// Reload reads every source again. A key that is still there keeps its cooldown; a
// source that cannot be read keeps the key it gave before.
func (p *Pool) Reload(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read(ctx)
}

// read is Reload; the lock is held.
func (p *Pool) read(ctx context.Context) error {
	before := map[string]*entry{}
	for _, e := range p.entries() {
		before[e.name] = e
	}
	var now []*entry
	var problems []error
	for i, source := range p.sources {
		name := fmt.Sprintf("%d:%s", i, source.Name())
		value, err := source.Read(ctx)
		old := before[name]
		switch {
		case err == nil && (old == nil || !old.value.Equal(value)):
			now = append(now, &entry{value: value, name: name})
		case old != nil:
			now = append(now, old)
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	if len(now) == 0 {
		return errors.Join(append(problems, errors.New("no key could be read"))...)
	}
	p.keys.Store(&now)
	return nil
}

// Refresh reads the sources again from time to time, and as soon as the upstream
// refuses a key, until the context ends. Errors go to failed, and
// the keys that were there stay in use.
func (p *Pool) Refresh(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(p.options.Reload)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.refused:
		}
		if err := p.Reload(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select { // refusals that a caller provokes must not run key programs without end
		case <-ctx.Done():
		case <-time.After(p.options.Pause):
		}
	}
}

func (p *Pool) entries() []*entry {
	if keys := p.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Pick returns the first key that is not cooling down, else the one whose cooldown
// ends first. The error is ErrFailing.
func (p *Pool) Pick() (Key, error) {
	now := p.options.Now()
	if !p.breaker.allows(now) {
		return Key{}, ErrFailing
	}
	e := p.best(now.UnixNano())
	return Key{e.value, p, e}, nil
}

func (p *Pool) best(now int64) *entry {
	entries := p.entries() // never none: see Reload
	best := entries[0]
	for _, e := range entries {
		until := e.until.Load()
		if until <= now {
			return e
		}
		if until < best.until.Load() {
			best = e
		}
	}
	return best
}

// Values returns every key, for scrubbing answers.
func (p *Pool) Values() []Value {
	var all []Value
	for _, e := range p.entries() {
		all = append(all, e.value)
	}
	return all
}

// Worked notes that the upstream accepted the key.
func (k Key) Worked() {
	k.pool.breaker.answered()
	if k.entry.until.Load() != 0 {
		k.entry.until.Store(0)
	}
}

// Failed notes the status that the upstream answered with, 0 if it did not, and
// reports whether another key may be tried: 401 and 403 may be the key's fault,
// 429 its limit's. Anything else is the upstream's own fault.
func (k Key) Failed(status int) (another bool) {
	now := k.pool.options.Now()
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		k.coolDown(now.Add(k.pool.options.RefusedRest))
		select {
		case k.pool.refused <- struct{}{}:
		default:
		}
	case http.StatusTooManyRequests:
		k.coolDown(now.Add(k.pool.options.Rest))
	default:
		k.pool.breaker.failed(now)
		return false
	}
	return k.pool.best(now.UnixNano()).until.Load() <= now.UnixNano()
}

// coolDown prefers other keys until a time. The upstream is alive: it answered.
func (k Key) coolDown(until time.Time) {
	k.pool.breaker.answered()
	k.entry.until.Store(until.UnixNano())
}
