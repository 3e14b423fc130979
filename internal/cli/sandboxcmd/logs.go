package sandboxcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// followWait is how long one question waits for new output.
const followWait = 20 * time.Second

type logsOptions struct {
	console.SubjectFlags
	follow bool
	asJSON bool
}

func newLogsCommand(e *env) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs ID [flags]",
		Short: "Show what a command in a sandbox wrote",
		Example: `  atoll sandbox logs 5VQX
  atoll sandbox logs 5VQX --agent main -f`,
		Long: `Show what a command in a sandbox wrote, its standard output and standard error
each on ours; on a terminal, what could act there is escaped. ID is one that ps shows, or the beginning of it. Of a long output
the sandbox keeps the beginning and the end.`,
		Args: console.ExactlyOne("id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runLogs(cmd.Context(), e, o, args[0])
		},
	}
	o.Add(cmd)
	o.addOutput(cmd)
	return cmd
}

// addOutput adds the flags that say how output is shown.
func (o *logsOptions) addOutput(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the command ends")
	console.JSONFlag(cmd, &o.asJSON)
}

func runLogs(ctx context.Context, e *env, o logsOptions, id string) error {
	handles, err := e.attach(ctx, o.SubjectFlags, nil)
	if err != nil {
		return err
	}
	defer releaseAll(handles)
	return e.showLogs(ctx, o, handles, id)
}

// showLogs shows the output of the one command whose id begins so.
func (e *env) showLogs(ctx context.Context, o logsOptions, handles []*sandbox.Handle, id string) error {
	m, p, err := findProcess(ctx, handles, id)
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.captureLogs(ctx, m, p.ID, o.follow)
	}
	return (&logPrinter{env: e, stdout: e.ForeignOut(), stderr: e.ForeignErr()}).run(ctx, m, p.ID, o.follow)
}

// findProcess finds the one process whose id begins so.
func findProcess(ctx context.Context, handles []*sandbox.Handle, id string) (*machine.Machine, *machine.Process, error) {
	var at *machine.Machine
	var found []machine.Process
	for _, h := range handles {
		list, err := h.Machine.Processes(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range list {
			if strings.HasPrefix(p.ID, strings.ToUpper(id)) {
				at, found = h.Machine, append(found, p)
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, nil, errhint.With(fmt.Errorf("process %q: %w", id, machine.ErrNoProcess), "`atoll sandbox ps` shows what there is")
	case len(found) > 1:
		return nil, nil, console.Ambiguous("process", id, processIDs(found))
	}
	return at, &found[0], nil
}

func processIDs(list []machine.Process) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

// captureLogs prints both outputs as one JSON object.
func (e *env) captureLogs(ctx context.Context, m *machine.Machine, id string, follow bool) error {
	var stdout, stderr bytes.Buffer
	if err := (&logPrinter{env: e, stdout: &stdout, stderr: &stderr}).run(ctx, m, id, follow); err != nil {
		return err
	}
	return e.PrintJSON(map[string]any{"id": id, "stdout": bytesText(stdout.Bytes()), "stderr": bytesText(stderr.Bytes())})
}

// logPrinter prints the outputs of a command to two writers.
type logPrinter struct {
	env            *env
	stdout, stderr io.Writer
}

// run prints what there is and, if asked to, what is still to come.
func (p *logPrinter) run(ctx context.Context, m *machine.Machine, id string, follow bool) error {
	var from machine.LogRequest
	for {
		logs, err := m.Logs(ctx, id, from)
		if err != nil {
			return err
		}
		if err := errors.Join(p.env.printLog(p.stdout, logs.Stdout, from.Stdout), p.env.printLog(p.stderr, logs.Stderr, from.Stderr)); err != nil {
			return err
		}
		from.Stdout, from.Stderr = logs.Stdout.Next, logs.Stderr.Next
		state := logs.Process
		all := from.Stdout >= state.Stdout && from.Stderr >= state.Stderr
		if all && (!follow || state.Result != nil) {
			return nil
		}
		if all {
			from.Wait = followWait
		}
	}
}

// printLog prints the pieces of one output.
func (e *env) printLog(w io.Writer, l machine.Log, from int64) error {
	for _, chunk := range l.Chunks {
		if lost := chunk.Offset - from; lost > 0 {
			e.Notice(fmt.Sprintf("%d bytes are no longer kept", lost))
		}
		from = chunk.Offset + int64(len(chunk.Bytes))
		if _, err := w.Write(chunk.Bytes); err != nil {
			return err
		}
	}
	return nil
}
