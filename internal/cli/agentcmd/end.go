package agentcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

// report is what --json prints of a task.
type report struct {
	Agent     string              `json:"agent"`
	Directory string              `json:"directory"`
	Sandbox   string              `json:"sandbox"`
	Run       string              `json:"run"`
	Model     string              `json:"model,omitempty"`
	Text      string              `json:"text"`
	Error     string              `json:"error,omitempty"`
	ExitCode  int                 `json:"exitCode"`
	Bill      *run.Bill           `json:"bill,omitempty"`
	Changes   *dirsandbox.Changes `json:"changes,omitempty"`
	Branch    *delivered          `json:"branch,omitempty"` // of --branch
}

// end says what became of a use, or prints it as JSON.
func (s *start) end(ctx context.Context, failure error) error {
	err := s.collect(context.WithoutCancel(ctx))
	if err != nil && s.accept {
		failure = console.FirstOf(failure, fmt.Errorf("apply what passes: %w", err))
	} else if err != nil {
		s.Logger().WarnContext(ctx, "what changed is not known; see `atoll sync status`", "error", err)
	}
	failure = console.FirstOf(failure, s.deliver(context.WithoutCancel(ctx), failure))
	if !s.asJSON {
		s.repeatNotes()
		s.report.Changes.Say(s.Err, s.branch == "")
		s.sayBranch()
		s.sayBill()
		return failure
	}
	s.report.Agent, s.report.Directory, s.report.Sandbox, s.report.Run, s.report.Model = s.preset.ID, s.dir.Path, s.box.Name, s.run, s.model
	if exit, ok := errors.AsType[*console.ExitError](failure); ok && exit.Err != nil {
		s.report.Error = exit.Err.Error()
		failure = console.WithCode(exit.Code, nil)
	}
	return console.FirstOf(s.PrintJSON(&s.report), failure)
}

// note says something before the program begins.
func (s *start) note(text string) {
	s.notes = append(s.notes, text)
	s.Notice(text)
}

// repeatNotes says once more what a program with a screen of its own has wiped away.
func (s *start) repeatNotes() {
	if s.preset.Commands || s.isAlone() || !s.hasTerminal() {
		return
	}
	for _, text := range s.notes {
		s.Notice(text)
	}
}

// collect finds out what changed in the directory's overlay, and with --accept applies
// what passes. After a single command of a shell nothing is collected.
func (s *start) collect(ctx context.Context) (err error) {
	if s.box.Plan.Agent.Sandbox.WorkspaceAccess != config.AccessOverlay || s.preset.Commands && len(s.added) > 0 && !s.accept {
		return nil
	}
	s.report.Changes, err = dirsandbox.CollectChanges(ctx, s.Env, s.dir)
	if s.accept {
		err = errors.Join(err, s.report.Changes.Accept(ctx))
	}
	return err
}

// sayBill says what the models cost.
func (s *start) sayBill() {
	b := s.report.Bill
	if b == nil || b.Calls == 0 {
		return
	}
	cost := usage.Dollars(b.MicroUSD)
	if b.Unpriced == b.Calls {
		cost = "without a known price"
	} else if b.Unpriced > 0 {
		cost = fmt.Sprintf("%s and %d calls without a known price", cost, b.Unpriced)
	}
	fmt.Fprintf(s.Err, "models   %d calls, %d tokens in, %d out, %s (atoll runs show %s)\n", b.Calls, b.Input, b.Output, cost, s.run)
}
