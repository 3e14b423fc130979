package edit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits of the search for something like a piece that is not there.
const (
	MaxCandidates   = 3
	maxSearched     = 4 << 20 // bytes of the text
	maxAnchors      = 3       // lines of the piece that are looked for
	maxPerAnchor    = 8       // places kept for each
	maxCompared     = 8 << 10 // bytes of the piece and of each place
	leastSimilar    = 0.5
	maxExcerptLines = 6
	maxExcerptWidth = 160 // characters of a line
)

// A Candidate is a place in a text that resembles the piece looked for.
type Candidate struct {
	Line, LastLine int     // counted from 1
	Similarity     float64 // 0 to 1
	Difference     string  // what alone is different, if it is of one kind: "white space"
	Excerpt        string  // the lines there, or the first of them, each with its number
}

// String names the place in a few words.
func (c Candidate) String() string {
	s := fmt.Sprintf("line %d", c.Line)
	if c.LastLine > c.Line {
		s = fmt.Sprintf("lines %d–%d", c.Line, c.LastLine)
	}
	if c.Difference != "" {
		return s + " (only " + c.Difference + " differs)"
	}
	return fmt.Sprintf("%s (%d%% alike)", s, min(99, int(c.Similarity*100)))
}

// Nearest returns the places of a text that are most like a piece, best first.
// It looks for the longest lines of the piece one by one, then compares the
// whole piece at the places where one of them seems to be.
func Nearest(content, piece string) []Candidate {
	lines := strings.Split(normalize(content[:min(len(content), maxSearched)]), "\n")
	wanted := strings.Split(strings.TrimSuffix(normalize(piece), "\n"), "\n")
	var found []Candidate
	for _, start := range starts(lines, wanted) {
		window := lines[start:min(start+len(wanted), len(lines))]
		if c := compare(wanted, window); c.Similarity >= leastSimilar {
			c.Line, c.LastLine = start+1, start+len(window)
			c.Excerpt = excerpt(window, start+1)
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b Candidate) int { return cmp.Compare(b.Similarity, a.Similarity) })
	return apart(found)
}

// apart drops candidates that overlap a better one.
func apart(found []Candidate) []Candidate {
	var kept []Candidate
	for _, c := range found {
		overlaps := func(k Candidate) bool { return c.Line <= k.LastLine && k.Line <= c.LastLine }
		if len(kept) < MaxCandidates && !slices.ContainsFunc(kept, overlaps) {
			kept = append(kept, c)
		}
	}
	return kept
}

// starts lists the lines where the piece may be meant to begin.
func starts(lines, wanted []string) []int {
	var all []int
	for _, anchor := range anchors(wanted) {
		for _, line := range similarLines(lines, wanted[anchor]) {
			all = append(all, max(0, line-anchor))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// anchors chooses the longest lines of the piece: they say most.
func anchors(wanted []string) []int {
	length := func(i int) int { return len(strings.TrimSpace(wanted[i])) }
	var indexes []int
	for i := range wanted {
		if length(i) > 1 {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(length(b), length(a)) })
	return indexes[:min(len(indexes), maxAnchors)]
}

// similarLines finds the lines that hold most of what is in one line.
func similarLines(lines []string, wanted string) []int {
	type scored struct {
		line  int
		score float64
	}
	pairs := newPairs(strings.TrimSpace(wanted))
	var best []scored
	for i, line := range lines {
		if score := pairs.similarity(strings.TrimSpace(line)); score >= leastSimilar {
			best = append(best, scored{i, score})
		}
	}
	slices.SortStableFunc(best, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var indexes []int
	for _, s := range best[:min(len(best), maxPerAnchor)] {
		indexes = append(indexes, s.line)
	}
	return indexes
}

// compare judges how much the lines of a window are like those wanted.
func compare(wanted, window []string) Candidate {
	a, b := joined(wanted), joined(window)
	c := Candidate{Similarity: newPairs(a).similarity(b)}
	if max(len(a), len(b)) < maxCompared {
		c.Difference = difference(a, b)
	}
	return c
}

// joined is the beginning of some lines, without indentation.
func joined(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimSpace(line) + "\n")
		if b.Len() >= maxCompared {
			break
		}
	}
	return b.String()[:min(b.Len(), maxCompared)]
}

// difference names the one kind of difference between a piece and a place that
// contains it otherwise.
func difference(piece, place string) string {
	piece, place = withoutSpace(piece), withoutSpace(place)
	switch {
	case strings.Contains(place, piece):
		return "white space"
	case strings.Contains(NormalizePunctuation(place), NormalizePunctuation(piece)):
		return "the kind of quotes or dashes"
	case strings.Contains(strings.ToLower(place), strings.ToLower(piece)):
		return "letter case"
	}
	return ""
}

func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// excerpt shows lines with their numbers, without characters that would do
// something to a terminal.
func excerpt(lines []string, number int) string {
	var b strings.Builder
	for i, line := range lines {
		if i == maxExcerptLines {
			fmt.Fprintf(&b, "… %d more lines\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "%d\t%s\n", number+i, visible(line))
	}
	return b.String()
}

func visible(line string) string {
	var b strings.Builder
	count := 0
	for _, r := range line {
		if count == maxExcerptWidth {
			b.WriteRune('…')
			break
		}
		if r != '\t' && !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
