package monitor

import (
	"context"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// sampleAge is how old a measurement may be: all callers share one.
	sampleAge = 900 * time.Millisecond
	// memoryStep is what memory is rounded to, so that what is idle does not change.
	memoryStep = 64 << 10
	// mostMeasured bounds the sandboxes that are measured.
	mostMeasured = 1000
)

// Sampler measures running sandboxes, once for all who ask within a second.
type Sampler struct {
	manager *sandbox.Manager
	all     *sandbox.Listing

	mu     sync.Mutex
	listed time.Time
	at     time.Time
	boxes  map[string]*measured
	last   []rest.SandboxUse
}

// measured is a sandbox that is measured.
type measured struct {
	account string
	from    sandbox.Measurer
	cpu     uint64 // nanoseconds, at the time at
	at      time.Time
}

// NewSampler returns a sampler of the sandboxes of a manager.
func NewSampler(m *sandbox.Manager, all *sandbox.Listing) *Sampler {
	return &Sampler{manager: m, all: all, boxes: map[string]*measured{}}
}

// Usage returns what running sandboxes use.
func (s *Sampler) Usage(ctx context.Context) ([]rest.SandboxUse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < sampleAge {
		return s.last, nil
	}
	if time.Since(s.listed) > listAge {
		if err := s.list(ctx); err != nil {
			return nil, err
		}
	}
	s.last, s.at = nil, time.Now()
	for name, box := range s.boxes {
		use, ok := box.measure(ctx)
		if !ok {
			delete(s.boxes, name) // it ended, or another has its name: list finds that
			continue
		}
		s.last = append(s.last, rest.SandboxUse{Name: name, Account: box.account, SandboxUsage: use})
	}
	return s.last, nil
}

// list finds the sandboxes that run; what is known of a measured one stays.
func (s *Sampler) list(ctx context.Context) error {
	all, err := s.all.Within(ctx, listAge+time.Second) // a list of sandboxes on a page is read every 5 s
	if err != nil {
		return err
	}
	all = all[:min(len(all), mostMeasured)]
	before := s.boxes
	s.boxes, s.listed = map[string]*measured{}, time.Now()
	for i := range all {
		e := &all[i]
		if !e.Running {
			continue
		}
		box := before[e.ContainerName]
		if box == nil {
			from, err := s.manager.Measurer(ctx, e.ContainerName)
			if err != nil {
				continue // it is gone, or cannot be measured
			}
			box = &measured{account: e.Account, from: from}
		}
		s.boxes[e.ContainerName] = box
	}
	return nil
}

// measure returns what the sandbox uses; CPU is known from the second time on.
func (m *measured) measure(ctx context.Context) (api.SandboxUsage, bool) {
	used, err := m.from.Usage(ctx)
	if err != nil {
		return api.SandboxUsage{}, false
	}
	now, cpu := time.Now(), 0.0
	if passed := now.Sub(m.at); !m.at.IsZero() && used.CPU > m.cpu && passed > 0 {
		cpu = float64((used.CPU-m.cpu)*1000/uint64(passed)) / 1000
	}
	m.cpu, m.at = used.CPU, now
	return api.SandboxUsage{CPU: cpu, Memory: int64(used.Memory) / memoryStep * memoryStep, Processes: int64(used.Pids)}, true
}
