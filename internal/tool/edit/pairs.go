package edit

// pairs are the pairs of neighbouring bytes of a text: a cheap measure of what
// it is made of that survives small changes and moved words.
type pairs struct {
	counts []int32 // by the pair, both bytes as one number
	total  int
}

func newPairs(text string) *pairs {
	p := &pairs{counts: make([]int32, 1<<16), total: max(0, len(text)-1)}
	for i := range p.total {
		p.counts[pair(text, i)]++
	}
	return p
}

func pair(text string, at int) uint16 { return uint16(text[at])<<8 | uint16(text[at+1]) }

// similarity is 1 for an equal text and 0 for one that shares no pair. That the
// other text is longer counts little: a piece may be the middle of a line.
func (p *pairs) similarity(other string) float64 {
	common, total := p.common(other), max(0, len(other)-1)
	if common == 0 {
		return 0
	}
	contained := float64(common) / float64(p.total)
	alike := 2 * float64(common) / float64(p.total+total)
	return (3*contained + alike) / 4
}

// common counts the pairs that both texts have, each as often as both have it.
func (p *pairs) common(other string) int {
	total := max(0, len(other)-1)
	common := 0
	for i := range total {
		if at := pair(other, i); p.counts[at] > 0 {
			common++
		}
		p.counts[pair(other, i)]--
	}
	for i := range total {
		p.counts[pair(other, i)]++
	}
	return common
}
