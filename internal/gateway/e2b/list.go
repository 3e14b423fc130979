package e2b

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// maxPage is the largest page of a list.
const maxPage = 100

// nextToken is the header with the place where the next page begins.
const nextToken = "X-Next-Token"

// page returns the part of a list that a request asks for. Its items have ids, which say
// where the next page begins.
func (c *call) page(n int, id func(int) string) (from, to int, err error) {
	query := c.r.URL.Query()
	limit := maxPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return 0, 0, badField("limit", "must be from 1 to %d", maxPage)
		}
	}
	if after := query.Get("nextToken"); after != "" {
		for from < n && id(from) != after {
			from++
		}
		if from == n {
			return 0, 0, badField("nextToken", "is not of this list any more")
		}
	}
	if to = min(from+limit, n); to < n {
		c.w.Header().Set(nextToken, id(to))
	}
	return from, to, nil
}

// listFilter says which sandboxes are listed.
type listFilter struct {
	metadata map[string]string
	states   []string
	template string
	after    time.Time
	oldest   bool // the oldest first
}

func newListFilter(q url.Values) (*listFilter, error) {
	f := &listFilter{metadata: map[string]string{}, template: q.Get("template"), oldest: q.Get("order") == "asc"}
	pairs, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return nil, badField("metadata", "must be NAME=VALUE pairs of a URL")
	}
	for name, values := range pairs { // clients encode both twice
		plain, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(values[0])
		if nameErr != nil || valueErr != nil {
			return nil, badField("metadata", "must be NAME=VALUE pairs of a URL")
		}
		f.metadata[plain] = value
	}
	for _, text := range q["state"] {
		f.states = append(f.states, strings.Split(text, ",")...)
	}
	for _, state := range f.states {
		if state != running && state != paused {
			return nil, badField("state", "must be %s or %s", running, paused)
		}
	}
	if text := q.Get("startedAfter"); text != "" {
		if f.after, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, badField("startedAfter", "must be a time of RFC 3339")
		}
	}
	if order := q.Get("order"); order != "" && order != "asc" && order != "desc" {
		return nil, badField("order", "must be asc or desc")
	}
	return f, nil
}

func (f *listFilter) matches(d *sandboxInfo) bool {
	for name, value := range f.metadata {
		if found, ok := d.Metadata[name]; !ok || found != value {
			return false
		}
	}
	return (len(f.states) == 0 || slices.Contains(f.states, d.State)) && (f.template == "" || f.template == d.TemplateID) && !d.StartedAt.Before(f.after)
}

// list lists the sandboxes that the caller may see, the newest first.
func (c *call) list() error {
	filter, err := newListFilter(c.r.URL.Query())
	if err != nil {
		return err
	}
	found, err := c.listed(filter)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *sandboxInfo) int {
		if filter.oldest {
			a, b = b, a
		}
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(a.SandboxID, b.SandboxID))
	})
	from, to, err := c.page(len(found), func(i int) string { return found[i].SandboxID })
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found[from:to])
}

// listed returns the sandboxes that a filter lets through.
func (c *call) listed(filter *listFilter) ([]*sandboxInfo, error) {
	records, err := c.Made.All(c.ctx(), c.caller.Account)
	if err != nil {
		return nil, err
	}
	states, err := c.States(c.ctx())
	if err != nil {
		return nil, err
	}
	list := []*sandboxInfo{}
	for _, r := range records {
		if r.Phase != sandboxes.Ready || r.Details.AccessToken == "" {
			continue
		}
		d, err := c.describe(r, states[r.Name])
		if err != nil {
			return nil, fmt.Errorf("sandbox %s: %w", r.ID, err)
		}
		if filter.matches(d) {
			list = append(list, d)
		}
	}
	return list, nil
}

// The states of a sandbox.
const (
	running = "running"
	paused  = "paused"
)

func stateOf(s sandbox.State) string {
	if s == sandbox.StateRunning {
		return running
	}
	return paused
}
