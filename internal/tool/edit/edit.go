package edit

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

// Limits of a call.
const (
	MaxContent = 8 << 20 // bytes of a text, before and after
	MaxEdits   = 100     // edits in one call
)

// An Edit replaces one piece of a text by another.
type Edit struct {
	Old string // must be in the text
	New string
	All bool // replace every occurrence; otherwise there must be only one
}

// A Result is an edited text.
type Result struct {
	Content   string
	Count     int // pieces replaced
	FirstLine int // the first line that differs, counted from 1

	before string
}

// Diff returns what changed as a unified diff of a file called name, cut to
// limit bytes (0: whole).
func (r Result) Diff(name string, limit int) string {
	return diff.Unified(name, name, []byte(r.before), []byte(r.Content), limit)
}

// ReplaceAll makes several edits, one after the other: each sees what those
// before it have made. Either all of them are possible or none is made.
func ReplaceAll(content string, edits []Edit) (Result, error) {
	switch {
	case len(edits) == 0:
		return Result{}, ErrNoEdits
	case len(edits) > MaxEdits:
		return Result{}, fmt.Errorf("%d edits: %w", len(edits), ErrTooMany)
	}
	return apply(content, edits)
}

func apply(content string, edits []Edit) (Result, error) {
	if len(content) > MaxContent {
		return Result{}, ErrTooLarge
	}
	result := Result{Content: content, before: content}
	for i, e := range edits {
		next, count, err := e.on(result.Content)
		if err != nil && len(edits) > 1 {
			err = fmt.Errorf("edit %d of %d: %w", i+1, len(edits), err)
		}
		if err != nil {
			return Result{}, err
		}
		result.Content = next
		result.Count += count
	}
	if result.Content == content {
		return Result{}, fmt.Errorf("edits undo each other: %w", ErrIdentical)
	}
	result.FirstLine = firstDifference(content, result.Content)
	return result, nil
}

// on makes one edit and counts the pieces replaced.
func (e Edit) on(content string) (string, int, error) {
	old, replacement := normalize(e.Old), normalize(e.New)
	switch {
	case old == "":
		return "", 0, errhint.With(ErrEmpty, "to make a new file, or to replace a whole one, write it")
	case old == replacement:
		return "", 0, ErrIdentical
	case len(e.Old) > MaxContent || len(e.New) > MaxContent:
		return "", 0, ErrTooLarge
	}
	t := newText(content)
	if err := e.check(t, t.find(old, MaxListed+1)); err != nil {
		return "", 0, err
	}
	count := strings.Count(t.plain, old)
	if len(content)+count*(t.size(e.New)-len(old)) > MaxContent {
		return "", 0, ErrTooLarge
	}
	return t.replaceAll(old, replacement), count, nil
}

// check refuses an edit whose piece is nowhere, or in several places.
func (e Edit) check(t *text, places []int) error {
	switch {
	case len(places) == 0:
		err := &NotFoundError{Candidates: Nearest(t.plain, normalize(e.Old))}
		return errhint.With(err, "read the file again and copy the text as it is there, white space too")
	case len(places) > 1 && !e.All:
		err := &AmbiguousError{Lines: t.lines(places[:min(len(places), MaxListed)]), More: len(places) > MaxListed}
		return errhint.With(err, "give more of the lines around it, or ask for all occurrences")
	}
	return nil
}

// firstDifference is the number of the first line that is not the same.
func firstDifference(a, b string) int {
	return 1 + strings.Count(a[:commonPrefix(a, b)], "\n")
}
