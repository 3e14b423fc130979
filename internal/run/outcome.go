package run

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// stderrShown bounds what of a program's complaints is in a failure.
const stderrShown = 2000

// keptStderr is how much of the end of a program's standard error is kept.
const keptStderr = 16 << 10

// output is the end of what a program printed.
type output struct{ stdout, stderr tailbuf.Writer }

// outcome is what the end of a program means. The text may be there beside a
// failure.
type outcome struct {
	text       string
	selfReport SelfReport
	failure    *Failure
}

func outcomeOf(v *Variant, r *machine.Result, out *output) outcome {
	if failure := processFailure(r, out); failure != nil {
		return outcome{failure: failure}
	}
	stdout := out.stdout.Bytes()
	e, err := v.Read(stdout)
	switch {
	case errors.Is(err, envelope.ErrNone) && len(stdout) == 0:
		return outcome{failure: fail("no_output", "the agent ended without an answer%s", out.stderrTail())}
	case err != nil:
		return outcome{failure: fail("invalid_output", "the agent's answer cannot be read: %v%s", err, out.stderrTail())}
	}
	return outcomeFromEnvelope(e)
}

func outcomeFromEnvelope(e *envelope.Envelope) outcome {
	end := outcome{text: e.Text(), selfReport: selfReportOf(&e.Meta.AgentMeta)}
	if e.Meta.Error != nil {
		end.failure = fail(nonempty(errorCode(e.Meta.Error.Kind), "agent_error"), "%s", nonempty(printable(e.Meta.Error.Message), "the agent gave no reason"))
	}
	return end
}

// selfReportOf keeps what fits a line of a program's self-report.
func selfReportOf(m *envelope.AgentMeta) SelfReport {
	return SelfReport{singleLine(m.SessionID), singleLine(m.Provider), singleLine(m.Model), m.Usage}
}

// singleLine is foreign text as a line of a table can hold it.
func singleLine(s string) string {
	s = strings.ReplaceAll(printable(s), "\n", " ")
	return strings.ToValidUTF8(s[:min(len(s), 200)], "")
}

// usageOf returns the tokens that a program has reported as it worked.
func usageOf(u chat.Usage) envelope.Usage {
	return envelope.Usage{Input: u.Input, Output: u.Output, Total: u.Total()}
}

// processFailure returns why a program has no answer to read; nil if it may have.
func processFailure(r *machine.Result, out *output) *Failure {
	switch {
	case r.OOM:
		return fail("oom_killed", "the agent used more memory than its limit and was killed")
	case r.QuotaExceeded != "":
		return fail("disk_full", "the workspace outgrew its limit, and the agent was ended")
	case r.TimedOut:
		return fail("timeout", "the agent was not done in time and was ended")
	case r.Signal != "" && r.ExitCode != 0, r.ExitCode == 137:
		return fail("killed", "the agent was ended by %s%s", nonempty(r.Signal, "a signal"), out.stderrTail())
	case r.ExitCode != 0:
		return fail("agent_failed", "the agent ended with code %d%s", r.ExitCode, out.stderrTail())
	}
	return nil
}

func nonempty(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// errorCode makes a code of what a program called its error.
func errorCode(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '_'
	}, s)
	return s[:min(len(s), 64)]
}

// stderrTail is the end of standard error, fit to print.
func (o *output) stderrTail() string {
	stderr := o.stderr.Bytes()
	if text := strings.TrimSpace(printable(string(stderr[max(0, len(stderr)-stderrShown):]))); text != "" {
		return "; it said: " + text
	}
	return ""
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, s)
}
