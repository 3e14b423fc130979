package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/runview"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

const (
	// maxTask bounds a task: it is one argument of the program.
	maxTask = 128<<10 - 1
	// keptErrors is what is kept of the program's complaints.
	keptErrors = 4 << 10
)

// readTask takes the task from standard input where --print is given without one.
func (s *start) readTask() error {
	if s.task == "" && (s.print || s.asJSON) && !console.IsInteractive(s.In) {
		text, err := io.ReadAll(io.LimitReader(s.In, maxTask+1))
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		s.task = strings.TrimSpace(string(text))
	}
	switch {
	case (s.print || s.asJSON) && s.task == "":
		return console.WithCode(console.ExitUsage, errhint.With(errors.New("there is no task"), "write it after the flags, or give it on standard input"))
	case len(s.task) > maxTask || strings.ContainsRune(s.task, 0):
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("the task has more than %d bytes, or a zero byte", maxTask), "put it into a file of the directory, and name that"))
	case s.task == "" && s.preset.Args.Task != nil && !s.hasTerminal():
		return console.WithCode(console.ExitUsage, errhint.With(errors.New("there is neither a terminal nor a task"), "give a task: atoll "+s.preset.ID+` "…"`))
	}
	return nil
}

// executeTask runs the program for one task, shows at a terminal what it does, and
// prints its answer.
func (s *start) executeTask(ctx context.Context, command *machine.Command) error {
	view := &runview.View{Env: s.Env}
	events, err := run.NewEventReader(s.preset.Output.Stream, func(e run.Event) {
		if s.IsTerminal && !s.asJSON && e.Type != "log" {
			view.Event(&e)
		}
	})
	if err != nil {
		return err
	}
	out, complaints := &tailbuf.Writer{Most: envelope.MaxOutput}, &tailbuf.Writer{Most: keptErrors}
	command.Stdin, command.Stdout, command.Stderr, command.EndTree = nil, io.MultiWriter(out, events.Stdout()), complaints, true
	result, err := s.box.Exec(ctx, command)
	events.Flush()
	if err != nil {
		return sandboxcmd.CommandEnd(command, result, err)
	}
	variant := run.FromPreset(s.preset).Variant()
	answer, readErr := variant.Read(out.Bytes())
	if err := s.taskFailure(answer, readErr, result, complaints.Bytes()); err != nil || s.asJSON {
		return err
	}
	if !view.Spoken() {
		fmt.Fprintln(s.ForeignOut(), strings.TrimRight(s.report.Text, "\n"))
	}
	return nil
}

// taskFailure notes the answer, and returns why the task failed; nil if it did not.
func (s *start) taskFailure(answer *envelope.Envelope, readErr error, result *machine.Result, complaints []byte) error {
	s.report.ExitCode = result.ExitCode
	if answer != nil {
		s.report.Text = answer.Text()
	}
	switch {
	case answer != nil && answer.Meta.Error != nil:
		return console.WithCode(max(result.ExitCode, 1), fmt.Errorf("%s: %s", s.preset.Title, answer.Meta.Error.Message))
	case result.ExitCode != 0 || readErr != nil:
		text := strings.TrimSpace(strings.ToValidUTF8(string(complaints), "\uFFFD"))
		if text == "" && readErr != nil {
			text = readErr.Error()
		}
		return console.WithCode(max(result.ExitCode, 1), fmt.Errorf("%s ended with exit code %d: %s", s.preset.Title, result.ExitCode, text))
	}
	return nil
}
