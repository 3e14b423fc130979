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
	buckets map[Subject]*bucket
	dropped int64
	since   time.Time
}

type bucket struct {
	left float64
	at   time.Time
}

const maxBuckets = 1024

func newRateLimiter(rate float64, burst int) *rateLimiter {
	return &rateLimiter{rate: rate, burst: float64(burst), buckets: map[Subject]*bucket{}}
}

func (p *rateLimiter) allow(s Subject, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.bucket(Subject{Account: s.Account, Agent: s.Agent, Session: s.Session, Run: s.Run}, now)
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

func (p *rateLimiter) bucket(s Subject, now time.Time) *bucket {
	if b := p.buckets[s]; b != nil {
		return b
	}
	if len(p.buckets) >= maxBuckets {
		p.dropFull(now)
	}
	if len(p.buckets) >= maxBuckets {
		s = Subject{}
		if b := p.buckets[s]; b != nil {
			return b
		}
	}
	b := &bucket{left: p.burst, at: now}
	p.buckets[s] = b
	return b
}

// dropFull removes the buckets that are full again.
func (p *rateLimiter) dropFull(now time.Time) {
	for s, b := range p.buckets {
		if b.left+p.rate*now.Sub(b.at).Seconds() >= p.burst {
			delete(p.buckets, s)
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
