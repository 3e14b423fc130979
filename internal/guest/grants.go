package guest

import (
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/wire"
)

// grants knows the grant that is open, and what was started under it. The host
// decides what a grant is worth; here it is a name that execs share, so that
// they can be told from others and ended together.
type grants struct {
	lineage *proc.Lineage
	walker  *proc.Walker

	turn sync.Mutex // held while a grant is opened or ended
	mu   sync.Mutex
	open *openGrant // nil: none
}

// openGrant is all that was started under one grant.
type openGrant struct {
	id       string
	ending   bool
	execs    proc.ExecSet   // its marks
	unused   proc.MarkRange // those among them that no exec has yet
	starting sync.WaitGroup
}

// grantBlock is how many marks a grant takes at a time. One by one, those of a
// long run would be scattered among others', and its kin a list without end.
const grantBlock = 256

// grantOps are the operations on grants.
var grantOps = map[wire.Op]func(*call, *wire.Grant) error{
	wire.OpGrantOpen: (*call).grantOpen,
	wire.OpGrantEnd:  (*call).grantEnd,
}

func (c *call) grantOpen(g *wire.Grant) error {
	if !wire.ValidID(g.ID) || g.GraceMs < 0 {
		return wire.Fail(wire.CodeInvalid, "the grant's id or grace makes no sense")
	}
	if err := c.server.grants.begin(g.ID, graceOrNone(g.GraceMs)); err != nil {
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

// graceOrNone is a grace that may be none.
func graceOrNone(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxGrace.Milliseconds())) * time.Millisecond
}

// begin opens a grant when nothing of another is left.
func (gs *grants) begin(id string, grace time.Duration) error {
	gs.turn.Lock()
	defer gs.turn.Unlock()
	old := gs.present()
	if old != nil && old.id == id && !old.ending {
		return nil // asked twice
	}
	if old != nil {
		if err := gs.endProcesses(old, grace); err != nil {
			return err
		}
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.open = &openGrant{id: id}
	return nil
}

// end ends a grant and everything that was started under it.
func (gs *grants) end(id string, grace time.Duration) error {
	gs.turn.Lock()
	defer gs.turn.Unlock()
	if old := gs.present(); old != nil && old.id == id {
		return gs.endProcesses(old, grace)
	}
	return nil
}

func (gs *grants) present() *openGrant {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.open
}

// endProcesses ends everything of g, and forgets it only if nothing is left.
func (gs *grants) endProcesses(g *openGrant, grace time.Duration) error {
	gs.mu.Lock()
	g.ending = true // nothing more is started under it
	gs.mu.Unlock()
	g.starting.Wait()
	all := gs.walker.Tree(g.execs)
	if len(g.execs) > 0 && !all.End(grace) {
		return wire.Fail(wire.CodeStuck, "some processes of the grant could not be ended")
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.open = nil
	return nil
}

// mark gives an exec its number, under the grant with this id, or under none.
// The caller says when the exec has its process, or has failed.
func (gs *grants) mark(id string) (m proc.Mark, started func(), err error) {
	if id == "" {
		return gs.lineage.Next(), func() {}, nil
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.open
	if g == nil || g.id != id || g.ending {
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

// byMark reports whether mark m was given to an exec under an open grant, and
// returns the grant's id.
func (gs *grants) byMark(m proc.Mark) (id string, ok bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.open == nil || gs.open.ending || !gs.open.execs.MayContain(m, m) {
		return "", false
	}
	return gs.open.id, true
}
