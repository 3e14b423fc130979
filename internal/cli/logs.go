package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// followWait is how long one question waits for new output.
const followWait = 20 * time.Second

type logsOptions struct {
	whoFlags
	follow bool
}

func newLogsCommand(e *env) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs ID [flags]",
		Short: "Show what a command in a sandbox wrote",
		Long: `Show what a command in a sandbox wrote, its standard output and standard error
each on ours. ID is one that ps shows, or the beginning of it. Of a long output
the sandbox keeps the beginning and the end.`,
		Args: exactlyOne("id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runLogs(cmd.Context(), e, o, args[0])
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the command ends")
	return cmd
}

func runLogs(ctx context.Context, e *env, o logsOptions, id string) error {
	handles, err := e.attach(ctx, o.whoFlags, nil)
	if err != nil {
		return err
	}
	defer releaseAll(handles)
	m, p, err := findProcess(ctx, handles, id)
	if err != nil {
		return err
	}
	return e.printLogs(ctx, m, p.ID, o.follow)
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
		return nil, nil, advice.With(fmt.Errorf("process %q: %w", id, machine.ErrNoProcess), "`atoll sandbox ps` shows what there is")
	case len(found) > 1:
		return nil, nil, fmt.Errorf("process %q: %d processes begin so", id, len(found))
	}
	return at, &found[0], nil
}

// printLogs prints what there is and, if asked to, what is still to come.
func (e *env) printLogs(ctx context.Context, m *machine.Machine, id string, follow bool) error {
	var from machine.LogRequest
	for {
		logs, err := m.Logs(ctx, id, from)
		if err != nil {
			return err
		}
		if err := errors.Join(e.printLog(e.Out, logs.Stdout, from.Stdout), e.printLog(e.Err, logs.Stderr, from.Stderr)); err != nil {
			return err
		}
		from.Stdout, from.Stderr = logs.Stdout.Next, logs.Stderr.Next
		p := logs.Process
		all := from.Stdout >= p.Stdout && from.Stderr >= p.Stderr
		if all && (!follow || p.Result != nil) {
			return nil
		}
		if all {
			from.Wait = followWait
		}
	}
}

// printLog prints the pieces of one output as they are.
func (e *env) printLog(w io.Writer, l machine.Log, from int64) error {
	for _, chunk := range l.Chunks {
		if lost := chunk.Offset - from; lost > 0 {
			e.notice(fmt.Sprintf("%d bytes are no longer kept", lost))
		}
		from = chunk.Offset + int64(len(chunk.Bytes))
		if _, err := w.Write(chunk.Bytes); err != nil {
			return err
		}
	}
	return nil
}
