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

// status is where a container is in its life. A container runs as long as its
// main command does; its sandbox may live longer, until somebody looks.
type status string

const (
	statusCreated status = "created"
	statusRunning status = "running"
	statusPaused  status = "paused"
	statusExited  status = "exited"
	statusDead    status = "dead"
)

// exitUnknown is the code of a main command whose end nobody saw: killed.
const exitUnknown = 137

// get finds a container and looks how it is.
func (c *cli) get(ctx context.Context, ref string) (*Container, status, error) {
	found, err := c.shelf.find(ref)
	if err != nil {
		return nil, "", err
	}
	s, err := c.look(ctx, found)
	if errors.Is(err, ErrNoSandbox) {
		return nil, "", noSuchContainer(ref) // its sandbox was removed by other means
	}
	return found, s, err
}

// look asks how a container is, and notes the end of its main command.
func (c *cli) look(ctx context.Context, x *Container) (status, error) {
	state, err := c.boxes.State(ctx, x)
	if err != nil {
		return "", err
	}
	if x.Main.Attached && state != StatePaused && c.boxes.Held(attachedLock(x)) {
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
		return x.afterwards(), nil
	}
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return "", err
	}
	defer release()
	if mainRuns(ctx, m, x) {
		return statusRunning, nil
	}
	return c.settle(ctx, x, m)
}

// mainRuns asks the guest. One that does not answer counts as running: it will
// be asked again.
func mainRuns(ctx context.Context, m *machine.Machine, x *Container) bool {
	return x.Main.Process != "" && runs(ctx, m, x.Main.Process)
}

func runs(ctx context.Context, m *machine.Machine, id string) bool {
	p, err := m.Process(ctx, id)
	return err == nil && p.Result == nil || err != nil && !errors.Is(err, machine.ErrNoProcess)
}

func attachedLock(x *Container) string { return "main:" + x.ID }

// settle notes how the main command ended, and ends the sandbox with it. The
// record may have been changed since it was read: it is read again.
func (c *cli) settle(ctx context.Context, x *Container, m *machine.Machine) (status, error) {
	unlock, err := c.boxes.Lock(ctx, x.Name)
	if err != nil {
		return "", err
	}
	defer unlock()
	state, err := c.again(ctx, x)
	switch {
	case err != nil:
		return "", err
	case state != StateRunning:
		return x.afterwards(), nil
	case mainRuns(ctx, m, x):
		return statusRunning, nil
	}
	if err := c.bury(ctx, x, m); err != nil {
		return "", err
	}
	return x.afterwards(), nil
}

// afterwards is the status of a container whose sandbox does not run: one whose
// command never began has only been created, also if a copy started the sandbox.
func (c *Container) afterwards() status {
	if c.Main.Started.IsZero() {
		return statusCreated
	}
	return statusExited
}

// bury keeps the output and the result of a main command that has ended, or is
// about to, and ends its sandbox. The container's lock is held.
func (c *cli) bury(ctx context.Context, x *Container, m *machine.Machine) error {
	if x.Main.told() != "" {
		x.Main.Finished, x.Main.ExitCode = time.Now().UTC(), exitUnknown
	}
	if x.Main.Process != "" {
		if logs, err := m.Logs(ctx, x.Main.Process, machine.LogRequest{}); err == nil {
			x.Main.note(logs.Process.Result)
			if err := errors.Join(c.keep(x, "stdout", logs.Stdout), c.keep(x, "stderr", logs.Stderr)); err != nil {
				return err
			}
		}
	}
	x.Main.Process, x.Main.Attended, x.Main.Attached, x.Guest = "", "", false, nil
	if err := c.boxes.End(ctx, x); err != nil {
		return err
	}
	if x.AutoRemove {
		return c.remove(ctx, x)
	}
	return c.shelf.save(x)
}

// note takes over how a command ended.
func (m *Life) note(r *machine.Result) {
	if r != nil {
		m.ExitCode, m.OOM = r.ExitCode, r.OOM
	}
}

// keep writes what is left of one output, gaps marked.
func (c *cli) keep(x *Container, stream string, log machine.Log) error {
	return os.WriteFile(c.shelf.outputPath(x.Name, stream), []byte(joinLog(log)), 0o600)
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

// remove takes sandbox and record away, in that order.
func (c *cli) remove(ctx context.Context, x *Container) error {
	if err := c.boxes.Remove(ctx, x); err != nil {
		return err
	}
	return c.shelf.drop(x)
}
