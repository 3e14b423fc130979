package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrintableEscapesWhatMovesTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":       "plain text",
		"日本語 ümlaut 😀":     "日本語 ümlaut 😀",
		"\x1b[31mred":      `\u001b[31mred`,
		"a\nforged: line":  `a\nforged: line`,
		"a\rb\tc\x00":      `a\u000db\u0009c\u0000`,
		"\u009b31m":        `\u009b31m`,
		"abc\u202edcba":    `abc\u202edcba`,
		"zero\u200bwidth":  `zero\u200bwidth`,
		"tag\U000e0041":    `tag\U000e0041`,
		"invalid \xff\xfe": `invalid \ufffd\ufffd`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIndentedKeepsLinesAndNothingElse(t *testing.T) {
	if got, want := indented("one\n\ttwo\x1b"), "one\n      two\\u001b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTableAlignsWhatItShows(t *testing.T) {
	table := NewTable("NAME", "NOTE")
	table.Add("a\x1bb", "")
	table.Add("long-name", "x")
	var b strings.Builder
	table.Print(&b)
	want := "NAME       NOTE\na\\u001bb\nlong-name  x\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if table.Len() != 2 {
		t.Errorf("%d rows", table.Len())
	}
}

func TestShortened(t *testing.T) {
	for in, want := range map[string]string{"": "", "日本語": "日本語", "日本語語": "日本…"} {
		if got := Shortened(in, 3); got != want {
			t.Errorf("shortened(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 3 * time.Hour: "3h", 47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		if got := Ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestOutputRemembersTheFirstFailure(t *testing.T) {
	out := &output{Writer: full{}}
	for range 2 {
		if _, err := out.Write([]byte("x")); err == nil {
			t.Error("no error")
		}
	}
	if out.Err == nil || out.Err.Error() != "standard output: full" {
		t.Errorf("remembered %v", out.Err)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	table := NewTable("NAME", "IMAGE", "SESSION")
	table.Add("openclaw-sbx-agent-main", "openclaw-sandbox:bookworm-slim", "agent:main")
	table.Add("other", "-", "agent:work:telegram:42")
	for _, columns := range []int{200, 80, 50, 45, 30, 10} {
		var b strings.Builder
		table.printIn(&b, columns)
		for line := range strings.Lines(b.String()) {
			if n := len([]rune(line)) - 1; n > columns && columns >= 45 {
				t.Errorf("%d columns: %d in %q", columns, n, line)
			}
		}
		if !strings.Contains(b.String(), "openclaw-sbx-agent-main") {
			t.Errorf("%d columns: the name is cut in %q", columns, b.String())
		}
	}
	wide := NewTable("NAME", "DRIFT", "NOTE")
	wide.Add("openclaw-sbx-agent-main", "-", "")
	var only strings.Builder
	if wide.printIn(&only, 30); only.String() != "NAME\nopenclaw-sbx-agent-main\n" {
		t.Errorf("columns without values are shown: %q", only.String())
	}
	var b strings.Builder
	table.printIn(&b, 30)
	want := "NAME     openclaw-sbx-agent-main\nIMAGE    openclaw-sandbox:bookworm-slim\nSESSION  agent:main\n\nNAME     other\nSESSION  agent:work:telegram:42\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// What programs inside wrote goes to a file as it is, and to a terminal escaped.
func TestForeignOutputDependsOnWhoReads(t *testing.T) {
	for isTerminal, want := range map[bool]string{false: "\x1b]0;x\x07\n", true: `\u001b]0;x\u0007` + "\n"} {
		var out strings.Builder
		e := NewEnv(&Terminal{Out: &out, Err: &out, IsTerminal: isTerminal})
		if _, err := e.ForeignOut().Write([]byte("\x1b]0;x\x07\n")); err != nil || out.String() != want {
			t.Errorf("terminal %v: %q, %v", isTerminal, out.String(), err)
		}
	}
}
