package egresscmd

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/egress/preset/client"
)

// presetLine is a preset with the hosts that it means on this machine.
type presetLine struct {
	Name  string   `json:"name"`
	About string   `json:"about"`
	Hosts []string `json:"hosts"`
	Error string   `json:"error,omitempty"` // why there are none
}

func newPresetsCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "presets",
		Short: "List presets of rules, and the hosts that they mean on this machine",
		Long: `List presets of rules. The hosts of package registries are those that the client on this
machine is configured for (npm config, go env GOPROXY, pip, cargo, apt), so that mirrors work.`,
		Example: "  atoll egress presets\n  atoll egress presets --json",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lines := presetLines(cmd.Context())
			if asJSON {
				return e.PrintJSON(map[string]any{"presets": lines})
			}
			t := console.NewTable("PRESET", "HOSTS HERE", "WHAT")
			for _, l := range lines {
				hosts := strings.Join(l.Hosts, " ")
				if l.Error != "" && hosts == "" {
					hosts = "none: " + l.Error
				}
				t.Add("preset:"+l.Name, console.Shortened(hosts, hostsWidth), l.About)
			}
			t.Print(e.Out)
			return nil
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// hostsWidth is how much of the hosts of a preset the table shows.
const hostsWidth = 60

func presetLines(ctx context.Context) (lines []presetLine) {
	found := client.Find(ctx, preset.Names())
	for _, name := range preset.Names() {
		p, _ := preset.Get(name)
		l := presetLine{Name: name, About: p.About, Hosts: []string{}}
		for _, r := range p.Rules {
			l.Hosts = append(l.Hosts, r.Hosts...)
			if r.Client == "" {
				continue
			}
			for _, at := range found[r.Client].Endpoints {
				l.Hosts = append(l.Hosts, net.JoinHostPort(at.Host, strconv.Itoa(at.Port)))
			}
			if err := found[r.Client].Err; err != nil {
				l.Error = err.Error()
			}
		}
		lines = append(lines, l)
	}
	return lines
}
