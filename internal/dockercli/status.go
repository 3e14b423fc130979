package dockercli

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// status is the state of a container. A container runs as long as its main command
// does; its sandbox may run longer, until the next look at the container.
type status string

const (
	statusCreated status = "created"
	statusRunning status = "running"
	statusPaused  status = "paused"
	statusExited  status = "exited"
	statusDead    status = "dead"
)

// exitUnknown is the code of a main command whose end was not recorded: killed.
const exitUnknown = 137

// get finds a container and its current status.
func (c *cli) get(ctx context.Context, ref string) (*Container, status, error) {
	found, err := c.records.find(ref)
	if err != nil {
		return nil, "", err
	}
	s, err := c.currentStatus(ctx, found)
	if errors.Is(err, ErrNoSandbox) {
		return nil, "", noSuchContainer(ref) // its sandbox was removed by other means
	}
	return found, s, err
}

// currentStatus returns the status of a container, and records the end of its main
// command.
func (c *cli) currentStatus(ctx context.Context, x *Container) (status, error) {
	state, err := c.entry.State(ctx, x)
	if err != nil {
		return "", err
	}
	if x.Main.Attached && state != StatePaused && c.entry.Held(attachedLock(x)) {
		return statusRunning, nil // until its client has noted the end
	}
	switch state {
	case StateCreated:
		return statusCreated, nil
	case StatePaused:
		return statusPaused, nil
	case StateDead:
		return statusDead, nil
	case StateStopped:
		return x.statusWithoutSandbox(), nil
	}
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return "", err
	}
	defer release()
	if mainRuns(ctx, m, x) {
		return statusRunning, nil
	}
	return c.recordEnd(ctx, x, m)
}

// mainRuns asks the guest whether the main command runs. A guest that does not
// answer counts as running.
func mainRuns(ctx context.Context, m *machine.Machine, x *Container) bool {
	return x.Main.Process != "" && runs(ctx, m, x.Main.Process)
}

func runs(ctx context.Context, m *machine.Machine, id string) bool {
	p, err := m.Process(ctx, id)
	return err == nil && p.Result == nil || err != nil && !errors.Is(err, machine.ErrNoProcess)
}

func attachedLock(x *Container) string { return "main:" + x.ID }

// recordEnd records how the main command ended, and stops the sandbox. It reads the
// record again, which may have changed.
func (c *cli) recordEnd(ctx context.Context, x *Container, m *machine.Machine) (status, error) {
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return "", err
	}
	defer unlock()
	state, err := c.reload(ctx, x)
	switch {
	case err != nil:
		return "", err
	case state != StateRunning:
		return x.statusWithoutSandbox(), nil
	case mainRuns(ctx, m, x):
		return statusRunning, nil
	}
	if err := c.finishMain(ctx, x, m); err != nil {
		return "", err
	}
	return x.statusWithoutSandbox(), nil
}

// statusWithoutSandbox is the status of a container whose sandbox does not run: one whose
// command never began has only been created, also if a copy started the sandbox.
func (c *Container) statusWithoutSandbox() status {
	if c.Main.Started.IsZero() {
		return statusCreated
	}
	return statusExited
}

// finishMain saves the output and the result of a main command that has ended, or is
// about to, and stops its sandbox. The container's lock is held.
func (c *cli) finishMain(ctx context.Context, x *Container, m *machine.Machine) error {
	if x.Main.signalTarget() != "" {
		x.Main.Finished, x.Main.ExitCode = time.Now().UTC(), exitUnknown
	}
	if x.Main.Process != "" {
		if logs, err := m.Logs(ctx, x.Main.Process, machine.LogRequest{}); err == nil {
			x.Main.setResult(logs.Process.Result)
			if err := errors.Join(c.saveOutput(x, "stdout", logs.Stdout), c.saveOutput(x, "stderr", logs.Stderr)); err != nil {
				return err
			}
		}
	}
	x.Main.Process, x.Main.Attended, x.Main.Attached, x.Guest = "", "", false, nil
	if err := c.containers.End(ctx, x); err != nil {
		return err
	}
	if x.AutoRemove {
		return c.remove(ctx, x)
	}
	return c.records.save(x)
}

// setResult sets how the command ended.
func (m *MainCommand) setResult(r *machine.Result) {
	if r != nil {
		m.ExitCode, m.OOM = r.ExitCode, r.OOM
	}
}

// saveOutput writes the buffered part of one output, with gaps marked.
func (c *cli) saveOutput(x *Container, stream string, log machine.Log) error {
	return os.WriteFile(c.records.outputPath(x.Name, stream), []byte(joinLog(log)), 0o600)
}

// joinLog is an output as far as it was kept.
func joinLog(log machine.Log) string {
	var b strings.Builder
	next := int64(0)
	for _, chunk := range log.Chunks {
		if chunk.Offset > next {
			b.WriteString("\n[" + strconv.FormatInt(chunk.Offset-next, 10) + " bytes were not kept]\n")
		}
		b.Write(chunk.Bytes)
		next = chunk.Offset + int64(len(chunk.Bytes))
	}
	return b.String()
}

// remove removes the sandbox, then the record.
func (c *cli) remove(ctx context.Context, x *Container) error {
	if err := c.containers.Remove(ctx, x); err != nil {
		return err
	}
	return c.records.drop(x)
}
