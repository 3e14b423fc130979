package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
)

// Commit is a commit as it is stored.
type Commit struct {
	ID        string
	Tree      string
	Parents   []string
	Author    Person
	Committer Person
	Encoding  string
	Message   string
}

// Person is an author or committer, with the time, as the commit says.
type Person struct {
	Name  string
	Email string
	When  int64 // seconds since 1970
	Zone  string
}

// Range lists the commits that head has and the known ones have not, parents
// first; if there are more than limit, one more than limit.
func (r *Repo) Range(ctx context.Context, known []string, head string, limit int) ([]string, error) {
	out, err := r.Output(ctx, rangeInput(head, known), "rev-list", "--topo-order", "--reverse", "--max-count="+strconv.Itoa(limit+1), "--stdin")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// rangeInput names, on standard input, what head has and the known ones have not.
func rangeInput(head string, known []string) *strings.Reader {
	return strings.NewReader(lines(append([]string{head}, without(known)...)))
}

// Unreached returns the commits among the ancestors of the given ones, and these
// themselves, that the known ones have not.
func (r *Repo) Unreached(ctx context.Context, commits, known []string) ([]string, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	out, err := r.Output(ctx, strings.NewReader(lines(append(slices.Clone(commits), without(known)...))), "rev-list", "--stdin")
	return strings.Fields(string(out)), err
}

// CheckComplete fails if an object is missing that head has and the known commits
// have not.
func (r *Repo) CheckComplete(ctx context.Context, known []string, head string) error {
	_, err := r.Output(ctx, rangeInput(head, known), "rev-list", "--objects", "--quiet", "--stdin")
	return err
}

// MergeBase returns the best commit that both have among their ancestors; "" if
// there is none.
func (r *Repo) MergeBase(ctx context.Context, a, b string) (string, error) {
	base, err := r.Line(ctx, "merge-base", a, b)
	if failed, ok := errors.AsType[*confined.Error](err); ok && failed.Exit() == 1 {
		return "", nil
	}
	return base, err
}

// Descends reports whether head is base or has it among its ancestors.
func (r *Repo) Descends(ctx context.Context, base, head string) (bool, error) {
	_, err := r.Output(ctx, nil, "merge-base", "--is-ancestor", base, head)
	if failed, ok := errors.AsType[*confined.Error](err); ok && failed.Exit() == 1 {
		return false, nil
	}
	return err == nil, err
}

// Resolve returns the commit that a name stands for.
func (r *Repo) Resolve(ctx context.Context, name string) (string, error) {
	return r.Line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
}

// ErrMalformed means that an object is not what it should be. It will not be
// another time.
var ErrMalformed = errors.New("malformed object")

// parseCommit reads a commit object.
func parseCommit(id string, data []byte) (*Commit, error) {
	head, message, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return nil, fmt.Errorf("%w: commit %s has no message", ErrMalformed, id)
	}
	c := &Commit{ID: id, Message: string(message)}
	for line := range strings.SplitSeq(string(head), "\n") {
		if strings.HasPrefix(line, " ") {
			continue // the rest of a signature, which is not kept
		}
		name, value, _ := strings.Cut(line, " ")
		if err := c.set(name, value); err != nil {
			return nil, fmt.Errorf("%w: commit %s: %s: %w", ErrMalformed, id, name, err)
		}
	}
	if !IsID(c.Tree) || c.Author.Zone == "" || c.Committer.Zone == "" {
		return nil, fmt.Errorf("%w: commit %s is not complete", ErrMalformed, id)
	}
	return c, nil
}

func (c *Commit) set(name, value string) (err error) {
	switch name {
	case "tree":
		c.Tree = value
	case "parent":
		c.Parents = append(c.Parents, value)
	case "author":
		c.Author, err = parsePerson(value)
	case "committer":
		c.Committer, err = parsePerson(value)
	case "encoding":
		c.Encoding = value
	}
	return err
}

// parsePerson reads "name <mail> seconds zone".
func parsePerson(text string) (Person, error) {
	left, right := strings.LastIndexByte(text, '<'), strings.LastIndexByte(text, '>')
	if left < 0 || right < left {
		return Person{}, errors.New("no address")
	}
	seconds, zone, ok := strings.Cut(strings.TrimSpace(text[right+1:]), " ")
	if !ok {
		return Person{}, errors.New("no date")
	}
	when, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Person{}, errors.New("bad date")
	}
	return Person{Name: strings.TrimSpace(text[:left]), Email: text[left+1 : right], When: when, Zone: zone}, nil
}

// IsID reports whether text is the whole name of an object.
func IsID(text string) bool {
	return len(text) == 40 && strings.Trim(text, "0123456789abcdef") == ""
}

// ZeroID stands for an object that is not there.
const ZeroID = "0000000000000000000000000000000000000000"
