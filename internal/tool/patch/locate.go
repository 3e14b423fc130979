package patch

import "slices"

// spot is where a hunk belongs.
type spot struct {
	at    int    // index of its first line
	lines []Line // of the hunk, as far as they were found
	level Level
}

// locator looks for the place of one hunk.
type locator struct {
	*document
	hunk    *Hunk
	from    int   // the first line that may belong to the hunk
	headers []int // where the last of the hunk's headers may be
}

// locate finds the one place of a hunk, at line from or later.
func (d *document) locate(h *Hunk, from int) (spot, error) {
	headers, level, err := d.findHeaders(h.Headers)
	if err != nil {
		return spot{}, err
	}
	l := &locator{d, h, from, headers}
	find := l.block
	if len(h.old()) == 0 {
		find = l.insertion
	}
	s, err := find()
	s.level = max(s.level, level)
	return s, err
}

// insertion finds the place of a hunk that only adds lines.
func (l *locator) insertion() (spot, error) {
	s := spot{at: len(l.lines), lines: l.hunk.Lines}
	if l.hunk.appends() || l.hunk.EndOfFile {
		return s, nil
	}
	var places []int
	for _, line := range l.headers {
		if line+1 >= l.from {
			places = append(places, line+1)
		}
	}
	if len(places) == 0 {
		return spot{}, conflictAt(ErrOrder, l.headers)
	}
	return s.at1(places)
}

// at1 sets the place of a spot, if there is only one.
func (s spot) at1(places []int) (spot, error) {
	if len(places) > 1 {
		return spot{}, conflictAt(ErrAmbiguous, places)
	}
	s.at = places[0]
	return s, nil
}

// block finds the lines of a hunk, by the first level at which there are any.
func (l *locator) block() (spot, error) {
	for level, f := range blockForms() {
		for _, lines := range variants(l.hunk.Lines) {
			run := oldLines(lines)
			places, err := l.find(run, f, l.from)
			if err != nil {
				return spot{}, err
			}
			if places = l.choose(places, len(run)); len(places) > 0 {
				return spot{lines: lines, level: Level(level)}.at1(places)
			}
		}
	}
	return spot{}, l.missing()
}

// blockForms are the forms to look for lines of a hunk in, by level.
func blockForms() []form { return []form{asIs, endTrimmed, endTrimmedPlain} }

// variants are the lines of a hunk, and those lines without blank ones at the
// end, which are often only there to set the next hunk off.
func variants(lines []Line) [][]Line {
	short := lines
	for len(short) > 0 && short[len(short)-1] == (Line{Keep, ""}) {
		short = short[:len(short)-1]
	}
	if len(short) == len(lines) || len(oldLines(short)) == 0 {
		return [][]Line{lines}
	}
	return [][]Line{lines, short}
}

// choose keeps the places that the end of the file and the headers allow. After
// each line that may be the header it is the nearest place; a header that is
// above the previous hunk still holds for the lines below.
func (l *locator) choose(places []int, length int) []int {
	if l.hunk.EndOfFile {
		places = slices.DeleteFunc(places, func(at int) bool { return at+length != len(l.lines) })
	}
	if len(l.headers) == 0 {
		return places
	}
	var chosen []int
	for _, header := range l.headers {
		i, same := slices.BinarySearch(places, header)
		if same && i+1 < len(places) {
			i++ // else the header is also the hunk's first line
		}
		if i < len(places) {
			chosen = append(chosen, places[i])
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

// missing says why there is no place: where the lines are instead, or what is
// like them.
func (l *locator) missing() error {
	run := oldLines(l.hunk.Lines)
	for _, f := range blockForms() {
		places, err := l.find(run, f, 0)
		if err != nil {
			return err
		}
		if len(places) == 0 {
			continue
		}
		reason := ErrBeforeHeader
		if places[len(places)-1] < l.from {
			reason = ErrOrder
		} else if l.hunk.EndOfFile {
			reason = ErrNotAtEnd
		}
		return conflictAt(reason, places)
	}
	return &ConflictError{Err: ErrNotFound, Candidates: l.nearest(run)}
}

// conflictAt is a conflict that names lines by their index.
func conflictAt(reason error, places []int) error {
	lines := make([]int, min(len(places), maxListed+1))
	for i := range lines {
		lines[i] = places[i] + 1
	}
	return &ConflictError{Err: reason, Lines: lines}
}
