package egresscmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// sandboxStatus is what one sandbox did.
type sandboxStatus struct {
	Sandbox     string        `json:"sandbox"`
	Agent       string        `json:"agent,omitempty"`
	Connections int64         `json:"connections"`
	Open        int64         `json:"open"` // begun and not ended, by the audit log
	BytesOut    int64         `json:"bytesOut"`
	BytesIn     int64         `json:"bytesIn"`
	Denied      []deniedCount `json:"denied"` // most frequent first
}

// deniedCount is how often something was refused.
type deniedCount struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

func newStatusCommand(e *env) *cobra.Command {
	var f filter
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show what sandboxes reached and what was denied, by sandbox",
		Example: "  atoll egress status\n  atoll egress status --since 1h --json",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, found, err := e.find(cmd, &f, maxRecords, asJSON)
			if err != nil {
				return err
			}
			list := statusOf(found)
			if asJSON {
				return e.PrintJSON(map[string]any{"sandboxes": console.OrEmpty(list)})
			}
			e.printStatus(list)
			return nil
		},
	}
	f.add(cmd, "24h")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// statusOf sums records up by sandbox.
func statusOf(found []record) []*sandboxStatus {
	all := map[string]*sandboxStatus{}
	denied := map[string]map[string]*deniedCount{}
	for i := range found {
		r := &found[i]
		s := all[r.Sandbox]
		if s == nil {
			s = &sandboxStatus{Sandbox: r.Sandbox, Denied: []deniedCount{}}
			all[r.Sandbox], denied[r.Sandbox] = s, map[string]*deniedCount{}
		}
		s.Agent = cmp.Or(r.Agent, s.Agent)
		s.count(r, denied[r.Sandbox])
	}
	for name, counts := range denied {
		targets := slices.Sorted(maps.Keys(counts))
		for i, target := range targets {
			if i+1 < len(targets) && strings.HasPrefix(targets[i+1], target+":") {
				continue // the lookup before a connection that was refused as well
			}
			all[name].Denied = append(all[name].Denied, *counts[target])
		}
		slices.SortFunc(all[name].Denied, func(a, b deniedCount) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Target, b.Target))
		})
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *sandboxStatus) int { return cmp.Compare(a.Sandbox, b.Sandbox) })
}

func (s *sandboxStatus) count(r *record, denied map[string]*deniedCount) {
	switch r.Event {
	case audit.EgressOpened:
		s.Connections++
		s.Open++
	case audit.EgressClosed:
		s.Open = max(s.Open-1, 0)
		s.BytesOut += r.BytesOut
		s.BytesIn += r.BytesIn
	case audit.EgressDenied:
		d := denied[r.target()]
		if d == nil {
			d = &deniedCount{Target: r.target()}
			denied[r.target()] = d
		}
		d.Count++
		d.Reason = cmp.Or(r.Reason, r.Denied, d.Reason)
	}
}

// shownDenials is how many refused targets of a sandbox are listed.
const shownDenials = 10

func (e *env) printStatus(list []*sandboxStatus) {
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No sandbox has connected to anything, and nothing was denied.")
		return
	}
	for _, s := range list {
		fmt.Fprintf(e.Out, "%s  %d connections, %d open, out %d KiB, in %d KiB\n", e.Style().Bold(console.Printable(s.Sandbox)), s.Connections, s.Open, s.BytesOut>>10, s.BytesIn>>10)
		for i, d := range s.Denied {
			if i == shownDenials {
				fmt.Fprintf(e.Out, "  and %d more: atoll egress log --denied\n", len(s.Denied)-i)
				break
			}
			fmt.Fprintf(e.Out, "  denied %d × %s: %s\n", d.Count, console.Printable(d.Target), console.Printable(d.Reason))
		}
	}
}
