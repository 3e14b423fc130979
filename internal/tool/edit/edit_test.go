package edit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/edit"
)

func TestReplace(t *testing.T) {
	cases := []struct {
		name, content, old, new string
		all                     bool
		want                    string
		count, line             int
	}{
		{name: "one place", content: "a\nb\nc\n", old: "b", new: "x", want: "a\nx\nc\n", count: 1, line: 2},
		{name: "several lines", content: "a\nb\nc\n", old: "a\nb\n", new: "", want: "c\n", count: 1, line: 1},
		{name: "no final newline", content: "a\nb", old: "b", new: "c", want: "a\nc", count: 1, line: 2},
		{name: "the whole text", content: "a", old: "a", new: "b\n", want: "b\n", count: 1, line: 1},
		{name: "to nothing", content: "a", old: "a", new: "", want: "", count: 1, line: 1},
		{name: "every place", content: "x x\nx\n", old: "x", new: "yy", all: true, want: "yy yy\nyy\n", count: 3, line: 1},
		{name: "every place is one", content: "x\n", old: "x", new: "y", all: true, want: "y\n", count: 1, line: 1},
		{name: "every place, overlapping", content: "aaaaa", old: "aa", new: "b", all: true, want: "bba", count: 2, line: 1},
		{name: "every place, larger", content: "aa", old: "a", new: "aaa", all: true, want: "aaaaaa", count: 2, line: 1},
		{name: "text that looks like a pattern", content: "a.*$1\n", old: ".*$1", new: "$2", want: "a$2\n", count: 1, line: 1},
		{name: "not UTF-8", content: "\xff\nä\n", old: "ä", new: "ö", want: "\xff\nö\n", count: 1, line: 2},

		{name: "CRLF file, LF edit", content: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "x\ny\nz\n", want: "x\r\ny\r\nz\r\nc\r\n", count: 1, line: 1},
		{name: "CRLF file, one line becomes two", content: "a\r\nb\r\n", old: "b", new: "x\ny", want: "a\r\nx\r\ny\r\n", count: 1, line: 2},
		{name: "CRLF file, CRLF edit", content: "a\r\nb\r\n", old: "a\r\nb", new: "x\r\ny", want: "x\r\ny\r\n", count: 1, line: 1},
		{name: "CRLF file, from a line end", content: "a\r\nb\r\n", old: "\nb", new: "", want: "a\r\n", count: 1, line: 2},
		{name: "CRLF file, up to a line end", content: "a\r\nb\r\n", old: "a\n", new: "", want: "b\r\n", count: 1, line: 1},
		{name: "CRLF file, every place", content: "a\r\na\r\n", old: "a\n", new: "b\nc\n", all: true, want: "b\r\nc\r\nb\r\nc\r\n", count: 2, line: 1},
		{name: "LF file, CRLF edit", content: "a\nb\n", old: "a\r\nb", new: "x\r\ny", want: "x\ny\n", count: 1, line: 1},
		{name: "mixed file keeps what stays", content: "a\r\nb\nc\r\nd\r\n", old: "b\nc\nd", new: "b\nx\ny\nd", want: "a\r\nb\nx\r\ny\r\nd\r\n", count: 1, line: 3},
		{name: "lone carriage returns are text", content: "a\rb\n", old: "a\rb", new: "c", want: "c\n", count: 1, line: 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := edit.Replace(c.content, c.old, c.new, edit.Options{All: c.all})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Content); diff != "" {
				t.Error(diff)
			}
			if got.Count != c.count || got.FirstLine != c.line {
				t.Errorf("count %d, line %d; want %d, %d", got.Count, got.FirstLine, c.count, c.line)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	got, err := edit.Replace("a\nb\n", "b", "c", edit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "--- f.go\n+++ f.go\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"; got.Diff("f.go", 0) != want {
		t.Errorf("got %q", got.Diff("f.go", 0))
	}
	if cut := got.Diff("f.go", 20); !strings.Contains(cut, "2 more changed lines") {
		t.Errorf("got %q", cut)
	}
}

func TestRefusals(t *testing.T) {
	many := strings.Repeat("x\n", 30)
	cases := []struct {
		name, content, old, new string
		all                     bool
		want                    string
	}{
		{name: "empty old", content: "a", old: "", new: "b", want: "text to replace is empty"},
		{name: "nothing changes", content: "a", old: "a", new: "a", want: "nothing would change"},
		{name: "only line ends change", content: "a\r\n", old: "a\r\n", new: "a\n", want: "nothing would change"},
		{name: "twice", content: "a\nb\na\n", old: "a", new: "c", want: "text to replace found 2 times (lines 1, 3)"},
		{name: "twice by overlap", content: "aaa", old: "aa", new: "c", want: "text to replace found 2 times (lines 1, 1)"},
		{name: "twice with other line ends", content: "a\nb\na\r\nb\n", old: "a\nb", new: "c", want: "text to replace found 2 times (lines 1, 3)"},
		{
			name: "many", content: many, old: "x", new: "c",
			want: "text to replace found more than 20 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)",
		},
		{name: "nowhere", content: "alpha\nbeta\n", old: "1234567", new: "x", want: "text to replace not found, nor anything like it"},
		{name: "nowhere, every place", content: "alpha\n", old: "1234567", new: "x", all: true, want: "text to replace not found, nor anything like it"},
		{name: "nowhere, empty text", content: "", old: "a", new: "x", want: "text to replace not found, nor anything like it"},
		{
			name: "almost", content: "one\nreturn fmt.Errorf(\"%w\", err)\n", old: "return fmt.Errorf(\"%v\", err)", new: "x",
			want: "text to replace not found; nearest: line 2 (92% alike)",
		},
		{
			name: "indentation", content: "if x {\n\t\treturn 1\n}\n", old: "    return 1\n}", new: "x",
			want: "text to replace not found; nearest: lines 2–3 (only white space differs)",
		},
		{
			name: "quotes", content: "say \u201chello\u201d\n", old: "say \"hello\"", new: "x",
			want: "text to replace not found; nearest: line 1 (only the kind of quotes or dashes differs)",
		},
		{
			name: "case", content: "func Hello()\n", old: "func hello()", new: "x",
			want: "text to replace not found; nearest: line 1 (only letter case differs)",
		},
		{name: "too large", content: strings.Repeat("a", edit.MaxContent+1), old: "a", new: "b", want: "text would be larger than 8388608 bytes"},
		{
			name: "grows too large", content: strings.Repeat("a", 5000), old: "a", new: strings.Repeat("b", 5000), all: true,
			want: "text would be larger than 8388608 bytes",
		},
		{name: "too large by line ends", content: "a\r\n", old: "a", new: strings.Repeat("\n", edit.MaxContent/2+1), want: "text would be larger than 8388608 bytes"},
		{name: "too large a piece", content: "a\r\n", old: "a", new: strings.Repeat("b", edit.MaxContent+1), want: "text would be larger than 8388608 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := edit.Replace(c.content, c.old, c.new, edit.Options{All: c.all})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if got.Content != "" {
				t.Error("there is a result beside the error")
			}
		})
	}
}

func TestErrorsCarryHintsAndFacts(t *testing.T) {
	_, err := edit.Replace("a\na\n", "a", "b", edit.Options{})
	ambiguous, ok := errors.AsType[*edit.AmbiguousError](err)
	if !ok || !cmp.Equal(ambiguous.Lines, []int{1, 2}) || errhint.Of(err) == "" {
		t.Errorf("got %#v, hint %q", err, errhint.Of(err))
	}
	_, err = edit.Replace("x\nhello, world\n", "hello, wurld", "b", edit.Options{})
	missing, ok := errors.AsType[*edit.NotFoundError](err)
	if !ok || len(missing.Candidates) != 1 || missing.Candidates[0].Line != 2 || errhint.Of(err) == "" {
		t.Fatalf("got %#v, hint %q", err, errhint.Of(err))
	}
	want := "text to replace not found\nline 2 (83% alike):\n2\thello, world\n"
	if got := missing.Explain(); got != want {
		t.Errorf("Explain = %q", got)
	}
}

func TestReplaceAll(t *testing.T) {
	got, err := edit.ReplaceAll("a\nb\nc\n", []edit.Edit{{Old: "c", New: "d"}, {Old: "b", New: "x"}, {Old: "x\nd", New: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Content != "a\ny\n" || got.Count != 3 || got.FirstLine != 2 {
		t.Errorf("got %+v", got)
	}
	if want := "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n-b\n-c\n+y\n"; got.Diff("f", 0) != want {
		t.Errorf("got %q", got.Diff("f", 0))
	}
}

func TestReplaceAllIsAllOrNothing(t *testing.T) {
	ab := edit.Edit{Old: "a", New: "b"}
	cases := []struct {
		name  string
		edits []edit.Edit
		want  string
	}{
		{"none", nil, "no edits"},
		{"too many", make([]edit.Edit, edit.MaxEdits+1), "101 edits: more than 100 edits at once"},
		{"the second fails", []edit.Edit{ab, ab}, "edit 2 of 2: text to replace not found, nor anything like it"},
		{"one takes the other back", []edit.Edit{ab, {Old: "b", New: "a"}}, "edits undo each other: nothing would change"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := edit.ReplaceAll("a\n", c.edits)
			if err == nil || err.Error() != c.want || got.Content != "" {
				t.Errorf("got %+v, %v; want %s", got, err, c.want)
			}
		})
	}
}
