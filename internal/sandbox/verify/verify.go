// Package verify compares a live sandbox with what its policy promised. A probe
// runs inside and reports facts; here they are judged, next to what the host
// sees from outside. A promise that is not seen to hold is a gap.
//
// The probe's answers come from inside. Where isolation holds, nothing there can
// change them; where it does not, it might: a clean result tests how the sandbox was
// made, and proves nothing after an escape.
package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// Status is the outcome of one comparison.
type Status string

// The outcomes. A note is worth knowing and was not promised otherwise.
const (
	OK   Status = "ok"
	Gap  Status = "gap"
	Note Status = "note"
)

// Check is one promise, and what was found.
type Check struct {
	Ring     string `json:"ring"`
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Promised string `json:"promised"`
	Found    string `json:"found"`
	Remedy   string `json:"remedy,omitempty"`
}

// Evidence is all that is known of one sandbox.
type Evidence struct {
	Spec   *sandbox.Spec
	Inside *findings.Report
	// Guest is the process at the other end of the wire, as it sees itself.
	Guest Guest
	// Host are the namespaces of this process, by kind.
	Host map[string]string
	// Outside is what the host sees of the guest, where it can.
	Outside Outside
	// Below are the sockets of the host that lie below mounts.
	Below Sockets
}

// Guest is what the guest says of itself on the wire.
type Guest struct {
	PID      int
	Dumpable bool
}

// Executor runs programs in a sandbox.
type Executor interface {
	Exec(ctx context.Context, c *machine.Command) (*machine.Result, error)
}

// Machine is what is needed of a sandbox.
type Machine interface {
	Executor
	Info(ctx context.Context) (*wire.Info, error)
}

// Sandbox checks a live sandbox. Guest is the path of the guest program inside,
// pid the number that this host gives to process 1; 0 if it is elsewhere.
func Sandbox(ctx context.Context, m Machine, spec *sandbox.Spec, guest string, pid int) ([]Check, error) {
	info, err := m.Info(ctx)
	if err != nil {
		return nil, err
	}
	report, err := Probe(ctx, m, guest)
	if err != nil {
		return nil, err
	}
	return Checks(&Evidence{
		Spec: spec, Inside: report, Guest: Guest{PID: info.PID, Dumpable: info.Dumpable}, Host: HostNamespaces(), Outside: Observe(pid), Below: hostSockets(spec, pid),
	}), nil
}

// probeTimeout bounds a probe; it takes milliseconds on an idle machine.
const probeTimeout = 60 * time.Second

// Probe runs the guest's program inside, and returns what it reports.
func Probe(ctx context.Context, m Executor, guest string) (*findings.Report, error) {
	var out, errs bytes.Buffer
	result, err := m.Exec(ctx, &machine.Command{
		Argv: []string{guest, "probe"}, Dir: "/", Stdout: &out, Stderr: &errs,
		OutputLimit: findings.MaxBytes, Timeout: probeTimeout, EndTree: true,
	})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	if result.ExitCode != 0 {
		return nil, fmt.Errorf("probe: exit code %d: %.200q", result.ExitCode, errs.String())
	}
	var report findings.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, fmt.Errorf("probe: the sandbox answered something that is no report: %w", err)
	}
	return &report, nil
}

// Checks compares everything that was promised with what was found.
func Checks(e *Evidence) []Check {
	var checks []Check
	for _, judge := range []func(*Evidence) []Check{
		checkUser, checkPrivileges, checkCalls, checkNamespaces, checkFiles, checkMounts, checkNetwork, checkEgress, checkProcesses, checkGuest, checkLimits, checkDevices, checkBrowser,
	} {
		checks = append(checks, judge(e)...)
	}
	return checks
}

// Holds reports whether no promise was broken.
func Holds(checks []Check) bool {
	for _, c := range checks {
		if c.Status == Gap {
			return false
		}
	}
	return true
}

// compare is a check of one promise.
func compare(ring, name string, holds bool, promised, found string) Check {
	c := Check{Ring: ring, Name: name, Status: Gap, Promised: promised, Found: found}
	if holds {
		c.Status = OK
	}
	return c
}

func note(ring, name, promised, found string) Check {
	return Check{Ring: ring, Name: name, Status: Note, Promised: promised, Found: found}
}

// Configuration compares the configuration that a sandbox was made from with
// the one in force, by their hashes: all other promises are those of the latter.
func Configuration(inForce, made string) Check {
	return compare("policy", "configuration", inForce == made, "the one in force", yesNo(inForce == made, "the one in force", "an earlier one; atoll sandbox recreate applies the change"))
}
