package host

import (
	"context"
	"sync"

	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tool"
)

// background is the egress of the commands in one sandbox that live on after the call of
// the tool that started them. It is open from the first of them until the last has ended
// and no agent works there, and ends them with this process at the latest.
type background struct {
	host    *Host
	key     string
	machine *machine.Machine
	open    func(context.Context) (*egress.Egress, error)
	users   int // agents at work and commands that run; guarded by mu of backgrounds

	mu     sync.Mutex
	egress *egress.Egress // nil: not open
}

// backgrounds are those of a host.
type backgrounds struct {
	mu    sync.Mutex
	byKey map[string]*background
	waits sync.WaitGroup  // for commands
	ctx   context.Context // ends with the host
	stop  context.CancelFunc
}

// useBackground returns the background of a sandbox that an agent works in. The caller
// calls leave.
func (h *Host) useBackground(key string, m *machine.Machine, open func(context.Context) (*egress.Egress, error)) *background {
	h.backgrounds.mu.Lock()
	defer h.backgrounds.mu.Unlock()
	b := h.backgrounds.byKey[key]
	if b == nil || b.machine != m || b.isOver() {
		b = &background{host: h, key: key, machine: m, open: open}
		if h.backgrounds.byKey == nil {
			h.backgrounds.byKey = map[string]*background{}
		}
		h.backgrounds.byKey[key] = b
	}
	b.users++
	return b
}

// isOver reports whether its grant has ended.
func (b *background) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.egress != nil && b.egress.Err() != nil
}

// Open implements tool.Background.
func (b *background) Open(ctx context.Context) (tool.Egress, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.egress != nil {
		return b.egress, nil
	}
	e, err := b.open(ctx)
	if err != nil || e == nil {
		return nil, err
	}
	b.egress = e
	return e, nil
}

// Started implements tool.Background.
func (b *background) Started(id string) {
	all := &b.host.backgrounds
	all.mu.Lock()
	defer all.mu.Unlock()
	b.users++
	all.waits.Go(func() {
		_, _ = b.machine.Wait(all.ctx, id) // an error is a sandbox that is gone
		b.leave()
	})
}

// Denials implements tool.Background.
func (b *background) Denials(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.egress.Denials(id)
}

// leave undoes one use. The last one closes it.
func (b *background) leave() {
	all := &b.host.backgrounds
	all.mu.Lock()
	b.users--
	last := b.users == 0
	if last && all.byKey[b.key] == b {
		delete(all.byKey, b.key)
	}
	all.mu.Unlock()
	if !last {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.egress.Close(); err != nil {
		b.host.Logger.Warn("egress of commands in the background", "error", err)
	}
}

// Close ends the commands in the background that have egress, which ends with this
// process.
func (h *Host) Close() {
	h.backgrounds.stop()
	h.backgrounds.waits.Wait()
}
