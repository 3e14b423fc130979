package tool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/internal/tool/search"
)

// Searcher finds pages on the web. A *search.Engine is one.
type Searcher interface {
	Search(ctx context.Context, by http.RoundTripper, query string, count int) ([]search.Hit, error)
}

// maxSnippet bounds what a result shows of each page.
const maxSnippet = 600

type searchArgs struct {
	Query string `json:"query" jsonschema:"What to look for."`
	Count int64  `json:"count,omitzero" jsonschema:"Most results. Default 5, at most 20."`
}

func (a *searchArgs) check() (problems []error) {
	whole(&problems, "count", a.Count, search.MaxResults)
	if strings.TrimSpace(a.Query) == "" {
		problems = append(problems, errors.New(`"/query" is empty`))
	}
	return problems
}

func searchTool() Tool {
	return define(Tool{
		Name:        "web_search",
		Description: "Search the web and return titles, addresses and snippets of pages.",
	}, runSearch)
}

func runSearch(ctx context.Context, c *call, a *searchArgs) (*Result, error) {
	if err := c.requireNetwork(); err != nil {
		return nil, err
	}
	if c.set.Search == nil {
		return nil, c.set.NoSearch
	}
	count := c.set.SearchCount
	if a.Count > 0 {
		count = int(a.Count)
	}
	var by http.RoundTripper // nil: the sandbox has a network of its own, or there is none
	if c.at.Egress != nil {
		by = c.at.Egress.Transport()
	}
	hits, err := c.set.Search.Search(ctx, by, a.Query, count)
	if err != nil {
		return nil, searchFailure(ctx, err)
	}
	return searchResult(hits), nil
}

// searchFailure is for the model unless the caller gave up.
func searchFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("web_search: " + err.Error())
}

func searchResult(hits []search.Hit) *Result {
	if len(hits) == 0 {
		return &Result{Text: "nothing was found", Details: []search.Hit{}}
	}
	var b strings.Builder
	for i, h := range hits {
		snippet, _ := cutLine(clean([]byte(h.Snippet)), maxSnippet)
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, oneLine(h.Title), oneLine(h.URL))
		if snippet != "" {
			fmt.Fprintf(&b, "   %s\n", oneLine(snippet))
		}
	}
	return &Result{Text: b.String(), Details: hits}
}

func oneLine(text string) string {
	line, _ := cutLine(strings.Join(strings.Fields(clean([]byte(text))), " "), maxSnippet)
	return line
}
