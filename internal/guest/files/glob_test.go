package files

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

func TestGlobs(t *testing.T) {
	tests := []struct {
		glob     string
		fits     []string
		fitsNone []string
	}{
		{"*.go", []string{"a.go", "deep/er/b.go", ".go"}, []string{"a.gox", "a.go/x"}},
		{"src/*.go", []string{"src/a.go"}, []string{"a.go", "src/sub/a.go", "x/src/a.go"}},
		{"src/**", []string{"src", "src/a", "src/a/b"}, []string{"srcs/a", "x/src/a"}},
		{"**/test", []string{"test", "a/test", "a/b/test"}, []string{"tests", "a/test/b"}},
		{"a/**/z", []string{"a/z", "a/b/z", "a/b/c/z"}, []string{"a/zz", "z"}},
		{"**", []string{"a", "a/b"}, nil},
		{"/rooted/*", []string{"rooted/a"}, []string{"x/rooted/a"}},
		{"dir/", []string{"dir", "x/dir"}, []string{"dirs"}},
		{"?x", []string{"ax", "éx"}, []string{"x", "aax", "/x"}},
		{"[ab]x", []string{"ax", "bx"}, []string{"cx"}},
		{"[!ab]x", []string{"cx"}, []string{"ax", "a/x"}},
		{"[a-c]", []string{"b"}, []string{"d"}},
		{"*.{js,ts}", []string{"a.js", "b.ts"}, []string{"a.go"}},
		{"{a,b/{c,d}}", []string{"a", "b/c", "b/d"}, []string{"b"}},
		{`\*`, []string{"*"}, []string{"x"}},
		{"a.b", []string{"a.b"}, []string{"axb"}},
		{"$(x)+^|", []string{"$(x)+^|"}, []string{"x"}},
		{"a,b", []string{"a,b"}, []string{"a", "b"}},
		{"\xff", []string{"\xfe"}, []string{"a"}},
	}
	for _, tt := range tests {
		g, err := newGlobs([]wire.Text{wire.Text(tt.glob)})
		if err != nil {
			t.Errorf("%s: %v", tt.glob, err)
			continue
		}
		for _, name := range tt.fits {
			if !g.match(name) {
				t.Errorf("%q should fit %q", tt.glob, name)
			}
		}
		for _, name := range tt.fitsNone {
			if g.match(name) {
				t.Errorf("%q should not fit %q", tt.glob, name)
			}
		}
	}
	for _, bad := range []string{"[", "[]", "a[", "{a", "{a,{b}", `\`, strings.Repeat("x", wire.MaxPattern+1), "[z-a]", "[!]"} {
		if _, err := newGlobs([]wire.Text{wire.Text(bad)}); codeOf(err) != wire.CodeInvalid {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if _, err := newGlobs(make([]wire.Text, wire.MaxGlobs+1)); codeOf(err) != wire.CodeInvalid {
		t.Errorf("too many: %v", err)
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"*.go", "a/**/b", "{a,b{c,d}}", "[!a-z]?", `\{`, "**/", "/**", "\xff[\xff]"} {
		f.Add(seed, "a/b/c.go")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := newGlobs([]wire.Text{wire.Text(pattern)})
		if err == nil {
			g.match(name)
		}
		// Text without meaning fits itself.
		if plain := strings.Trim(pattern, "/"); err == nil && plain != "" && !strings.ContainsAny(plain, `*?[]{},\`) && !g.match(plain) {
			t.Errorf("%q does not fit itself", pattern)
		}
	})
}
