package patch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/tool/edit"
)

// Why a patch cannot be read. A SyntaxError wraps one of these, or says in its
// own words what was expected.
var (
	ErrTooLarge      = fmt.Errorf("patch is larger than %d bytes", MaxBytes)
	ErrTooManyFiles  = fmt.Errorf("patch has more than %d files", MaxFiles)
	ErrTooManyHunks  = fmt.Errorf("patch has more than %d hunks", MaxHunks)
	ErrEmpty         = errors.New("patch changes no file")
	ErrPathEmpty     = errors.New("path is empty")
	ErrPathTooLong   = fmt.Errorf("path is longer than %d bytes", MaxPath)
	ErrPathNUL       = errors.New("path has a NUL character")
	ErrPathControl   = errors.New("path has a control character")
	ErrPathNotUTF8   = errors.New("path is not UTF-8")
	ErrPathParent    = errors.New("path has a \"..\" segment")
	ErrPathDirectory = errors.New("path names a directory")
	ErrPathTwice     = errors.New("path is in the patch twice")
	ErrPathBelowFile = errors.New("path is below a file of the same patch")
)

// Why a patch does not fit the files. Besides these, fs.ErrExist and
// fs.ErrNotExist, and whatever an FS reports.
var (
	ErrNotFound     = errors.New("lines are not in the file")
	ErrNoHeader     = errors.New("line of the @@ header is not in the file")
	ErrAmbiguous    = errors.New("lines are in several places of the file")
	ErrNested       = errors.New("line of the nested @@ header is not after that of the header before it")
	ErrOrder        = errors.New("lines are before or among those of the previous hunk: hunks must follow the order of the file")
	ErrBeforeHeader = errors.New("lines are only before the line of the @@ header")
	ErrNotAtEnd     = errors.New("lines are not at the end of the file")
	ErrNoChange     = errors.New("nothing would change")
	ErrFileTooLarge = fmt.Errorf("file is larger than %d bytes or %d lines", MaxFileBytes, MaxFileLines)
	ErrPlanTooLarge = fmt.Errorf("files of the patch have more than %d bytes together", MaxPlanBytes)
	ErrTooCostly    = errors.New("finding the lines of the hunks takes too long")
	// ErrChanged is what an FS wraps when a file is not as it was when it was read.
	ErrChanged = errors.New("file changed since it was read")
)

// A SyntaxError says what is wrong with the text of a patch, and in which line.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("patch line %d: %v", e.Line, e.Err) }

func (e *SyntaxError) Unwrap() error { return e.Err }

// A ConflictError says why a change does not fit the file as it is.
type ConflictError struct {
	Path string
	Line int // of the hunk or of the change, in the text of the patch
	Err  error

	Lines      []int            // of the file: the places of an ErrAmbiguous, ErrOrder or ErrNotAtEnd
	Candidates []edit.Candidate // places like the one that was not found
}

func (e *ConflictError) Error() string {
	s := fmt.Sprintf("%q, patch line %d: %v", e.Path, e.Line, e.Err)
	if len(e.Lines) > 0 {
		s += " (at " + listLines(e.Lines) + ")"
	}
	if len(e.Candidates) == 0 {
		return s
	}
	places := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		places[i] = c.String()
	}
	return s + "; nearest: " + strings.Join(places, "; ")
}

// maxListed is the number of places that an error lists.
const maxListed = 20

func listLines(lines []int) string {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(lines[:min(len(lines), maxListed)]), " ", ", "), "[]")
	switch {
	case len(lines) == 1:
		return "line " + list
	case len(lines) > maxListed:
		return "lines " + list + ", …"
	}
	return "lines " + list
}

func (e *ConflictError) Unwrap() error { return e.Err }

// Explain returns the error with the nearest lines, from which a model can write the
// next attempt.
func (e *ConflictError) Explain() string {
	var b strings.Builder
	b.WriteString(e.Error() + "\n")
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, "%s:\n%s", c, c.Excerpt)
	}
	return b.String()
}

// An ExecuteError says which file could not be changed after all. What had been
// done before was undone, but for the files in NotUndone.
type ExecuteError struct {
	Path      string
	Err       error
	NotUndone []error
}

func (e *ExecuteError) Error() string {
	s := fmt.Sprintf("%q: %v", e.Path, e.Err)
	if len(e.NotUndone) == 0 {
		return s + "; nothing was changed"
	}
	return fmt.Sprintf("%s; changes that could not be undone: %v", s, errors.Join(e.NotUndone...))
}

func (e *ExecuteError) Unwrap() []error { return append([]error{e.Err}, e.NotUndone...) }
