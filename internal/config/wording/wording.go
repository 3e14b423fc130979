// Package wording words what is wrong with a configuration: names that were
// probably meant, quoted text, lists.
package wording

import (
	"slices"
	"strconv"
	"strings"
)

// maxName bounds the work of Nearest: no name that we know is longer.
const maxName = 64

// Nearest returns the known name nearest to the one written, or "" if none is
// near enough to be what was meant.
func Nearest(written string, known []string) string {
	if len(written) > maxName {
		return ""
	}
	best, bestDistance := "", 1+len(written)/3
	for _, name := range known {
		if strings.EqualFold(name, written) {
			return name
		}
		if d := distance(strings.ToLower(written), strings.ToLower(name)); d <= bestDistance && d < len(name) {
			if best == "" || d < bestDistance {
				best, bestDistance = name, d
			}
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		next := make([]int, len(y)+1)
		next[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(y)]
}

// MaxQuoted bounds what a message repeats of the file.
const MaxQuoted = 80

// Quote shows text from the file in a message: bounded, control characters escaped.
func Quote(text string) string {
	if len(text) > MaxQuoted {
		text = strings.ToValidUTF8(text[:MaxQuoted], "") + "…"
	}
	return strconv.Quote(text)
}

// OneOf lists names for a sentence: a, b or c.
func OneOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = Quote(name)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(slices.Clip(quoted[:last]), ", ") + " or " + quoted[last]
}
