package rest

import (
	"cmp"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/run"
)

// maxSummary is how much of a task a summary has, and maxSearch how long a text to
// look for may be.
const (
	maxSummary = 200
	maxSearch  = 200
)

func (s *Server) listRuns(c *call, q *api.RunQuery, _ *none) (*api.Runs, error) {
	f, err := c.runFilter(q)
	if err != nil {
		return nil, err
	}
	list, err := s.Store.List(c.ctx(), *f)
	if err != nil {
		return nil, err
	}
	page := &api.Runs{Runs: []api.Run{}}
	if page.Total, err = s.Store.Count(c.ctx(), *f); err != nil {
		return nil, err
	}
	for i := range list {
		if c.caller.Sees(list[i].Account) {
			page.Runs = append(page.Runs, c.listed(&list[i], q.Fields))
		}
	}
	if len(list) == f.Most {
		page.Next = list[len(list)-1].ID
	}
	return page, nil
}

// runFilter returns what a query asks for, among the caller's runs.
func (c *call) runFilter(q *api.RunQuery) (*run.Filter, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	if err := c.checkCursor(q.Cursor); err != nil {
		return nil, err
	}
	if len(q.Text) > maxSearch {
		return nil, invalid(api.FieldError{Pointer: "q", Detail: "must have at most 200 bytes"})
	}
	f := &run.Filter{
		Most: cmp.Or(q.Limit, 100), Before: q.Cursor, Account: account, Variant: q.GraphID, Open: q.Open,
		State: q.State, Code: q.Error, Model: q.Model, Branch: q.Branch, Text: q.Text,
	}
	f.Since, f.Until, err = parsePeriod(q.Since, q.Until)
	return f, err
}

// listed converts a receipt for a list.
func (c *call) listed(r *run.Receipt, fields string) api.Run {
	answer := c.runOf(r)
	if fields == "summary" {
		answer.Text, answer.Notes, answer.Warnings, answer.SelfReport, answer.Changes = "", nil, nil, api.SelfReport{}, nil
		answer.Task = beginning(answer.Task, maxSummary)
	}
	return answer
}

// beginning returns the first bytes of a text, at the end of a character.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// parsePeriod reads the two times of a query; "" is the zero time.
func parsePeriod(since, until string) (from, to time.Time, err error) {
	for _, p := range []struct {
		name, text string
		at         *time.Time
	}{{"since", since, &from}, {"until", until, &to}} {
		if p.text == "" {
			continue
		}
		if *p.at, err = time.Parse(time.RFC3339Nano, p.text); err != nil {
			return from, to, invalid(api.FieldError{Pointer: p.name, Detail: "must be a time such as 2026-01-31T12:00:00Z"})
		}
	}
	return from, to, nil
}
