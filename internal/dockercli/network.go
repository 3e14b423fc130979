package dockercli

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
)

// errNoNetwork is a name that no network has.
var errNoNetwork = errors.New("not found")

type inspectedNet struct {
	Name       string
	ID         string `json:"Id"`
	Scope      string
	Driver     string
	Internal   bool
	Containers map[string]string
	Options    map[string]string
	Labels     map[string]string
}

// noneID is the id of the network that is none, everywhere the same.
const noneID = "0000000000000000000000000000000000000000000000000000000000000000"

func (c *cli) networks(ctx context.Context) ([]Network, error) {
	if c.images == nil {
		return nil, ErrElsewhere
	}
	list, err := c.images.Networks(ctx)
	return append([]Network{{Name: "none", ID: noneID, Driver: "null"}}, list...), err
}

func (c *cli) inspectNetwork(ctx context.Context, ref string) (any, error) {
	list, err := c.networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.Name == ref || n.ID == ref {
			return &inspectedNet{Name: n.Name, ID: n.ID, Scope: "local", Driver: n.Driver,
				Containers: map[string]string{}, Options: map[string]string{}, Labels: map[string]string{}}, nil
		}
	}
	return nil, fmt.Errorf("network %s %w", ref, errNoNetwork)
}

func (c *cli) networkInspectVerb() *verb {
	var format string
	return &verb{usage: " [OPTIONS] NETWORK [NETWORK...]", least: 1, most: -1,
		flags: func(f *flagSet) { f.text(&format, "format", "f"); f.boolean(new(bool), "verbose", "v") },
		run: func(ctx context.Context, args []string) error {
			return c.inspectAll(args, format, func(ref string) (any, error) { return c.inspectNetwork(ctx, ref) })
		}}
}

func (c *cli) networkListVerb() *verb {
	var format string
	var quiet, whole bool
	var filters []filter
	return &verb{usage: " [OPTIONS]", most: 0,
		flags: func(f *flagSet) {
			f.text(&format, "format", "")
			f.boolean(&quiet, "quiet", "q")
			f.boolean(&whole, "no-trunc", "")
			f.filters(&filters)
		},
		run: func(ctx context.Context, _ []string) error {
			list, err := c.networks(ctx)
			if err != nil {
				return err
			}
			type row struct{ ID, Name, Driver, Scope string }
			rows := []row{}
			for _, n := range list {
				if shown, err := matchesAll(filters, func(f filter) (bool, error) { return matchesNetwork(n, f) }); err != nil {
					return err
				} else if !shown {
					continue
				}
				if !whole {
					n.ID = n.ID[:min(12, len(n.ID))]
				}
				rows = append(rows, row{n.ID, n.Name, n.Driver, "local"})
				if quiet {
					fmt.Fprintln(c.Out, n.ID)
				}
			}
			if quiet {
				return nil
			}
			return dockerformat.PrintTable(c.Out, format, rows, "table {{.ID}}\t{{.Name}}\t{{.Driver}}\t{{.Scope}}",
				map[string]string{"ID": "NETWORK ID", "Name": "NAME", "Driver": "DRIVER", "Scope": "SCOPE"})
		}}
}

// networkCreateVerb is there to say no: sandboxes have one wire and no network.
func (c *cli) networkCreateVerb() *verb {
	var driver string
	return &verb{usage: " [OPTIONS] NETWORK", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.text(&driver, "driver", "d")
			f.boolean(new(bool), "internal", "")
			f.list(new([]string), "label", "")
			f.refuse(whyNoNet, "attachable!", "ingress!", "ipv6!", "ipv4!", "gateway", "ip-range", "ipam-driver", "ipam-opt", "subnet", "opt,o",
				"aux-address", "scope", "config-from", "config-only!")
		},
		run: func(ctx context.Context, args []string) error {
			list, err := c.networks(ctx)
			if err != nil {
				return err
			}
			for _, n := range list {
				if n.Name == args[0] {
					return fmt.Errorf("network with name %s already exists", args[0])
				}
			}
			return fmt.Errorf("network %s is not made: a sandbox has no network but its wire to the host", args[0])
		}}
}
