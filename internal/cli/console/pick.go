package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Named is something that a word of the command line can mean.
type Named struct {
	Name string
	Also []string // other words for it
}

// mostCandidates is how many names an error about an ambiguous one lists.
const mostCandidates = 10

// ErrNoneNamed means that no name begins with the word that was given.
var ErrNoneNamed = errors.New("none is called so")

// Pick finds the one that word names: by its name, by another word for it, or by
// the beginning of either. Several are an error that lists them.
func Pick(kind, word string, all []Named) (string, error) {
	tests := []func(Named) bool{
		func(n Named) bool { return n.Name == word },
		func(n Named) bool { return slices.Contains(n.Also, word) },
		func(n Named) bool {
			return word != "" && slices.ContainsFunc(append([]string{n.Name}, n.Also...), func(s string) bool { return strings.HasPrefix(s, word) })
		},
	}
	for _, test := range tests {
		var found []string
		for _, n := range all {
			if test(n) && !slices.Contains(found, n.Name) {
				found = append(found, n.Name)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return "", Ambiguous(kind, word, found)
		}
	}
	return "", ErrNoneNamed
}

// Ambiguous is the error of a word that several names begin with.
func Ambiguous(kind, word string, found []string) error {
	slices.Sort(found)
	more := ""
	if n := len(found) - mostCandidates; n > 0 {
		found, more = found[:mostCandidates], fmt.Sprintf(" and %d more", n)
	}
	return WithCode(ExitUsage, errhint.With(fmt.Errorf("%s %q could be any of %s%s", kind, word, strings.Join(found, ", "), more), "write more of the name"))
}
