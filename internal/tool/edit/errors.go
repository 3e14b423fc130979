package edit

import (
	"errors"
	"fmt"
	"strings"
)

// What is wrong with an edit itself. The other errors are NotFoundError and
// AmbiguousError.
var (
	ErrEmpty     = errors.New("text to replace is empty")
	ErrIdentical = errors.New("nothing would change")
	ErrTooLarge  = fmt.Errorf("text would be larger than %d bytes", MaxContent)
	ErrNoEdits   = errors.New("no edits")
	ErrTooMany   = fmt.Errorf("more than %d edits at once", MaxEdits)
)

// MaxListed is the number of places that an error lists.
const MaxListed = 20

// A NotFoundError says that the piece to replace is not in the text, and what
// there is instead.
type NotFoundError struct {
	Candidates []Candidate // best first, perhaps none
}

func (e *NotFoundError) Error() string {
	if len(e.Candidates) == 0 {
		return "text to replace not found, nor anything like it"
	}
	places := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		places[i] = c.String()
	}
	return "text to replace not found; nearest: " + strings.Join(places, "; ")
}

// Explain returns the error with the candidates' lines, from which a model can write
// the next attempt.
func (e *NotFoundError) Explain() string {
	var b strings.Builder
	b.WriteString("text to replace not found\n")
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, "%s:\n%s", c, c.Excerpt)
	}
	return b.String()
}

// An AmbiguousError says that the piece to replace is in the text several times.
type AmbiguousError struct {
	Lines []int // where it begins, the first MaxListed; twice the same if twice in a line
	More  bool  // there are more
}

func (e *AmbiguousError) Error() string {
	count := fmt.Sprintf("%d times", len(e.Lines))
	if e.More {
		count = "more than " + count
	}
	lines := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Lines), " ", ", "), "[]")
	return fmt.Sprintf("text to replace found %s (lines %s)", count, lines)
}
