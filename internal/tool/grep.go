package tool

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
)

const (
	grepMatches = 100      // lines shown unless asked for another number
	grepMost    = 1000     // lines shown at most
	grepText    = 48 << 10 // bytes shown
	grepContext = 20       // lines around a match at most
)

// grepSkips are directories that are searched only if the path names them.
var grepSkips = []string{".git", "node_modules"}

type grepArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"Regular expression (RE2) to look for in each line."`
	Path       string   `json:"path,omitzero" jsonschema:"File or directory to search. Default: the workspace."`
	Literal    bool     `json:"literal,omitzero" jsonschema:"pattern is plain text."`
	IgnoreCase bool     `json:"ignoreCase,omitzero" jsonschema:"Letter case does not matter."`
	Include    []string `json:"include,omitzero" jsonschema:"Only files that match one of these globs, e.g. *.go or src/**/*.ts."`
	Exclude    []string `json:"exclude,omitzero" jsonschema:"Files and directories to leave out. Default: .git and node_modules."`
	Context    int64    `json:"context,omitzero" jsonschema:"Lines to show before and after each match."`
	Limit      int64    `json:"limit,omitzero" jsonschema:"Most matching lines to show. Default 100."`
}

func (a *grepArgs) check() (problems []error) {
	whole(&problems, "context", a.Context, grepContext)
	whole(&problems, "limit", a.Limit, grepMost)
	if a.Pattern == "" {
		problems = append(problems, errors.New(`"/pattern" is empty`))
	}
	return problems
}

func grepTool() Tool {
	return define(Tool{
		Name:        "grep",
		Description: "Search files for a regular expression and show the matching lines with their numbers.",
		As:          "read",
	}, runGrep)
}

// grepDetails are the fields of a grep result.
type grepDetails struct {
	Matches   []grepMatch `json:"matches"`
	Files     int         `json:"files"` // that were searched
	Truncated bool        `json:"truncated"`
}

type grepMatch struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func runGrep(ctx context.Context, c *call, a *grepArgs) (*Result, error) {
	if a.Path == "" {
		a.Path = "."
	}
	p, err := c.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	found, err := c.at.Files.Search(ctx, p.Container, a.options())
	if errors.Is(err, machine.ErrInvalid) {
		return nil, errhint.With(err, "the pattern is a regular expression (RE2); for plain text set literal")
	}
	if err != nil {
		return nil, fileError(p, err)
	}
	return grepResult(p, found), nil
}

func (a *grepArgs) options() *guestfs.SearchOptions {
	o := &guestfs.SearchOptions{
		Pattern: a.Pattern, Literal: a.Literal, IgnoreCase: a.IgnoreCase, Include: a.Include, Exclude: a.Exclude,
		Context: int(a.Context), MaxMatches: grepMatches,
	}
	if a.Limit > 0 {
		o.MaxMatches = int(a.Limit)
	}
	if a.Exclude == nil {
		o.Exclude = grepSkips
	}
	return o
}

func grepResult(p policy.Path, found *guestfs.SearchResult) *Result {
	details := grepDetails{Matches: []grepMatch{}, Files: found.Totals.Files, Truncated: found.Cut != nil}
	var b strings.Builder
	for i := range found.Matches {
		m := &found.Matches[i]
		text := matchText(p, m)
		if b.Len()+len(text) > grepText {
			details.Truncated = true
			break
		}
		b.WriteString(text)
		details.Matches = append(details.Matches, grepMatch{matchPath(p, m), m.Line, m.Column, strings.ToValidUTF8(m.Text, "\uFFFD")})
	}
	b.WriteString(grepFooter(found, &details))
	return &Result{Text: b.String(), Details: details}
}

func matchPath(p policy.Path, m *guestfs.Match) string {
	return strings.ToValidUTF8(path.Join(p.Relative, m.Path), "\uFFFD")
}

// matchText is a match as grep prints it, with the lines around it.
func matchText(p policy.Path, m *guestfs.Match) string {
	name := visible(matchPath(p, m))
	var b strings.Builder
	line := func(number int, mark, text string) {
		fmt.Fprintf(&b, "%s%s%d%s%s\n", name, mark, number, mark, visible(strings.ToValidUTF8(text, "\uFFFD")))
	}
	for i, text := range m.Before {
		line(m.Line-len(m.Before)+i, "-", text)
	}
	text := m.Text
	if m.Cut {
		text += "… [long line]"
	}
	line(m.Line, ":", text)
	for i, text := range m.After {
		line(m.Line+1+i, "-", text)
	}
	if len(m.Before)+len(m.After) > 0 {
		b.WriteString("--\n")
	}
	return b.String()
}

// grepFooter says how much was searched, and what is missing.
func grepFooter(found *guestfs.SearchResult, d *grepDetails) string {
	notes := []string{fmt.Sprintf("%d matches in %d files searched", len(d.Matches), d.Files)}
	if d.Truncated {
		notes = append(notes, "there may be more: narrow the search with path, include or pattern, or raise limit")
	}
	if skipped := found.Binary + found.Large; skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d binary or very large files skipped", skipped))
	}
	return "[" + strings.Join(notes, "; ") + "]"
}
