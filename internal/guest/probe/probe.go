// Package probe examines a sandbox from inside. The host runs it as a command with the
// rights of any other program there. It reports what it finds, without a verdict, changes
// nothing, and sends nothing beyond the loopback interface.
package probe

import (
	"encoding/json"
	"io"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// Run writes the report as one JSON document.
func Run(out io.Writer) error {
	report := findings.Report{
		Self: self(), Namespaces: namespaces(), Mounts: mounts(), Writable: writable(),
		Network: network(), Limits: limits(), Devices: devices(), Sockets: engineSockets(),
		Paths: paths(), Guest: guest(),
	}
	report.Processes, report.Hidden = processes()
	report.Renderers = renderers()
	report.Modes = modes()
	report.Calls = calls() // last: a call that is allowed may change this process
	return json.NewEncoder(out).Encode(&report)
}

// capped cuts a list to what a report may hold.
func capped[T any](list []T) []T {
	return list[:min(len(list), findings.MaxEntries)]
}
