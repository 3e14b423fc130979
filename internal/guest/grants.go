package guest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/wire"
)

// grants holds the open grants and the marks of the execs that were started under
// each. The host decides what a grant allows; here it is a name that execs share, so
// that they can be told from others and ended together.
type grants struct {
	lineage *proc.Lineage
	walker  *proc.Walker

	opening sync.Mutex // held while a grant is opened
	mu      sync.Mutex
	open    map[string]*openGrant // by id
}

// openGrant is one grant and the execs that were started under it.
type openGrant struct {
	id       string
	closing  sync.Mutex     // held while its processes are ended
	ending   bool           // no exec is started under it any more
	execs    proc.ExecSet   // its marks
	unused   proc.MarkRange // those of its marks that no exec has yet
	starting sync.WaitGroup // execs that have a mark and no process yet
}

// grantBlock is how many marks a grant takes at a time. One by one, the marks of
// grants that run at the same time would be interleaved, and their sets long lists.
const grantBlock = 256

func newGrants(l *proc.Lineage, w *proc.Walker) *grants {
	return &grants{lineage: l, walker: w, open: map[string]*openGrant{}}
}

// grantOps are the operations on grants.
var grantOps = map[wire.Op]func(*call, *wire.Grant) error{
	wire.OpGrantOpen: (*call).grantOpen,
	wire.OpGrantEnd:  (*call).grantEnd,
}

func (c *call) grantOpen(g *wire.Grant) error {
	if !wire.ValidID(g.ID) || g.GraceMs < 0 {
		return wire.Fail(wire.CodeInvalid, "the grant's id or grace makes no sense")
	}
	if err := c.server.grants.begin(g.ID, g.Shared, graceOrNone(g.GraceMs)); err != nil {
		return err
	}
	return c.result(struct{}{})
}

func (c *call) grantEnd(g *wire.Grant) error {
	if err := c.server.grants.end(g.ID, graceOrNone(g.GraceMs)); err != nil {
		return err
	}
	return c.result(struct{}{})
}

// graceOrNone is a grace that may be 0.
func graceOrNone(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxGrace.Milliseconds())) * time.Millisecond
}

// begin opens a grant: beside others if shared, otherwise once nothing of them is left.
func (gs *grants) begin(id string, shared bool, grace time.Duration) error {
	gs.opening.Lock()
	defer gs.opening.Unlock()
	if gs.isOpen(id) {
		return nil // asked twice
	}
	for _, g := range gs.all() {
		if shared && g.id != id {
			continue
		}
		if err := gs.close(g, grace); err != nil {
			return err
		}
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if len(gs.open) >= wire.MaxGrants {
		return wire.Fail(wire.CodeTooMany, "too many grants are open in this sandbox")
	}
	gs.open[id] = &openGrant{id: id}
	return nil
}

// end ends a grant and every process that was started under it.
func (gs *grants) end(id string, grace time.Duration) error {
	gs.mu.Lock()
	g := gs.open[id]
	gs.mu.Unlock()
	if g == nil {
		return nil
	}
	return gs.close(g, grace)
}

func (gs *grants) isOpen(id string) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.open[id] != nil && !gs.open[id].ending
}

func (gs *grants) all() []*openGrant {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.Collect(maps.Values(gs.open))
}

// close ends the processes of g, and removes it only if none is left.
func (gs *grants) close(g *openGrant, grace time.Duration) error {
	g.closing.Lock()
	defer g.closing.Unlock()
	gs.mu.Lock()
	g.ending = true
	gs.mu.Unlock()
	g.starting.Wait()
	all := gs.walker.Tree(g.execs)
	if len(g.execs) > 0 && !all.End(grace) {
		return wire.Fail(wire.CodeStuck, "some processes of the grant could not be ended")
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.open[g.id] == g {
		delete(gs.open, g.id)
	}
	return nil
}

// mark returns the mark of a new exec under the grant with this id, or under none. The
// caller calls started when the exec has its process, or has failed.
func (gs *grants) mark(id string) (m proc.Mark, started func(), err error) {
	if id == "" {
		return gs.lineage.Next(), func() {}, nil
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.open[id]
	if g == nil || g.ending {
		return 0, nil, wire.Fail(wire.CodeNoGrant, "the grant that the command belongs to is not open")
	}
	g.starting.Add(1)
	return g.next(gs.lineage), g.starting.Done, nil
}

// next takes the next mark of the grant.
func (g *openGrant) next(l *proc.Lineage) proc.Mark {
	if g.unused.First == 0 || g.unused.First > g.unused.Last {
		g.unused = l.Reserve(grantBlock)
		g.execs = g.execs.With(g.unused)
	}
	m := g.unused.First
	g.unused.First++
	return m
}

// byMark returns the id of the grant that the exec with mark m was started under, or "".
func (gs *grants) byMark(m proc.Mark) string {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for id, g := range gs.open {
		if !g.ending && g.execs.MayContain(m, m) {
			return id
		}
	}
	return ""
}

// none reports whether no grant is open.
func (gs *grants) none() bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return len(gs.open) == 0
}
