package secret

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// How long a key rests after a failure, and how often sources are read again.
const (
	DefaultRest        = 30 * time.Second // after 429, or the third failure
	DefaultRefusedRest = 5 * time.Minute  // after 401 or 403, unless the source has a new key
	DefaultReload      = time.Minute
	failuresToRest     = 3
)

// ErrNoKey means that every key of a pool rests.
var ErrNoKey = errors.New("every key is refused or throttled by the upstream")

// PoolOptions are the numbers of a Pool; zero is the default.
type PoolOptions struct {
	Rest, RefusedRest, Reload time.Duration
	Now                       func() time.Time
}

// Pool is several keys for one upstream. It is safe for concurrent use; Pick
// takes no lock while the first key is good.
type Pool struct {
	options PoolOptions
	sources []Source
	keys    atomic.Pointer[[]*entry]

	refused chan struct{} // tells Keep that the upstream refused a key

	mu     sync.Mutex // one reload at a time
	loaded time.Time
}

// entry is one key and how it fares.
type entry struct {
	value    Value
	name     string
	until    atomic.Int64 // unix nanoseconds; it rests until then
	failures atomic.Int32
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
	o.Rest = orDefault(o.Rest, DefaultRest)
	o.RefusedRest = orDefault(o.RefusedRest, DefaultRefusedRest)
	o.Reload = orDefault(o.Reload, DefaultReload)
	p := &Pool{options: o, sources: sources, refused: make(chan struct{}, 1)}
	return p, p.Reload(ctx)
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// Reload reads every source again. A key that is still there keeps its rest; a
// source that cannot be read keeps the key it gave before.
func (p *Pool) Reload(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loaded = p.options.Now()
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

// Keep reads the sources again from time to time, and soon after the upstream
// refused a key, until the context ends. What goes wrong is told to failed: the
// keys that were there stay in use.
func (p *Pool) Keep(ctx context.Context, failed func(error)) {
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
	}
}

func (p *Pool) entries() []*entry {
	if keys := p.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Pick returns the first key that does not rest.
func (p *Pool) Pick() (Key, error) {
	now := p.options.Now().UnixNano()
	for _, e := range p.entries() {
		if e.until.Load() <= now {
			return Key{e.value, p, e}, nil
		}
	}
	return Key{}, ErrNoKey
}

// Values returns every key, for scrubbing answers.
func (p *Pool) Values() []Value {
	var all []Value
	for _, e := range p.entries() {
		all = append(all, e.value)
	}
	return all
}

// Due reports whether the sources should be read again.
func (p *Pool) Due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options.Now().Sub(p.loaded) >= p.options.Reload
}

// Worked tells that the upstream took the key.
func (k Key) Worked() { k.entry.failures.Store(0) }

// Failed tells what status the upstream answered with and reports whether
// another key may be tried: 401 and 403 are the key's fault, 429 its limit's.
// Anything else counts against it only when it repeats.
func (k Key) Failed(status int) (another bool) {
	now := k.pool.options.Now()
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		k.entry.until.Store(now.Add(k.pool.options.RefusedRest).UnixNano())
		select {
		case k.pool.refused <- struct{}{}:
		default:
		}
	case status == http.StatusTooManyRequests:
		k.entry.until.Store(now.Add(k.pool.options.Rest).UnixNano())
	case k.entry.failures.Add(1) >= failuresToRest:
		k.entry.failures.Store(0)
		k.entry.until.Store(now.Add(k.pool.options.Rest).UnixNano())
	}
	_, err := k.pool.Pick()
	return err == nil && k.entry.until.Load() > now.UnixNano()
}
