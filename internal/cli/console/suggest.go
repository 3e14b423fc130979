package console

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/errhint"
)

// suggestFlag names the flag whose spelling is nearest to one that does not exist.
func suggestFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	word, best, least := unknown.GetSpecifiedName(), "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(word, f.Name); !f.Hidden && d < least && d < len(word)/2+1 {
			best, least = f.Name, d
		}
	})
	if best == "" {
		return unknown
	}
	return errhint.With(unknown, "did you mean --"+best+"?")
}

// nearest returns the first name that word is an abbreviation of, with letters left
// out, or else the first name.
func nearest(word string, names []string) string {
	for _, name := range names {
		if abbreviates(word, name) {
			return name
		}
	}
	return names[0]
}

// abbreviates reports whether name has all letters of word, in their order.
func abbreviates(word, name string) bool {
	for _, letter := range word {
		_, rest, found := strings.Cut(name, string(letter))
		if !found {
			return false
		}
		name = rest
	}
	return true
}

// distance is how many letters must be added, removed or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// inGroups returns the commands below root's groups that have a word for a name.
func inGroups(root *cobra.Command, word string) (paths []string) {
	for _, group := range root.Commands() {
		for _, child := range group.Commands() {
			if !child.Hidden && (child.Name() == word || child.HasAlias(word)) {
				paths = append(paths, "`"+child.CommandPath()+"`")
			}
		}
	}
	return paths
}
