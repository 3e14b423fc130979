package synccmd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

const kindDeleted = "deleted"

// sorted returns the entries in the order in which a person sees them: deletions
// first, then what needs most attention.
func sorted(entries []api.SyncEntry) []api.SyncEntry {
	rank := func(e *api.SyncEntry) int {
		return slices.Index([]string{api.SyncConflict, api.SyncBlocked, api.SyncApprove, api.SyncPass}, e.Verdict)
	}
	list := slices.Clone(entries)
	slices.SortStableFunc(list, func(a, b api.SyncEntry) int {
		return cmp.Or(deletedFirst(&a)-deletedFirst(&b), rank(&a)-rank(&b), strings.Compare(a.Path, b.Path))
	})
	return list
}

func deletedFirst(e *api.SyncEntry) int {
	if e.Kind == kindDeleted {
		return 0
	}
	return 1
}

// letter returns the letter that version control uses for a change.
func letter(e *api.SyncEntry) string {
	switch e.Kind {
	case "added":
		return "A"
	case "modified":
		return "M"
	case kindDeleted:
		return "D"
	case "mode":
		return "m"
	case "link":
		return "L"
	case "replaced":
		return "T"
	case "renamed":
		return "R"
	}
	return "!"
}

// paintLetter colours the letter of a change.
func paintLetter(style console.Style, e *api.SyncEntry) string {
	switch l := letter(e); l {
	case "A":
		return style.Good(l)
	case "D", "!":
		return style.Alarm(l)
	default:
		return style.Warn(l)
	}
}

// paintVerdict colours the word of a verdict, padded to the width of a column.
func paintVerdict(style console.Style, verdict string) string {
	text := fmt.Sprintf("%-8s", verdict)
	switch verdict {
	case api.SyncPass:
		return style.Good(text)
	case api.SyncApprove:
		return style.Warn(text)
	}
	return style.Alarm(text)
}

// pathText returns the names of an entry, escaped.
func pathText(e *api.SyncEntry) string {
	name := console.Printable(e.Path)
	if e.IsDir {
		name += "/"
	}
	switch {
	case e.From != "":
		return console.Printable(e.From) + " → " + name
	case e.Link != "":
		return name + " → " + console.Printable(e.Link)
	}
	return name
}

// changeText says how much changed.
func changeText(e *api.SyncEntry) string {
	var parts []string
	if e.Added > 0 {
		parts = append(parts, "+"+strconv.Itoa(e.Added))
	}
	if e.Removed > 0 {
		parts = append(parts, "−"+strconv.Itoa(e.Removed))
	}
	if e.OldMode != "" && e.Mode != "" && e.OldMode != e.Mode {
		parts = append(parts, "mode "+e.OldMode+" → "+e.Mode)
	}
	if len(parts) == 0 && e.Size > 0 && !e.IsDir && e.Kind != kindDeleted {
		parts = append(parts, console.SizeText(e.Size))
	}
	return strings.Join(parts, " ")
}

// reasonText says why an entry does not pass, or why it does all the same.
func reasonText(e *api.SyncEntry) string {
	if e.Overridden != "" {
		return "overridden: " + console.Printable(e.Overridden)
	}
	var parts []string
	for _, r := range e.Reasons {
		if text := cmp.Or(r.Detail, r.Rule); !slices.Contains(parts, console.Joined(text)) {
			parts = append(parts, console.Joined(text))
		}
	}
	return strings.Join(parts, "; ")
}

// The widths of the columns of a list.
const (
	maxPathColumn   = 56
	maxChangeColumn = 24
)

// columns are the widths that a list of entries needs.
type columns struct{ path, change int }

func columnsFor(entries []api.SyncEntry) (c columns) {
	for i := range entries {
		c.path = max(c.path, utf8.RuneCountInString(pathText(&entries[i])))
		c.change = max(c.change, utf8.RuneCountInString(changeText(&entries[i])))
	}
	return columns{min(c.path, maxPathColumn), min(c.change, maxChangeColumn)}
}

// line returns an entry as one line: verdict, letter, name, amount, reason.
func (c columns) line(style console.Style, e *api.SyncEntry) string {
	text := paintVerdict(style, e.Verdict) + "  " + paintLetter(style, e) + " " + pad(pathText(e), c.path) + "  " + pad(changeText(e), c.change)
	if reason := reasonText(e); reason != "" {
		text += "  " + style.Dim(reason)
	}
	return strings.TrimRight(text, " ")
}

// pad fills text up to a width; longer text stays whole.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// countsText says how many entries wait with which verdict. What is not listed is
// counted too.
func countsText(t *api.SyncTree) string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, number(n)+" "+text)
		}
	}
	add(deletions(t.Entries), "deleted")
	add(t.Counts.Pass, "pass")
	add(t.Counts.Approval, "need approval")
	add(t.Counts.Blocked, "blocked")
	add(t.Counts.Conflict, "in conflict")
	if len(t.Withheld) > 0 {
		var groups []string
		for _, g := range t.Withheld {
			groups = append(groups, console.Printable(g.Name)+" "+number(g.Files))
		}
		parts = append(parts, "withheld: "+strings.Join(groups, ", "))
	}
	if len(parts) == 0 {
		return "nothing changed"
	}
	return strings.Join(parts, " · ")
}

func deletions(entries []api.SyncEntry) (n int) {
	for i := range entries {
		if entries[i].Kind == kindDeleted {
			n++
		}
	}
	return n
}

// number returns a number with commas between thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
