package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/tool/fetch"
	"github.com/atoll-run/atoll/internal/tool/readable"
)

// defaultPageChars is how much of a page is shown at once.
const (
	defaultPageChars = 50_000
	maxPageChars     = 200_000
)

type fetchArgs struct {
	URL      string `json:"url" jsonschema:"Address of the page: http:// or https://."`
	Offset   int64  `json:"offset,omitzero" jsonschema:"Character of the page's text to start at."`
	MaxChars int64  `json:"maxChars,omitzero" jsonschema:"Most characters to show. Default 50000."`
}

func (a *fetchArgs) check() (problems []error) {
	whole(&problems, "offset", a.Offset, fetch.MaxBytes)
	whole(&problems, "maxChars", a.MaxChars, maxPageChars)
	return problems
}

func fetchTool() Tool {
	return define(Tool{
		Name:        "web_fetch",
		Description: "Fetch a web page and return its text.",
	}, runFetch)
}

// fetchDetails are the fields of a web_fetch result.
type fetchDetails struct {
	URL       string `json:"url"` // after redirects
	Status    int    `json:"status"`
	MediaType string `json:"mediaType"`
	Title     string `json:"title,omitempty"`
	Bytes     int    `json:"bytes"`
	Chars     int    `json:"chars"` // of the whole text
	Truncated bool   `json:"truncated"`
}

func runFetch(ctx context.Context, c *call, a *fetchArgs) (*Result, error) {
	if err := c.requireNetwork(); err != nil {
		return nil, err
	}
	if c.set.NoFetch != nil {
		return nil, c.set.NoFetch
	}
	f := c.set.Fetch
	f.Network = &outside{at: c.at}
	if c.at.Egress != nil {
		f.Transport = c.at.Egress.Transport()
	}
	page, err := f.Get(ctx, a.URL)
	if err != nil {
		return nil, fetchFailure(ctx, err)
	}
	return c.pageResult(page, a), nil
}

// fetchFailure is for the model unless the caller gave up: to it a page that
// does not come is a page that does not come.
func fetchFailure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, outbound.ErrNotPublic):
		return &DeniedError{Tool: "web_fetch", Message: "web_fetch: " + err.Error() +
			"\nFix:\n- Add the address to tools.web.fetch.allowAddresses if it is meant to be reached."}
	}
	return fmt.Errorf("web_fetch: %w", err)
}

func (c *call) pageResult(page *fetch.Page, a *fetchArgs) *Result {
	title, text := pageText(page)
	details := fetchDetails{
		URL: page.URL.String(), Status: page.Status, MediaType: page.MediaType, Title: title,
		Bytes: len(page.Body), Chars: utf8.RuneCountInString(text), Truncated: page.Truncated,
	}
	most := a.MaxChars
	if most == 0 {
		most = int64(c.set.FetchChars)
	}
	shown, more := window(text, int(a.Offset), int(most))
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", details.URL)
	if title != "" {
		fmt.Fprintf(&b, "title: %s\n", title)
	}
	if page.Status != http.StatusOK {
		fmt.Fprintf(&b, "status: %d %s\n", page.Status, http.StatusText(page.Status))
	}
	fmt.Fprintf(&b, "\n%s\n", shown)
	if more {
		details.Truncated = true
		fmt.Fprintf(&b, "[characters %d to %d of %d; go on with offset %d]\n", a.Offset, a.Offset+most, details.Chars, a.Offset+most)
	}
	if page.Truncated {
		fmt.Fprintf(&b, "[the page is longer than %s; the rest was not fetched]\n", sizeText(fetch.MaxBytes))
	}
	return &Result{Text: b.String(), IsError: page.Status >= http.StatusBadRequest, Details: details}
}

// window is the part of a text from one character on.
func window(text string, from, most int) (shown string, more bool) {
	at, count := 0, 0
	start, end := len(text), len(text)
	for at = range text {
		if count == from {
			start = at
		}
		if count == from+most {
			end, more = at, true
			break
		}
		count++
	}
	if from == 0 {
		start = 0
	}
	return text[start:end], more
}

// pageText is what a page says, or what it is if that cannot be read.
func pageText(page *fetch.Page) (title, text string) {
	kind := page.MediaType
	if kind == "" {
		kind, _, _ = strings.Cut(http.DetectContentType(page.Body), ";")
	}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		read, err := readable.Extract(bytes.NewReader(decodeText(page)), page.URL)
		if err == nil {
			return read.Title, read.Text
		}
	case isBinary(page.Body):
		return "", fmt.Sprintf("[not text: %s, %s]", kind, sizeText(int64(len(page.Body))))
	}
	return "", clean(decodeText(page))
}

// decodeText turns the page into UTF-8. Of other encodings the western one is
// known; what else comes is taken for UTF-8.
func decodeText(page *fetch.Page) []byte {
	switch strings.ToLower(page.Charset) {
	case "iso-8859-1", "latin1", "windows-1252", "us-ascii":
		var b bytes.Buffer
		for _, c := range page.Body {
			b.WriteRune(rune(c))
		}
		return b.Bytes()
	}
	return page.Body
}

// requireNetwork refuses a call that has no network to work in.
func (c *call) requireNetwork() error {
	if c.at.Network {
		return nil
	}
	return &DeniedError{Tool: c.tool.Name, Message: fmt.Sprintf(`Tool %q has no network in this session.
Reason: the sandbox that it would work in is isolated
Fix:
- Add %q to sandbox.networkAllow: a second, networked sandbox is then used for it.
- See: atoll sandbox explain --agent %s --tool %s`, c.tool.Name, c.tool.Name, c.set.Session.AgentID, c.tool.Name)}
}
