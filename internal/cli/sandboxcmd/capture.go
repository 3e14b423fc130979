package sandboxcmd

import (
	"bytes"
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// captureLimit bounds each stream of a command whose output becomes JSON.
const captureLimit = 16 << 20

// commandReport is the JSON form of a command's end.
type commandReport struct {
	Sandbox    string   `json:"sandbox"`
	Image      string   `json:"image"` // what it is made of; "host" is this machine's own programs
	Argv       []string `json:"argv"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	ExitCode   int      `json:"exitCode"`
	Signal     string   `json:"signal,omitempty"`
	TimedOut   bool     `json:"timedOut"`
	OOM        bool     `json:"oom"`
	Full       string   `json:"full,omitempty"` // the limit of the workspace that it outgrew
	Truncated  bool     `json:"truncated"`
	DurationMs int64    `json:"durationMs"`
	CPUMs      int64    `json:"cpuMs"`
	MaxRSS     int64    `json:"maxRss"`
	Created    bool     `json:"created"` // the sandbox was made for this command
	Notices    []string `json:"notices"`
	Egress     []string `json:"egress,omitempty"` // what was denied
}

func (e *env) captureCommand(ctx context.Context, s *provide.ReadySandbox, o commandOptions, command *machine.Command) error {
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr, command.OutputLimit = &out, &errs, captureLimit
	result, err := s.Exec(ctx, command)
	if err != nil {
		return commandEnd(command, nil, err)
	}
	report := commandReport{
		Sandbox: s.Name, Image: s.Plan.Spec.Image, Argv: command.Argv,
		Stdout: bytesText(out.Bytes()), Stderr: bytesText(errs.Bytes()),
		ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, OOM: result.OOM, Full: string(result.QuotaExceeded),
		Truncated:  result.Stdout.Lost+result.Stderr.Lost > 0,
		DurationMs: result.Duration.Milliseconds(), CPUMs: (result.User + result.System).Milliseconds(), MaxRSS: result.MaxRSS,
		Created: s.Created, Notices: console.OrEmpty(s.Notices),
	}
	if o.denials != nil {
		report.Egress = o.denials()
	}
	if err := e.PrintJSON(report); err != nil {
		return err
	}
	if end, ok := errors.AsType[*console.ExitError](commandEnd(command, result, nil)); ok {
		return console.WithCode(end.Code, nil)
	}
	return nil
}

// bytesText is output as JSON can carry it: bytes that are no text are replaced.
func bytesText(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\uFFFD"))) }
