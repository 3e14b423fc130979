package diff

import "bytes"

// splitLines cuts a text after each line feed; the last line may lack one.
func splitLines(text []byte) [][]byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	return lines
}

// numbering gives equal lines equal numbers, so that comparing two lines costs
// the same however long they are.
type numbering map[string]int

func (n numbering) of(lines [][]byte) []int {
	numbers := make([]int, len(lines))
	for i, line := range lines {
		number, known := n[string(line)]
		if !known {
			number = len(n)
			n[string(line)] = number
		}
		numbers[i] = number
	}
	return numbers
}

// texts are two texts and what to do to get from the first to the second.
type texts struct {
	a, b [][]byte
	*comparison
}

func compareTexts(a, b []byte) *texts {
	t := &texts{a: splitLines(a), b: splitLines(b)}
	n := numbering{}
	t.comparison = compare(n.of(t.a), n.of(t.b))
	return t
}

// change is a run of lines that is replaced by another; one of them may be empty.
type change struct {
	a0, a1 int
	b0, b1 int
}

// changes lists the changes in order.
func (t *texts) changes() []change {
	var all []change
	for i, j := 0, 0; i < len(t.a) || j < len(t.b); {
		c := change{a0: i, b0: j}
		for i < len(t.a) && t.deleted[i] {
			i++
		}
		for j < len(t.b) && t.inserted[j] {
			j++
		}
		if i == c.a0 && j == c.b0 {
			i++
			j++
			continue
		}
		c.a1, c.b1 = i, j
		all = append(all, c)
	}
	return all
}
