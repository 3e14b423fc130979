// Package probe looks at a sandbox from inside, as a program of its own that
// the host runs there with the rights of any other, and reports what it found.
// It judges nothing, changes nothing and sends nothing.
package probe

import (
	"encoding/json"
	"io"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// Run writes what there is to see as one JSON document.
func Run(out io.Writer) error {
	report := findings.Report{
		Self: self(), Namespaces: namespaces(), Mounts: mounts(), Writable: writable(),
		Network: network(), Limits: limits(), Devices: devices(), Sockets: engineSockets(),
		Paths: paths(), Guest: guest(),
	}
	report.Processes, report.Hidden = processes()
	report.Modes = modes()
	report.Calls = calls() // last: a call that is allowed may leave a mark on us
	return json.NewEncoder(out).Encode(&report)
}

// bounded keeps a list within what a report may hold.
func bounded[T any](list []T) []T {
	return list[:min(len(list), findings.MaxEntries)]
}
