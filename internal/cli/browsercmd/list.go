package browsercmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
)

// sessionWidth is how much of a session key list shows.
const sessionWidth = 60

// list prints the browsers there are.
func (e *env) list(ctx context.Context, asJSON bool) error {
	b, err := backend.OpenBrowsers(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	all, err := b.Browsers(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(&api.Browsers{Browsers: all})
	}
	if len(all) == 0 {
		fmt.Fprintln(e.Out, "No browsers. `atoll browser open URL` starts one.")
		return e.Out.Err
	}
	t := console.NewTable("NAME", "STATE", "AGENT", "DRIVER", "VIEWERS", "ENDPOINTS", "SESSION")
	for i := range all {
		b := &all[i]
		t.Add(b.Name, stateOf(b), console.Printable(b.AgentID), driverOf(b), strconv.Itoa(b.Viewers), endpointsOf(b), console.Shortened(console.Printable(b.SessionKey), sessionWidth))
	}
	t.Print(e.Out)
	return e.Out.Err
}

// stateOf says whether a browser runs; its sandbox stays when it has ended.
func stateOf(b *api.Browser) string {
	switch {
	case b.Open:
		return "open"
	case b.Running:
		return "ended"
	}
	return "stopped"
}

func driverOf(b *api.Browser) string {
	switch {
	case b.Person:
		return "person"
	case b.Open:
		return "agent"
	}
	return "-"
}

// endpointsOf says what may be done with a browser from outside, and by which port it is.
func endpointsOf(b *api.Browser) string {
	var endpoints []string
	add := func(is bool, name string, port int) {
		if is && port != 0 {
			name += ":" + strconv.Itoa(port)
		}
		if is {
			endpoints = append(endpoints, name)
		}
	}
	add(b.View, "view", 0)
	add(b.View && b.Window, "window", b.NoVNCPort)
	add(b.CDP, "cdp", b.CDPPort)
	if len(endpoints) == 0 {
		return "-"
	}
	return strings.Join(endpoints, " ")
}

// find returns the browsers of this installation, and the one that a word names.
func (e *env) find(ctx context.Context, word string) (backend.Browsers, *api.Browser, error) {
	b, err := backend.OpenBrowsers(ctx, e.Env)
	if err != nil {
		return nil, nil, err
	}
	found, err := pick(ctx, b, word)
	return b, found, err
}

// pick returns the browser that a word names.
func pick(ctx context.Context, b backend.Browsers, word string) (*api.Browser, error) {
	all, err := b.Browsers(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]console.Named, 0, len(all))
	for i := range all {
		names = append(names, console.Named{Name: all[i].Name, Also: []string{all[i].SessionKey, strings.TrimPrefix(all[i].SessionKey, "agent:"+all[i].AgentID+":")}})
	}
	name, err := console.Pick("browser", word, names)
	if errors.Is(err, console.ErrNoneNamed) {
		return nil, errhint.With(fmt.Errorf("browser %q: %w", word, browsers.ErrNotFound), "`atoll browser list` shows what there is")
	}
	for i := range all {
		if err == nil && all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, err
}
