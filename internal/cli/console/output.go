package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/terminal"
)

// output is standard output, and the first error of writing to it: verbs print
// many lines, and one place asks whether all of them arrived.
type output struct {
	io.Writer
	Err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.Err == nil {
		o.Err = fmt.Errorf("standard output: %w", err)
	}
	return n, err
}

// PrintJSON writes v to standard output, indented, as one document. Bytes that
// are no text, as file names and output may have, become U+FFFD.
func (e *Env) PrintJSON(v any) error {
	options := json.JoinOptions(jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err := json.MarshalWrite(e.ForeignOut(), v, options); err != nil {
		return err
	}
	_, err := io.WriteString(e.Out, "\n")
	return err
}

// Printable escapes what could act on a terminal: parts of messages come from
// inside sandboxes.
func Printable(s string) string { return terminal.Printable(s) }

// ForeignOut is standard output for bytes that programs in sandboxes wrote: as
// they are for a file or a pipe, harmless for a terminal.
func (e *Env) ForeignOut() io.Writer {
	if e.IsTerminal {
		return terminal.Harmless(e.Out)
	}
	return e.Out
}

// ForeignErr is standard error for such bytes.
func (e *Env) ForeignErr() io.Writer {
	if terminal.IsTerminal(e.Err) {
		return terminal.Harmless(e.Err)
	}
	return e.Err
}

// CommandOut is standard output for a person's own command, and commandErr its
// standard error: colours stay.
func (e *Env) CommandOut() io.Writer {
	if e.IsTerminal {
		return terminal.Coloured(e.Out)
	}
	return e.Out
}

// CommandErr is where the standard error of a command in a sandbox is written.
func (e *Env) CommandErr() io.Writer {
	if terminal.IsTerminal(e.Err) {
		return terminal.Coloured(e.Err)
	}
	return e.Err
}

// indented is printable text of several lines, those after the first moved in.
func indented(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n  ")
}

// Joined is text of several lines as one.
func Joined(s string) string { return Printable(strings.ReplaceAll(s, "\n", "; ")) }

// Shortened is s with at most n characters.
func Shortened(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// Style paints text for people who see colours.
type Style struct{ on bool }

// Style returns how text is marked on this terminal.
func (e *Env) Style() Style {
	return Style{e.IsTerminal && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

// Bold marks what matters.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim marks what matters less.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Good marks success.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn marks a warning.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Alarm marks a failure.
func (s Style) Alarm(text string) string { return s.paint("31", text) }

func (s Style) paint(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Ago is a duration as people say it: "12s", "5m", "3h", "9d".
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// Notice tells the user something that is no error.
func (e *Env) Notice(text string) { fmt.Fprintln(e.Err, "note: "+Printable(text)) }
