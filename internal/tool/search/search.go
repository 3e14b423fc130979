// Package search asks a provider on the web for pages about something. It runs
// on the host, where the provider's key is: a sandbox sees neither the key nor
// the request, only what was found.
//
// Fetching what was found is package fetch's.
package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// The limits of one search.
const (
	DefaultResults = 5
	MaxResults     = 20
	DefaultTimeout = 30 * time.Second
	maxAnswer      = 2 << 20
	maxQuery       = 1000
)

// Hit is a page that was found.
type Hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

// Options say who is asked.
type Options struct {
	Provider string // "brave" or "searxng"
	Key      string
	BaseURL  string         // "" is the provider's own place
	Timeout  time.Duration  // 0 is DefaultTimeout
	Host     *outbound.Host // that the provider is reached from; nil: as the environment says
}

// Engine asks one provider.
type Engine struct {
	dialect
	key     string
	base    *url.URL
	timeout time.Duration
	host    *outbound.Host
}

// dialect is how one provider is asked, and how it answers.
type dialect struct {
	base     string // usual place; "" if there is none
	needsKey bool
	request  func(base *url.URL, query string, count int) *url.URL
	header   string // that carries the key
	hits     func(answer []byte) ([]Hit, error)
}

func dialects() map[string]dialect {
	return map[string]dialect{
		"brave": {
			base: "https://api.search.brave.com", needsKey: true, header: "X-Subscription-Token",
			request: func(base *url.URL, query string, count int) *url.URL {
				return at(base, "res/v1/web/search", url.Values{"q": {query}, "count": {fmt.Sprint(count)}})
			},
			hits: braveHits,
		},
		"searxng": {
			header: "Authorization",
			request: func(base *url.URL, query string, _ int) *url.URL {
				return at(base, "search", url.Values{"q": {query}, "format": {"json"}})
			},
			hits: searxngHits,
		},
	}
}

func at(base *url.URL, path string, query url.Values) *url.URL {
	u := base.JoinPath(path)
	u.RawQuery = query.Encode()
	return u
}

// New returns the engine of a provider, or says what is missing.
func New(o Options) (*Engine, error) {
	d, known := dialects()[strings.ToLower(o.Provider)]
	if o.BaseURL != "" {
		d.base = o.BaseURL
	}
	switch {
	case o.Provider == "":
		return nil, errhint.With(errors.New("web search is not configured"), "set tools.web.search.provider and its apiKey in the configuration")
	case !known:
		return nil, errhint.With(fmt.Errorf("web search provider %q is not known", o.Provider), "set tools.web.search.provider to brave or searxng")
	case d.needsKey && o.Key == "":
		return nil, errhint.With(fmt.Errorf("web search provider %s needs a key", o.Provider), "set tools.web.search.apiKey, or BRAVE_API_KEY where Atoll runs")
	case d.base == "":
		return nil, errhint.With(fmt.Errorf("web search provider %s has no usual place", o.Provider), "set tools.web.search.baseUrl")
	}
	base, err := url.Parse(d.base)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
		return nil, fmt.Errorf("tools.web.search.baseUrl %q is not an address", d.base)
	}
	if base.Scheme == "http" && o.Key != "" {
		return nil, errhint.With(errors.New("tools.web.search.baseUrl would send the key unprotected"), "use https://")
	}
	if o.Host == nil {
		if o.Host, err = outbound.NewHost(outbound.Options{}); err != nil {
			return nil, err
		}
	}
	return &Engine{dialect: d, key: o.Key, base: base, timeout: timeoutOf(o), host: o.Host}, nil
}

func timeoutOf(o Options) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

// Search asks for up to count pages, by a transport that judges and sends the request;
// nil sends it as the host sends its own.
func (e *Engine) Search(ctx context.Context, by http.RoundTripper, query string, count int) ([]Hit, error) {
	if len(query) > maxQuery {
		return nil, fmt.Errorf("query is longer than %d bytes", maxQuery)
	}
	count = min(max(count, 1), MaxResults)
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer, err := e.ask(ctx, by, e.request(e.base, query, count))
	if err != nil {
		return nil, err
	}
	hits, err := e.hits(answer)
	if err != nil {
		return nil, errors.New("the search provider's answer makes no sense")
	}
	return hits[:min(len(hits), count)], nil
}

// ask sends one request. A redirect is not followed: it would take the key along.
func (e *Engine) ask(ctx context.Context, by http.RoundTripper, u *url.URL) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if e.key != "" {
		request.Header.Set(e.header, e.key)
	}
	client := e.host.Client(0)
	if by != nil {
		client.Transport = by
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, unwrap(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the search provider answered %s", response.Status)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the search provider's answer is longer than %d bytes", maxAnswer)
	}
	return answer, err
}

// unwrap drops the address around the reason: it holds the query.
func unwrap(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the search provider does not answer: %w", wrapped.Err)
	}
	return err
}

func braveHits(answer []byte) (hits []Hit, err error) {
	var a struct {
		Web struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"`
	}
	err = json.Unmarshal(answer, &a)
	for _, r := range a.Web.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Description})
	}
	return hits, err
}

func searxngHits(answer []byte) (hits []Hit, err error) {
	var a struct {
		Results []struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"results"`
	}
	err = json.Unmarshal(answer, &a)
	for _, r := range a.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Content})
	}
	return hits, err
}
