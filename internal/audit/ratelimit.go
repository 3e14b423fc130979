package audit

import (
	"sync"
	"time"
)

// rateLimiter is a token bucket for each subject, and counts what it drops. Beyond
// maxBuckets all new subjects share one bucket: a caller may invent them.
type rateLimiter struct {
	mu      sync.Mutex
	rate    float64
	burst   float64
	buckets map[bucketKey]*bucket
	dropped int64
	since   time.Time
}

// bucketKey is what has a bucket of its own.
type bucketKey struct {
	kind                         Kind
	account, agent, session, run string
}

type bucket struct {
	left float64
	at   time.Time
}

const maxBuckets = 1024

func newRateLimiter(rate float64, burst int) *rateLimiter {
	return &rateLimiter{rate: rate, burst: float64(burst), buckets: map[bucketKey]*bucket{}}
}

func (p *rateLimiter) allow(kind Kind, s *Subject, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.bucket(bucketKey{kind, s.Account, s.Agent, s.Session, s.Run}, now)
	b.left = min(p.burst, b.left+p.rate*max(now.Sub(b.at).Seconds(), 0))
	b.at = now
	if b.left >= 1 {
		b.left--
		return true
	}
	if p.dropped == 0 {
		p.since = now
	}
	p.dropped++
	return false
}

func (p *rateLimiter) bucket(key bucketKey, now time.Time) *bucket {
	if b := p.buckets[key]; b != nil {
		return b
	}
	if len(p.buckets) >= maxBuckets {
		p.dropFull(now)
	}
	if len(p.buckets) >= maxBuckets {
		key = bucketKey{kind: key.kind}
		if b := p.buckets[key]; b != nil {
			return b
		}
	}
	b := &bucket{left: p.burst, at: now}
	p.buckets[key] = b
	return b
}

// dropFull removes the buckets that are full again.
func (p *rateLimiter) dropFull(now time.Time) {
	for key, b := range p.buckets {
		if b.left+p.rate*now.Sub(b.at).Seconds() >= p.burst {
			delete(p.buckets, key)
		}
	}
}

// takeDropped returns how many were dropped since it was last asked.
func (p *rateLimiter) takeDropped() (n int64, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, since, p.dropped = p.dropped, p.since, 0
	return n, since
}
