package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/tool/fetch"
	"github.com/atoll-run/atoll/internal/tool/search"
)

// Options are what a Set is made of.
type Options struct {
	Caller
	Router policy.Router

	Isolated  *Location
	Networked *Location // nil if the session has no pair

	Workdir string // where relative paths start, inside
	Paths   Paths  // the files that file tools reach
	Memory  Memory // which files the session has seen; nil: for this process only
	// Env is the environment of every command, AllowSecret the names that may
	// enter although they look like secrets.
	Env         map[string]string
	AllowSecret []string
	// Environ turns the variables that policy lets in into the whole
	// environment of a command.
	Environ func(passed map[string]string) []string

	Fetch      fetch.Fetcher // its Network is the sandbox's
	FetchChars int           // shown of a page; 0: the usual number
	NoFetch    error         // why pages cannot be fetched; nil if they can

	Search      Searcher // nil: there is none
	SearchCount int      // results unless asked for another number; 0: the usual one
	NoSearch    error    // why there is none

	Browser   Browser // nil: there is none
	NoBrowser error   // why there is none

	Sessions Sessions // nil: none are kept
	Recall   Recall   // nil: there is none
}

// Set is the tools of one session. It is safe for concurrent use.
type Set struct {
	Options
	polls polls
}

// New returns the tools of a session.
func New(o Options) *Set {
	if o.Memory == nil {
		o.Memory = NewMemory()
	}
	if o.NoSearch == nil {
		_, o.NoSearch = search.New(search.Options{})
	}
	o.FetchChars = cmp.Or(o.FetchChars, defaultPageChars)
	o.SearchCount = cmp.Or(o.SearchCount, search.DefaultResults)
	return &Set{Options: o}
}

// call is one call on its way.
type call struct {
	set  *Set
	tool Tool
	at   *Location   // where it works
	half policy.Half // which half that is
}

// Call carries out one call. Everything that the model did wrong, and policy's
// refusal apart, is in the result.
func (s *Set) Call(ctx context.Context, name string, args jsontext.Value) (*Result, error) {
	t, ok := Find(name)
	if !ok {
		return nil, &ArgumentsError{Tool: quote(name), Err: errhint.With(fmt.Errorf("no such tool"), "known: "+strings.Join(names(), ", "))}
	}
	if err := t.Authorize(s.Caller); err != nil {
		return nil, err
	}
	c := &call{set: s, tool: t}
	if err := c.route(s.Router.Tool(t.Name)); err != nil {
		return nil, err
	}
	result, err := t.run(ctx, c, args)
	switch {
	case err == nil:
		return c.finish(result), nil
	case isBeyondModel(err):
		return nil, err
	}
	return c.finish(ErrorResult(err)), nil
}

// route sends the call to one half. A networked half that was not provided is
// an error: nothing is done elsewhere instead.
func (c *call) route(r policy.Route) error {
	at := c.set.Isolated
	if r.Half == policy.HalfNetworked && !at.Host {
		at = c.set.Networked
	}
	if at == nil {
		return fmt.Errorf("%s: %w", c.tool.Name, errNoHalf)
	}
	c.half, c.at = r.Half, at
	return nil
}

var errNoHalf = errors.New("the networked half of the sandbox was not provided")

// places are all sandboxes of the session.
func (s *Set) places() []*Location {
	if s.Networked == nil {
		return []*Location{s.Isolated}
	}
	return []*Location{s.Isolated, s.Networked}
}

func names() (list []string) {
	for _, t := range All() {
		list = append(list, t.Name)
	}
	return list
}
