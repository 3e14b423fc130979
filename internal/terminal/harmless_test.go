package terminal_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/atoll-run/atoll/internal/terminal"
)

// hostile are sequences that act on terminals.
const hostile = "title \x1b]0;owned\x07 clipboard \x1b]52;c;cm0gLXJm\x07 clear \x1b[2J back\rover \u009b31m bidi \u202e del \x7f nul \x00 bad \xff\xfe ü 世 end\n\ttab\n"

func TestHarmlessEscapesWhatActs(t *testing.T) {
	for step := 1; step < 8; step++ { // also where a character comes in pieces
		var out bytes.Buffer
		w := terminal.Harmless(&out)
		for rest := []byte(hostile); len(rest) > 0; {
			n := min(step, len(rest))
			if written, err := w.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		text := out.String()
		for _, r := range text {
			if !unicode.IsGraphic(r) && r != '\n' && r != '\t' {
				t.Fatalf("pieces of %d: %q holds %U", step, text, r)
			}
		}
		for _, want := range []string{`\u001b]0;owned\u0007`, `\u001b]52;c;`, `back\u000dover`, `\u009b31m`, `\u202e`, "ü 世 end\n\ttab\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("pieces of %d: %q is not in %q", step, want, text)
			}
		}
	}
}

func TestPrintableIsOneLine(t *testing.T) {
	if got := terminal.Printable("a\nb\x1b[m\U000e0001"); got != `a\nb\u001b[m\U000e0001` {
		t.Errorf("got %q", got)
	}
}

func TestABufferIsNoTerminal(t *testing.T) {
	if terminal.IsTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
}

// Colours and carriage returns of a person's own command stay; what else acts is
// escaped, also where it comes in pieces.
func TestColouredKeepsColours(t *testing.T) {
	const text = "\x1b[1;31mred\x1b[0m 10%\r20%\n" + hostile + "\x1b[" + "1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m far \x1b[3A up"
	want := "\x1b[1;31mred\x1b[0m 10%\r20%\n"
	for step := 1; step < 40; step++ {
		var out bytes.Buffer
		w := terminal.Coloured(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := min(step, len(rest))
			if written, err := w.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		got := out.String()
		if !strings.HasPrefix(got, want) || strings.Count(got, "\x1b") != 2 || strings.ContainsAny(got, "\a\x00\x7f") {
			t.Fatalf("pieces of %d: %q", step, got)
		}
		for _, escaped := range []string{`\u001b]0;owned\u0007`, `\u001b[2J`, `\u001b[3A`, `\u001b[1;1;`} {
			if !strings.Contains(got, escaped) {
				t.Errorf("pieces of %d: %q is not in %q", step, escaped, got)
			}
		}
	}
}
