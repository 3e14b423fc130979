package patch

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/tool/edit"
)

// Level is how exactly the lines of a hunk had to be taken to find them.
type Level int

// The levels, from the best. Each is only tried when those before find nothing.
const (
	Exact       Level = iota
	WhiteSpace        // but for white space at the end of lines, or around a header
	Punctuation       // but for the kind of quotes, dashes and spaces
	Beginning         // a header is only the beginning of its line
)

func (l Level) String() string {
	return [...]string{"exact", "white space ignored", "kind of punctuation ignored", "header is only the beginning of its line"}[l]
}

// What may be spent on a patch. Real ones need a fraction; files and patches
// made of one line over and over would need any number of comparisons.
const (
	maxComparisons = 32 << 20 // of lines
	placeCost      = 8        // of remembering a place, in comparisons
	maxSearched    = 32 << 20 // bytes searched for something like lines not found
)

// budget is what may still be spent.
type budget struct {
	comparisons, searched int
}

func (d *document) spend(comparisons int) error {
	if d.budget.comparisons -= comparisons; d.budget.comparisons < 0 {
		return ErrTooCostly
	}
	return nil
}

// nearest finds places that are like lines which are not there.
func (d *document) nearest(lines []string) []edit.Candidate {
	text := strings.Join(d.lines, "")
	if d.budget.searched -= len(text); d.budget.searched < 0 {
		return nil
	}
	return edit.Nearest(text, strings.Join(lines, "\n"))
}

// find lists where a run of lines begins, at line from or later.
func (d *document) find(run []string, f form, from int) ([]int, error) {
	v := d.view(f)
	wanted := make([]int, len(run))
	for i, line := range run {
		number, known := v.numbers[f.of(line)]
		if !known {
			return nil, nil
		}
		wanted[i] = number
	}
	var places []int
	for at := from; at+len(wanted) <= len(v.lines); at++ {
		same := 0
		for same < len(wanted) && v.lines[at+same] == wanted[same] {
			same++
		}
		cost := same + 1
		if same == len(wanted) {
			places = append(places, at)
			cost += placeCost
		}
		if err := d.spend(cost); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// findBeginning lists the lines that begin with a text, whatever their
// indentation.
func (d *document) findBeginning(text string) ([]int, error) {
	v := d.view(trimmedPlain)
	if err := d.spend(2 * len(v.lines)); err != nil {
		return nil, err
	}
	text = trimmedPlain.of(text)
	fits := map[int]bool{}
	for line, number := range v.numbers {
		fits[number] = strings.HasPrefix(line, text)
	}
	var places []int
	for i, number := range v.lines {
		if fits[number] {
			places = append(places, i)
		}
	}
	return places, nil
}

// findHeader lists the lines that a header may mean, as exactly as possible.
func (d *document) findHeader(header string) ([]int, Level, error) {
	for level, f := range []form{asIs, trimmed, trimmedPlain} {
		if places, err := d.find([]string{header}, f, 0); err != nil || len(places) > 0 {
			return places, Level(level), err
		}
	}
	places, err := d.findBeginning(header)
	return places, Beginning, err
}

// findHeaders lists the lines that the last of several headers may mean. The
// first may be anywhere, each further one is the nearest after the one before.
func (d *document) findHeaders(headers []string) (ends []int, worst Level, err error) {
	for i, header := range headers {
		places, level, err := d.findHeader(header)
		if err != nil {
			return nil, level, err
		}
		if len(places) == 0 {
			reason := fmt.Errorf("%w: %q", ErrNoHeader, shorten(header))
			return nil, level, &ConflictError{Err: reason, Candidates: d.nearest([]string{header})}
		}
		worst = max(worst, level)
		if i == 0 {
			ends = places
		} else if ends = nearestAfter(places, ends); len(ends) == 0 {
			return nil, level, conflictAt(fmt.Errorf("%w: %q", ErrNested, shorten(header)), places)
		}
	}
	return ends, worst, nil
}

// nearestAfter gives for each start the first place after it. Both are in order.
func nearestAfter(places, starts []int) []int {
	var found []int
	next := 0
	for _, start := range starts {
		for next < len(places) && places[next] <= start {
			next++
		}
		if next == len(places) {
			break
		}
		if n := len(found); n == 0 || found[n-1] != places[next] {
			found = append(found, places[next])
		}
	}
	return found
}
