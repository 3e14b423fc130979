package egresscmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// proposal is a rule that would allow what was seen.
type proposal struct {
	Rule        string `json:"rule"`
	Connections int    `json:"connections"`
	Hosts       int    `json:"hosts"`
	LeftOut     string `json:"leftOut,omitempty"` // why it is not part of the file
}

func newProposeCommand(e *env) *cobra.Command {
	var f filter
	var withDenied, asJSON bool
	cmd := &cobra.Command{
		Use:   "propose",
		Short: "Write rules for what was reached in the mode learn, without putting them in force",
		Long: `Write rules for what was reached in the mode learn, without putting them in force: atoll egress
adopt shows what they would change, and asks. Names of telemetry are left out.`,
		Example: `  atoll egress propose
  atoll egress propose --since 1h --with-denied`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, found, err := e.find(cmd, &f, maxRecords, asJSON)
			if err != nil {
				return err
			}
			return e.propose(settings, proposals(cmd.Context(), seen(found, withDenied)), asJSON)
		},
	}
	f.add(cmd, "24h")
	cmd.Flags().BoolVar(&withDenied, "with-denied", false, "also rules for what was denied")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// seen counts the connections of learning, and those that were denied, by target.
func seen(found []record, withDenied bool) map[string]int {
	counts := map[string]int{}
	learned := fmt.Sprintf("mode: %q", config.EgressLearn)
	for i := range found {
		r := &found[i]
		if r.Event == audit.EgressOpened && strings.HasPrefix(r.Rule, learned) || withDenied && r.isDenied() && r.Port > 0 {
			counts[r.target()]++
		}
	}
	return counts
}

// proposals turns what was seen into rules: a preset where it covers a target, else the
// name itself.
func proposals(ctx context.Context, counts map[string]int) (list []proposal) {
	for _, p := range presetLines(ctx) {
		if strings.HasSuffix(p.Name, "-read") || p.Name == packagesPreset {
			continue
		}
		made := proposal{Rule: "preset:" + p.Name}
		for _, host := range p.Hosts {
			if n := counts[host] + counts[host+":443"]; n > 0 {
				made.Connections += n
				made.Hosts++
				delete(counts, host)
				delete(counts, host+":443")
			}
		}
		if made.Hosts > 0 {
			list = append(list, made)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, proposalFor(target, counts[target]))
	}
	return list
}

// packagesPreset has the hosts of several presets; the single ones are proposed.
const packagesPreset = "packages"

func proposalFor(target string, connections int) proposal {
	p := proposal{Rule: strings.TrimSuffix(target, ":443"), Connections: connections, Hosts: 1}
	if isTelemetry(target) {
		p.LeftOut = "it looks like telemetry"
	} else if err := (&config.Egress{}).AllowRule(p.Rule); err != nil {
		p.LeftOut = err.Error()
	}
	return p
}

// telemetry are words in the labels of hosts that collect how programs are used.
var telemetry = []string{"telemetry", "analytics", "metrics", "tracking", "sentry", "segment", "statsig", "mixpanel", "amplitude", "datadoghq", "newrelic", "doubleclick", "bugsnag"}

func isTelemetry(target string) bool {
	return slices.ContainsFunc(telemetry, func(word string) bool { return strings.Contains(target, word) })
}

// proposedFile is the file of the state directory that has the rules of the last propose.
func proposedFile(s *provide.Settings) string {
	return filepath.Join(s.Paths.AtollState, "egress", "proposed.json")
}

// propose writes the file of proposed rules and shows it.
func (e *env) propose(s *provide.Settings, list []proposal, asJSON bool) error {
	rules := []string{}
	for i := range list {
		if list[i].LeftOut == "" {
			rules = append(rules, list[i].Rule)
		}
	}
	text, err := json.Marshal(rules, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	path := proposedFile(s)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := provide.ReplaceFile(path, text); err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"proposals": console.OrEmpty(list), "file": path})
	}
	e.printProposals(list)
	return nil
}

func (e *env) printProposals(list []proposal) {
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "Nothing was learned: run a command with `atoll egress learn -- COMMAND` first.")
		return
	}
	for i := range list {
		p := &list[i]
		sign, note := "+", fmt.Sprintf("%d connections", p.Connections)
		if p.Hosts > 1 {
			note += fmt.Sprintf(", %d hosts covered", p.Hosts)
		}
		if p.LeftOut != "" {
			sign, note = "?", note+", left out: "+p.LeftOut
		}
		fmt.Fprintf(e.Out, "%s %-40s # %s\n", sign, fmt.Sprintf("%q", cmp.Or(p.Rule, "-")), console.Printable(note))
	}
	fmt.Fprintln(e.Err, "nothing is in force: `atoll egress adopt` shows what these rules change in your file, and asks")
}
