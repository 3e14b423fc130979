package cli

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
		if got := printable(in); got != want {
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
	table := newTable("NAME", "NOTE")
	table.add("a\x1bb", "")
	table.add("long-name", "x")
	var b strings.Builder
	table.print(&b)
	want := "NAME       NOTE\na\\u001bb\nlong-name  x\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if table.len() != 2 {
		t.Errorf("%d rows", table.len())
	}
}

func TestWrappedNeverBreaksAWord(t *testing.T) {
	got := wrapped("aa bb cccccccccc d", 5)
	if diff := cmp.Diff([]string{"aa bb", "cccccccccc", "d"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{""}, wrapped("", 5)); diff != "" {
		t.Error(diff)
	}
}

func TestShortened(t *testing.T) {
	for in, want := range map[string]string{"": "", "日本語": "日本語", "日本語語": "日本…"} {
		if got := shortened(in, 3); got != want {
			t.Errorf("shortened(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 3 * time.Hour: "3h", 47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestFootnotesAreSharedByRows(t *testing.T) {
	var notes footnotes
	long := strings.Repeat("x", noteWidth+1)
	marks := []string{notes.mark("short"), notes.mark(long), notes.mark(long), notes.mark(long + "y")}
	if diff := cmp.Diff([]string{"short", "see (1)", "see (1)", "see (2)"}, marks); diff != "" {
		t.Error(diff)
	}
	var b strings.Builder
	notes.print(&b)
	if want := "(1) " + long + "\n(2) " + long + "y\n"; b.String() != want {
		t.Errorf("got %q", b.String())
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
	if out.err == nil || out.err.Error() != "standard output: full" {
		t.Errorf("remembered %v", out.err)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	table := newTable("NAME", "IMAGE", "SESSION")
	table.add("openclaw-sbx-agent-main", "openclaw-sandbox:bookworm-slim", "agent:main")
	table.add("other", "-", "agent:work:telegram:42")
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
	wide := newTable("NAME", "DRIFT", "NOTE")
	wide.add("openclaw-sbx-agent-main", "-", "")
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
		e := newEnv(&Terminal{Out: &out, Err: &out, IsTerminal: isTerminal})
		if _, err := e.foreignOut().Write([]byte("\x1b]0;x\x07\n")); err != nil || out.String() != want {
			t.Errorf("terminal %v: %q, %v", isTerminal, out.String(), err)
		}
	}
}

// A service's log says how long something took with a unit.
func TestServiceLogHasReadableDurations(t *testing.T) {
	var out strings.Builder
	newEnv(&Terminal{Out: &out, Err: &out}).serviceLogger().Info("done", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"took":"1.5s"`) {
		t.Error(out.String())
	}
}
