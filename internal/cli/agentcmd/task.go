package agentcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

const (
	// maxTask bounds a task: it is one argument of the program.
	maxTask = 128<<10 - 1
	// maxLine bounds a line of output that is read as an event.
	maxLine = 256 << 10
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

// executeTask runs the program for one task, shows what it does, and prints its answer.
func (s *start) executeTask(ctx context.Context, command *machine.Command) error {
	variant := run.FromPreset(s.preset).Variant()
	view := &taskView{start: s}
	out := &eventWriter{kept: tailbuf.Writer{Most: envelope.MaxOutput}, line: func(line []byte) {
		for _, e := range variant.Stream(line) {
			view.show(&e)
		}
	}}
	if variant.Stream == nil {
		out.line = func([]byte) {}
	}
	complaints := &tailbuf.Writer{Most: keptErrors}
	command.Stdin, command.Stdout, command.Stderr, command.EndTree = nil, out, complaints, true
	result, err := s.box.Exec(ctx, command)
	out.end()
	if err != nil {
		return sandboxcmd.CommandEnd(command, result, err)
	}
	answer, readErr := variant.Read(out.kept.Bytes())
	return s.answer(view, answer, readErr, result, complaints.Bytes())
}

// answer prints what the program answered, and turns a failure into an error.
func (s *start) answer(view *taskView, answer *envelope.Envelope, readErr error, result *machine.Result, complaints []byte) error {
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
	if !s.asJSON {
		view.finish(s.report.Text)
	}
	return nil
}

// eventWriter keeps the end of an output, and passes on every line that is not too long.
type eventWriter struct {
	kept tailbuf.Writer
	line func([]byte)
	part []byte
	long bool
}

func (w *eventWriter) Write(p []byte) (int, error) {
	n := len(p)
	_, _ = w.kept.Write(p)
	for {
		line, rest, found := bytes.Cut(p, []byte{'\n'})
		if w.long = w.long || len(w.part)+len(line) > maxLine; !w.long {
			w.part = append(w.part, line...)
		}
		if !found {
			return n, nil
		}
		w.end()
		p = rest
	}
}

// end passes on the line that has come so far.
func (w *eventWriter) end() {
	if !w.long && len(w.part) > 0 {
		w.line(w.part)
	}
	w.part, w.long = w.part[:0], false
}
