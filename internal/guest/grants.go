package guest

import (
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// grants knows the grant that is open, and what was started under it. The host
// decides what a grant is worth; here it is a name that execs share, so that
// they can be told from others and ended together.
type grants struct {
	lineage *lineage
	warden  *warden

	turn sync.Mutex // held while a grant is opened or ended
	mu   sync.Mutex
	open *grantee // nil: none
}

// grantee is all that was started under one grant.
type grantee struct {
	id       string
	ending   bool
	kin      kin   // its marks
	spare    block // those among them that no exec has yet
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
	if err := c.server.grants.begin(g.ID, patienceOf(g.GraceMs)); err != nil {
		return err
	}
	return c.result(struct{}{})
}

func (c *call) grantEnd(g *wire.Grant) error {
	if err := c.server.grants.end(g.ID, patienceOf(g.GraceMs)); err != nil {
		return err
	}
	return c.result(struct{}{})
}

// patienceOf is a grace that may be none.
func patienceOf(ms int64) time.Duration {
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
		if err := gs.clear(old, grace); err != nil {
			return err
		}
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.open = &grantee{id: id}
	return nil
}

// end ends a grant and everything that was started under it.
func (gs *grants) end(id string, grace time.Duration) error {
	gs.turn.Lock()
	defer gs.turn.Unlock()
	if old := gs.present(); old != nil && old.id == id {
		return gs.clear(old, grace)
	}
	return nil
}

func (gs *grants) present() *grantee {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.open
}

// clear ends everything of g, and forgets it only if nothing is left.
func (gs *grants) clear(g *grantee, grace time.Duration) error {
	gs.mu.Lock()
	g.ending = true // nothing more is started under it
	gs.mu.Unlock()
	g.starting.Wait()
	all := tree{kin: g.kin, warden: gs.warden}
	if len(g.kin) > 0 && !all.end(grace) {
		return wire.Fail(wire.CodeStuck, "some processes of the grant could not be ended")
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.open = nil
	return nil
}

// mark gives an exec its number, under the grant with this id, or under none.
// The caller says when the exec has its process, or has failed.
func (gs *grants) mark(id string) (m mark, started func(), err error) {
	if id == "" {
		return gs.lineage.next(), func() {}, nil
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
func (g *grantee) next(l *lineage) mark {
	if g.spare.first == 0 || g.spare.first > g.spare.last {
		g.spare = l.reserve(grantBlock)
		g.kin = g.kin.with(g.spare)
	}
	m := g.spare.first
	g.spare.first++
	return m
}

// holds reports whether mark m was given to an exec under an open grant, and
// returns the grant's id.
func (gs *grants) holds(m mark) (id string, ok bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.open == nil || gs.open.ending || !gs.open.kin.may(m, m) {
		return "", false
	}
	return gs.open.id, true
}
