package dockercli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
)

// psRow is one line of `docker ps`, by the names that formats use.
type psRow struct {
	Command      string
	CreatedAt    string
	ID           string
	Image        string
	Labels       string
	LocalVolumes string
	Mounts       string
	Names        string
	Networks     string
	Ports        string
	RunningFor   string
	Size         string
	State        string
	Status       string
	labels       map[string]string
}

// Label is for formats: {{.Label "name"}}.
func (r psRow) Label(name string) string { return r.labels[name] }

type psOptions struct {
	all, quiet, noTrunc, latest bool
	last                        int64
	format                      string
	filters                     []filter
}

func (c *cli) psVerb() *verb {
	o := psOptions{last: -1}
	return &verb{usage: " [OPTIONS]", most: 0,
		flags: func(f *flagSet) {
			f.boolean(&o.all, "all", "a")
			f.boolean(&o.quiet, "quiet", "q")
			f.boolean(&o.noTrunc, "no-trunc", "")
			f.boolean(&o.latest, "latest", "l")
			f.number(&o.last, "last", "n")
			f.text(&o.format, "format", "")
			f.filters(&o.filters)
			f.refuse(whyNoSize, "size,s!")
		},
		run: func(ctx context.Context, _ []string) error { return c.ps(ctx, &o) }}
}

func (c *cli) ps(ctx context.Context, o *psOptions) error {
	if o.latest {
		o.last = 1
	}
	list, err := c.records.all()
	if err != nil {
		return err
	}
	if _, err := c.isShown(o, &Container{}, statusCreated); err != nil {
		return err // filters are wrong also where there is nothing to filter
	}
	rows := []psRow{}
	for _, x := range list {
		if o.last > 0 && int64(len(rows)) >= o.last {
			break
		}
		s, err := c.currentStatus(ctx, x)
		if errors.Is(err, ErrNoSandbox) {
			continue
		} else if err != nil {
			return err
		}
		shown, err := c.isShown(o, x, s)
		if err != nil {
			return err
		}
		if shown {
			rows = append(rows, psRowOf(x, s, o.noTrunc))
		}
	}
	if o.quiet {
		for _, row := range rows {
			fmt.Fprintln(c.Out, row.ID)
		}
		return nil
	}
	return dockerformat.PrintTable(c.Out, o.format, rows, "table {{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t{{.Names}}", psHeads())
}

// isShown applies the filters. Containers that do not run are shown if all are
// asked for, or some by a state.
func (c *cli) isShown(o *psOptions, x *Container, s status) (bool, error) {
	shown, err := matchesAll(o.filters, func(f filter) (bool, error) { return c.matches(x, s, f) })
	byState := slices.ContainsFunc(o.filters, func(f filter) bool { return f.kind == "status" || f.kind == "exited" })
	return shown && (o.all || byState || o.last > 0 || s == statusRunning || s == statusPaused), err
}

func psRowOf(x *Container, s status, whole bool) psRow {
	command, id := commandText(x.argv()), x.ID
	if !whole {
		id = x.shortID()
		if runes := []rune(command); len(runes) > 20 {
			command = string(runes[:19]) + "…"
		}
	}
	var mounts []string
	for _, m := range x.Mounts {
		mounts = append(mounts, m.Source)
	}
	return psRow{
		ID: id, Image: x.Image, Command: `"` + command + `"`, CreatedAt: x.Created.Local().Format("2006-01-02 15:04:05 -0700 MST"),
		RunningFor: ago(x.Created), State: string(s), Status: statusText(x, s), Names: x.Name, Networks: network(x), LocalVolumes: "0",
		Labels: labelText(x.Labels), Mounts: strings.Join(mounts, ","), Size: "0B", Ports: portText(x, s), labels: x.Labels,
	}
}

// commandText is a command as an engine shows it.
func commandText(argv []string) string {
	words := slices.Clone(argv)
	for i, word := range words {
		if i > 0 && strings.Contains(word, " ") {
			words[i] = "'" + word + "'"
		}
	}
	return strings.Join(words, " ")
}

func statusText(x *Container, s status) string {
	switch s {
	case statusRunning:
		return "Up " + dockerformat.Span(time.Since(x.Main.Started))
	case statusPaused:
		return "Up " + dockerformat.Span(time.Since(x.Main.Started)) + " (Paused)"
	case statusExited:
		return fmt.Sprintf("Exited (%d) %s", x.Main.ExitCode, ago(x.Main.Finished))
	case statusDead:
		return "Dead"
	}
	return "Created"
}

func ago(t time.Time) string { return dockerformat.Span(time.Since(t)) + " ago" }

func psHeads() map[string]string {
	return map[string]string{
		"ID": "CONTAINER ID", "Image": "IMAGE", "Command": "COMMAND", "RunningFor": "CREATED", "Status": "STATUS", "Ports": "PORTS",
		"Names": "NAMES", "CreatedAt": "CREATED AT", "State": "STATE", "Labels": "LABELS", "Mounts": "MOUNTS", "Networks": "NETWORKS",
		"Size": "SIZE", "LocalVolumes": "LOCAL VOLUMES",
	}
}
