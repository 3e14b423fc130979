package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Recall finds what an agent has written down.
type Recall interface {
	// Search finds pieces, the best first. The notice, if any, says what the search
	// had to do without.
	Search(ctx context.Context, query string, most int) (found []Recollection, notice string, err error)
	// Get returns lines of one of the files; 0 lines are all that may be shown.
	Get(ctx context.Context, path string, from, lines int) (string, error)
}

// Recollection is a piece of a file that matches. Score is between 0 and 1.
type Recollection struct {
	Path    string  `json:"path"`
	First   int     `json:"startLine"`
	Last    int     `json:"endLine"`
	Score   float64 `json:"score"`
	Snippet string  `json:"snippet"`
}

// The limits of what memory tools show.
const (
	defaultRecollections = 6
	maxRecollections     = 50
	maxMemoryLines       = 2000
)

var errNoRecall = errors.New("this session has no memory to search")

type memorySearchArgs struct {
	Query      string  `json:"query" jsonschema:"What to look for, in plain words."`
	MaxResults int64   `json:"maxResults,omitzero" jsonschema:"Most results. Default 6, at most 50."`
	MinScore   float64 `json:"minScore,omitzero" jsonschema:"Leave out results below this score, between 0 and 1."`
}

func (a *memorySearchArgs) check() (problems []error) {
	whole(&problems, "maxResults", a.MaxResults, maxRecollections)
	if strings.TrimSpace(a.Query) == "" {
		problems = append(problems, errors.New(`"/query" is empty`))
	}
	if a.MinScore < 0 || a.MinScore > 1 {
		problems = append(problems, errors.New(`"/minScore" must be between 0 and 1`))
	}
	return problems
}

func memorySearchTool() Tool {
	return define(Tool{
		Name: "memory_search", Ours: true,
		Description: "Search MEMORY.md and memory/*.md of your agent workspace; returns path, lines, score and text.",
	}, runMemorySearch)
}

func runMemorySearch(ctx context.Context, c *call, a *memorySearchArgs) (*Result, error) {
	if c.set.Recall == nil {
		return nil, errNoRecall
	}
	found, notice, err := c.set.Recall.Search(ctx, a.Query, orDefault(a.MaxResults, defaultRecollections))
	if err != nil {
		return nil, err
	}
	hits := []Recollection{}
	var b strings.Builder
	if notice != "" {
		fmt.Fprintf(&b, "(%s)\n", visible(notice))
	}
	for _, h := range found {
		if h.Score < a.MinScore {
			continue
		}
		hits = append(hits, h)
		fmt.Fprintf(&b, "%s:%d-%d  (score %.2f)\n%s\n", visible(h.Path), h.First, h.Last, h.Score, quoted(h.Snippet))
	}
	if len(hits) == 0 {
		return &Result{Text: b.String() + "nothing was found", Details: hits}, nil
	}
	return &Result{Text: b.String(), Details: hits}, nil
}

type memoryGetArgs struct {
	Path  string `json:"path" jsonschema:"MEMORY.md, or a file below memory/, as memory_search names it."`
	From  int64  `json:"from,omitzero" jsonschema:"First line, counted from 1."`
	Lines int64  `json:"lines,omitzero" jsonschema:"How many lines. Default and most: 2000."`
}

func (a *memoryGetArgs) check() (problems []error) {
	whole(&problems, "lines", a.Lines, maxMemoryLines)
	whole(&problems, "from", a.From, maxLines)
	return problems
}

func memoryGetTool() Tool {
	return define(Tool{
		Name: "memory_get", Ours: true,
		Description: "Read lines of MEMORY.md or of a file below memory/ of your agent workspace.",
	}, runMemoryGet)
}

func runMemoryGet(ctx context.Context, c *call, a *memoryGetArgs) (*Result, error) {
	if c.set.Recall == nil {
		return nil, errNoRecall
	}
	text, err := c.set.Recall.Get(ctx, a.Path, int(a.From), int(a.Lines))
	if err != nil {
		return nil, err
	}
	return &Result{Text: text, Details: map[string]any{"path": a.Path, "from": max(a.From, 1), "text": text}}, nil
}

// quoted puts "> " before every line.
func quoted(text string) string {
	return "  | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  | ")
}
