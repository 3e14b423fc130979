package cli

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
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("standard output: %w", err)
	}
	return n, err
}

// printJSON writes v to standard output, indented, as one document. Bytes that
// are no text, as file names and output may have, become U+FFFD.
func (e *env) printJSON(v any) error {
	options := json.JoinOptions(jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err := json.MarshalWrite(e.foreignOut(), v, options); err != nil {
		return err
	}
	_, err := io.WriteString(e.Out, "\n")
	return err
}

// printable escapes what could act on a terminal: parts of messages come from
// inside sandboxes.
func printable(s string) string { return terminal.Printable(s) }

// foreignOut is standard output for bytes that programs in sandboxes wrote: as
// they are for a file or a pipe, harmless for a terminal.
func (e *env) foreignOut() io.Writer {
	if e.IsTerminal {
		return terminal.Harmless(e.Out)
	}
	return e.Out
}

// foreignErr is standard error for such bytes.
func (e *env) foreignErr() io.Writer {
	if terminal.IsTerminal(e.Err) {
		return terminal.Harmless(e.Err)
	}
	return e.Err
}

// commandOut is standard output for a person's own command, and commandErr its
// standard error: colours stay.
func (e *env) commandOut() io.Writer {
	if e.IsTerminal {
		return terminal.Coloured(e.Out)
	}
	return e.Out
}

func (e *env) commandErr() io.Writer {
	if terminal.IsTerminal(e.Err) {
		return terminal.Coloured(e.Err)
	}
	return e.Err
}

// indented is printable text of several lines, those after the first moved in.
func indented(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n  ")
}

// joined is text of several lines as one.
func joined(s string) string { return printable(strings.ReplaceAll(s, "\n", "; ")) }

// shortened is s with at most n characters.
func shortened(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// style paints text for people who see colours.
type style struct{ on bool }

func (e *env) style() style {
	return style{e.IsTerminal && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

func (s style) bold(text string) string  { return s.paint("1", text) }
func (s style) dim(text string) string   { return s.paint("2", text) }
func (s style) good(text string) string  { return s.paint("32", text) }
func (s style) warn(text string) string  { return s.paint("33", text) }
func (s style) alarm(text string) string { return s.paint("31", text) }

func (s style) paint(code, text string) string {
	if !s.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// ago is a duration as people say it: "12s", "5m", "3h", "9d".
func ago(d time.Duration) string {
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

// notice tells the user something that is no error.
func (e *env) notice(text string) { fmt.Fprintln(e.Err, "note: "+printable(text)) }
