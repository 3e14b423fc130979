package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/model/usage"
)

// Spending returns what was spent; *usage.Ledger implements it.
type Spending interface {
	Spent(ctx context.Context, scope usage.Scope, key string) (usage.Charge, error)
}

// LimiterOptions configure a Limiter.
type LimiterOptions struct {
	Spending  Spending                                               // nil if no money is counted
	Sandboxes func(ctx context.Context, account string) (int, error) // number of live sandboxes; nil counts none
	Defaults  Quota                                                  // for tokens without a quota
	Now       func() time.Time                                       // nil is time.Now
}

// Limiter bounds the requests, runs, sandboxes and spending of each token.
type Limiter struct {
	options LimiterOptions

	mu       sync.Mutex
	defaults Quota
	buckets  map[string]*bucket
	runs     map[string]int
}

// bucket is a token bucket that holds at most one minute of requests.
type bucket struct {
	left float64
	at   time.Time
}

const (
	// DefaultRequests is the number of requests a minute for a token without a quota.
	DefaultRequests = 6000
	// DefaultRuns is the number of concurrent runs and tasks for a token without a
	// quota.
	DefaultRuns = 1000
	maxBuckets  = maxTokens
)

// NewLimiter returns a limiter with empty counters.
func NewLimiter(o LimiterOptions) *Limiter {
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{options: o, buckets: map[string]*bucket{}, runs: map[string]int{}}
	l.SetDefaults(o.Defaults)
	return l
}

// SetDefaults replaces the quota of tokens that have none; 0 is the built-in
// number.
func (l *Limiter) SetDefaults(q Quota) {
	if q.Requests == 0 {
		q.Requests = DefaultRequests
	}
	if q.Runs == 0 {
		q.Runs = DefaultRuns
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.defaults = q
}

// Quota returns the caller's quota, completed by the defaults.
func (l *Limiter) Quota(c *Caller) Quota {
	q := c.Quota
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Requests == 0 {
		q.Requests = l.defaults.Requests
	}
	if q.Runs == 0 {
		q.Runs = l.defaults.Runs
	}
	if q.Sandboxes == 0 {
		q.Sandboxes = l.defaults.Sandboxes
	}
	if q.MicroUSD == 0 && c.Account != "" {
		q.MicroUSD = l.defaults.MicroUSD
	}
	return q
}

// Admit counts a request, and returns ErrTooMany above the rate of the token.
func (l *Limiter) Admit(c *Caller) error {
	perMinute := float64(l.Quota(c).Requests)
	now := l.options.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[c.Token]
	if b == nil {
		l.evict(now)
		b = &bucket{left: perMinute, at: now}
		l.buckets[c.Token] = b
	}
	if passed := now.Sub(b.at); passed > 0 {
		b.left += passed.Minutes() * perMinute
	}
	b.left, b.at = min(b.left, perMinute), now
	if b.left < 1 {
		return fmt.Errorf("%w: this token may make %.0f a minute", ErrTooMany, perMinute)
	}
	b.left--
	return nil
}

// evict removes buckets that are full again. The caller holds the lock.
func (l *Limiter) evict(now time.Time) {
	if len(l.buckets) < maxBuckets {
		return
	}
	for id, b := range l.buckets {
		if now.Sub(b.at) >= time.Minute {
			delete(l.buckets, id)
		}
	}
	for id := range l.buckets { // bounded: every id is that of a verified token
		if len(l.buckets) < maxBuckets*3/4 {
			return
		}
		delete(l.buckets, id)
	}
}

// Begin counts a run or a task as under way until end is called, which may be
// called more than once. It returns ErrQuota if the token has too many, or its
// account has used up the day's money.
func (l *Limiter) Begin(ctx context.Context, c *Caller) (end func(), err error) {
	q := l.Quota(c)
	if err := l.checkSpending(ctx, c, q.MicroUSD); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.runs[c.Token]; n >= q.Runs {
		return nil, fmt.Errorf("%w: %d of %d runs are under way", ErrQuota, n, q.Runs)
	}
	l.runs[c.Token]++
	return sync.OnceFunc(func() { l.finish(c.Token) }), nil
}

func (l *Limiter) finish(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[token]--; l.runs[token] <= 0 {
		delete(l.runs, token)
	}
}

// checkSpending returns ErrQuota if the account has used up the day's money. Calls
// under way are bounded by the model proxy, by the same number.
func (l *Limiter) checkSpending(ctx context.Context, c *Caller, microUSD int64) error {
	if microUSD == 0 || l.options.Spending == nil {
		return nil
	}
	spent, err := l.options.Spending.Spent(ctx, usage.ScopeDay, usage.Day(c.Account, l.options.Now()))
	if err != nil {
		return err
	}
	if spent.MicroUSD >= microUSD {
		return fmt.Errorf("%w: %s of %s are spent today", ErrQuota, usage.Dollars(spent.MicroUSD), usage.Dollars(microUSD))
	}
	return nil
}

// CheckSandboxes returns ErrQuota if the caller's account may have no more
// sandboxes. It is called before a sandbox is created.
func (l *Limiter) CheckSandboxes(ctx context.Context, c *Caller) error {
	most := l.Quota(c).Sandboxes
	if most == 0 || l.options.Sandboxes == nil {
		return nil
	}
	alive, err := l.options.Sandboxes(ctx, c.Account)
	if err != nil {
		return err
	}
	if alive >= most {
		return fmt.Errorf("%w: %d of %d sandboxes are alive", ErrQuota, alive, most)
	}
	return nil
}
