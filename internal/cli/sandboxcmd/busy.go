package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// runningCommand is a command that ends, or ended, with its sandbox.
type runningCommand struct {
	ID          string `json:"id"`
	Command     string `json:"command"`
	StartedAtMs int64  `json:"startedAtMs"`
}

func (c runningCommand) String() string {
	return fmt.Sprintf("%s (%s, running for %s)", console.Shortened(c.Command, commandWidth), c.ID, console.Ago(time.Since(time.UnixMilli(c.StartedAtMs))))
}

// commandsIn are the commands that run in a sandbox. A sandbox that does not answer
// is no reason to keep it: then only a note says so.
func (e *env) commandsIn(ctx context.Context, a *app.App, entry *sandbox.Entry) []runningCommand {
	if entry.Imported || entry.Backend == "" { // a row without a sandbox of ours
		return []runningCommand{}
	}
	processes, err := a.Running(ctx, entry.ContainerName)
	if err != nil {
		e.Notice(fmt.Sprintf("%s: what runs in it is not known: %v", entry.ContainerName, err))
	}
	return runningCommands(processes)
}

func runningCommands(processes []machine.Process) []runningCommand {
	list := []runningCommand{}
	for i := range processes {
		p := &processes[i]
		list = append(list, runningCommand{p.ID, p.Command, p.Started.UnixMilli()})
	}
	return list
}

func commandsText(list []runningCommand) string {
	var texts []string
	for _, c := range list {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, ", ")
}

// inUse says what keeps a sandbox, and what to do about it.
func inUse(err error, running []runningCommand, force string) error {
	switch {
	case !errors.Is(err, sandbox.ErrBusy):
		return err
	case len(running) == 0:
		return errhint.With(fmt.Errorf("%w: no command runs in it now, but another process holds it: an agent at work, or a gateway", err),
			"wait for its end, or give "+force)
	}
	return errhint.With(fmt.Errorf("%w: %s", err, commandsText(running)), "wait for the end of what runs, or end it with "+force)
}
