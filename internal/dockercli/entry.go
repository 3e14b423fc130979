package dockercli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"github.com/atoll-run/atoll/internal/lease"
)

var errEntry = errors.New("its entry is malformed")

// entry is what a record begins with, "" if it cannot be told so.
func (c *Container) entry() string {
	e := &entry.Entry{
		ID: c.ID, Name: c.Name, Hostname: c.Hostname, Workdir: c.Workdir, User: c.User, Home: c.Home,
		Process: c.Main.Process, Attached: strconv.FormatBool(c.Main.Attached), Env: strings.Join(c.Env, entry.End),
	}
	if slices.ContainsFunc(c.Env, func(variable string) bool { return variable == "" || strings.Contains(variable, entry.End) }) {
		return ""
	}
	if g := c.Guest; g != nil {
		e.Socket, e.PID, e.Birth, e.Paused = g.Socket, strconv.Itoa(g.PID), g.Birth, strconv.FormatBool(g.Paused)
		e.Lease, e.Place = g.Lease, strconv.FormatInt(lease.Place(g.Lease), 10)
	}
	return e.Format()
}

// readToEnter reads no more than the entry, if there is one.
func readToEnter(record string) (*Container, error) {
	text, _, ok := entry.Cut(record)
	switch {
	case !ok:
		return nil, errEntry
	case text == "":
		return readWhole(record)
	}
	e, ok := entry.Parse(text)
	if !ok {
		return nil, errEntry
	}
	c := &Container{
		ID: e.ID, Name: e.Name, Hostname: e.Hostname, Workdir: e.Workdir, User: e.User, Home: e.Home,
		Main: Life{Process: e.Process, Attached: e.Attached == entry.Yes},
	}
	if e.Env != "" {
		c.Env = strings.Split(e.Env, entry.End)
	}
	if e.Socket == "" {
		return c, nil
	}
	pid, err := strconv.Atoi(e.PID)
	c.Guest = &Guest{Socket: e.Socket, PID: pid, Birth: e.Birth, Lease: e.Lease, Paused: e.Paused == entry.Yes}
	return c, err
}
