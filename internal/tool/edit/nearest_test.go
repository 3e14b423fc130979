package edit_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/tool/edit"
)

func TestNearestFindsTheBlock(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "func part%d(x int) int {\n\tvalue := compute(x, %d)\n\treturn value\n}\n\n", i, i)
	}
	piece := "func part200(x int) int {\n\tvalue := compute(x, 200)\n\treturn value + 1\n}\n"
	got := edit.Nearest(b.String(), piece)
	if len(got) == 0 || len(got) > edit.MaxCandidates || got[0].Line != 1001 || got[0].LastLine != 1004 {
		t.Fatalf("got %v", got)
	}
	want := "1001\tfunc part200(x int) int {\n1002\t\tvalue := compute(x, 200)\n1003\t\treturn value\n1004\t}\n"
	if diff := cmp.Diff(want, got[0].Excerpt); diff != "" {
		t.Error(diff)
	}
}

func TestNearestSeesTheMiddleOfALine(t *testing.T) {
	got := edit.Nearest("package x\n\tresult, err := client.Do(ctx, request) // the long way round\n", "client.Do(ctx,request)")
	if len(got) != 1 || got[0].Line != 2 || got[0].Difference != "white space" {
		t.Errorf("got %v", got)
	}
}

// TestNearestIsBounded is about texts made to be expensive, and about what an
// error may hold.
func TestNearestIsBounded(t *testing.T) {
	wide := strings.Repeat("wörd \x1b[2J", 1000)
	cases := map[string][2]string{
		"one long line":      {strings.Repeat("ab", 4<<20), strings.Repeat("ba", 1<<20)},
		"many short lines":   {strings.Repeat("ab\n", 1<<20), strings.Repeat("ba\n", 1<<18)},
		"only line ends":     {strings.Repeat("\n", 4<<20), strings.Repeat("\n", 100)},
		"wide, with escapes": {strings.Repeat(wide+"\n", 50), strings.Repeat(wide+"x\n", 20)},
		"nothing":            {"", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := edit.Nearest(c[0], c[1])
			if len(got) > edit.MaxCandidates {
				t.Errorf("%d candidates", len(got))
			}
			for _, g := range got {
				if len(g.Excerpt) > 6*(4*162+10)+40 || strings.Contains(g.Excerpt, "\x1b") || !utf8.ValidString(g.Excerpt) {
					t.Errorf("excerpt of %d bytes: %.200q", len(g.Excerpt), g.Excerpt)
				}
			}
		})
	}
}

func TestNormalizePunctuation(t *testing.T) {
	got := edit.NormalizePunctuation("\u2018a\u2019 \u201cb\u201d c\u2014d\u2212e\u00a0f\u3000g ä")
	if want := `'a' "b" c-d-e f g ä`; got != want {
		t.Errorf("got %q", got)
	}
}

// FuzzReplace compares with what the standard library does to texts whose line
// ends are all alike, and checks that a refusal is right.
func FuzzReplace(f *testing.F) {
	f.Add("a\nb\n", "b", "c", false)
	f.Add("a\r\nb\r\n", "a\nb", "x\ny", false)
	f.Add("aaa", "aa", "b", true)
	f.Add("a\r\nb\n", "\n", "\r\n\n", true)
	f.Add("if x {\n\ty()\n}", "    y()", "z", false)
	f.Fuzz(func(t *testing.T, content, old, replacement string, all bool) {
		got, err := edit.Replace(content, old, replacement, edit.Options{All: all})
		plain := strings.ReplaceAll(content, "\r\n", "\n")
		piece := strings.ReplaceAll(old, "\r\n", "\n")
		if err != nil {
			if got.Content != "" {
				t.Fatal("there is a result beside the error")
			}
			if strings.Count(plain, piece) == 1 && strings.Count(err.Error(), "not found") > 0 {
				t.Fatalf("%q is in %q: %v", piece, plain, err)
			}
			return
		}
		if n := strings.Count(plain, piece); got.Count != n || !all && n != 1 {
			t.Fatalf("replaced %d of %d", got.Count, n)
		}
		if got.FirstLine < 1 || got.FirstLine > strings.Count(got.Content, "\n")+1 {
			t.Fatalf("line %d of %q", got.FirstLine, got.Content)
		}
		if strings.Contains(plain+piece+strings.ReplaceAll(replacement, "\r\n", "\n"), "\r") {
			return // removing text can make a lone one part of a line end
		}
		want := strings.ReplaceAll(plain, piece, strings.ReplaceAll(replacement, "\r\n", "\n"))
		if strings.ReplaceAll(got.Content, "\r\n", "\n") != want {
			t.Fatalf("got %q, want %q", got.Content, want)
		}
		if !strings.Contains(content, "\r\n") && got.Content != want {
			t.Fatalf("got %q: line ends changed", got.Content)
		}
		if content == strings.ReplaceAll(plain, "\n", "\r\n") && strings.Contains(plain, "\n") && got.Content != strings.ReplaceAll(want, "\n", "\r\n") {
			t.Fatalf("got %q: line ends lost", got.Content)
		}
	})
}
