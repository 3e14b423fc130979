package diff

// The cost of a comparison grows with the number of differences. Beyond these
// limits the part of the texts that is still open becomes one large change.
const (
	maxDepth = 2000     // differences searched from each end of a part
	maxSteps = 32 << 20 // positions visited in all
)

// comparison finds the lines to take out of one text and to put into another.
// Lines are numbers here: equal lines have equal numbers.
//
// It is the linear-space algorithm of Myers ("An O(ND) Difference Algorithm and
// Its Variations", 1986): a path of fewest changes through the grid of both
// texts is searched from both corners at once; where the searches meet, the
// grid is divided in two.
type comparison struct {
	a, b              []int
	deleted, inserted []bool
	ahead, back       []int // how far the searches came, for meet
	steps             int   // still to spend
}

// box is the part of the grid between two corners.
type box struct{ x0, x1, y0, y1 int }

func compare(a, b []int) *comparison {
	depth := min(maxDepth, len(a)+len(b))
	c := &comparison{
		a: a, b: b,
		deleted: make([]bool, len(a)), inserted: make([]bool, len(b)),
		ahead: make([]int, 2*depth+3), back: make([]int, 2*depth+3),
		steps: maxSteps,
	}
	c.within(box{0, len(a), 0, len(b)})
	return c
}

// within marks the changes of one box. Every division halves the number of
// changes, so it nests no deeper than that number's logarithm.
func (c *comparison) within(g box) {
	for g.x0 < g.x1 && g.y0 < g.y1 && c.a[g.x0] == c.b[g.y0] {
		g.x0++
		g.y0++
	}
	for g.x0 < g.x1 && g.y0 < g.y1 && c.a[g.x1-1] == c.b[g.y1-1] {
		g.x1--
		g.y1--
	}
	x, y, ok := 0, 0, false
	if g.x0 < g.x1 && g.y0 < g.y1 {
		x, y, ok = c.meet(g)
	}
	if !ok {
		mark(c.deleted[g.x0:g.x1])
		mark(c.inserted[g.y0:g.y1])
		return
	}
	c.within(box{g.x0, x, g.y0, y})
	c.within(box{x, g.x1, y, g.y1})
}

func mark(flags []bool) {
	for i := range flags {
		flags[i] = true
	}
}

// meet returns a point in the middle of a shortest path through the box, or
// false if the search became too long. Both sides of the box have lines, and
// neither its first nor its last lines are equal.
func (c *comparison) meet(g box) (x, y int, ok bool) {
	width, height := g.x1-g.x0, g.y1-g.y0
	ahead := search{c.ahead, width, height, &c.steps, func(x, y int) bool { return c.a[g.x0+x] == c.b[g.y0+y] }}
	back := search{c.back, width, height, &c.steps, func(x, y int) bool { return c.a[g.x1-1-x] == c.b[g.y1-1-y] }}
	ahead.reset()
	back.reset()
	delta := width - height
	for d := 0; d <= ahead.depth() && c.steps > 0; d++ {
		for k := -d; k <= d && c.steps > 0; k += 2 {
			x := ahead.extend(d, k)
			if delta%2 != 0 && back.meets(d-1, delta-k, x) && ahead.holds(x, x-k) {
				return g.x0 + x, g.y0 + x - k, true
			}
		}
		for k := -d; k <= d && c.steps > 0; k += 2 {
			x := back.extend(d, k)
			if delta%2 == 0 && ahead.meets(d, delta-k, x) && back.holds(x, x-k) {
				return g.x1 - x, g.y1 - x + k, true
			}
		}
	}
	return 0, 0, false
}

// search goes from one corner of a box towards the other. Diagonal k holds the
// points with x-y = k, counted from the corner where the search begins; how far
// it came there is kept at index k+middle.
type search struct {
	reach         []int
	width, height int
	steps         *int
	same          func(x, y int) bool
}

func (s *search) middle() int { return len(s.reach) / 2 }

func (s *search) depth() int { return s.middle() - 1 }

// reset makes the first step onto diagonal 0 come from x = 0.
func (s *search) reset() { s.reach[s.middle()+1] = 0 }

// holds tells whether a point is in the box. Searches run over its edges, which
// does no harm as long as no meeting is declared there.
func (s *search) holds(x, y int) bool {
	return x <= s.width && y >= 0 && y <= s.height
}

// extend takes the d-th change, the one that comes furthest on diagonal k: a
// line more of the second text, or of the first. Equal lines follow for free.
func (s *search) extend(d, k int) int {
	at := s.middle() + k
	x := 0
	if k == -d || k != d && s.reach[at-1] < s.reach[at+1] {
		x = s.reach[at+1]
	} else {
		x = s.reach[at-1] + 1
	}
	start := x
	for x < s.width && x-k >= 0 && x-k < s.height && s.same(x, x-k) {
		x++
	}
	s.reach[at] = x
	*s.steps -= 1 + x - start
	return x
}

// meets tells whether the search, d changes deep, has come to the point that
// the opposite search reached at x on the same diagonal.
func (s *search) meets(d, k, x int) bool {
	if k < -d || k > d {
		return false
	}
	reached := s.reach[s.middle()+k]
	return s.holds(reached, reached-k) && x+reached >= s.width
}
