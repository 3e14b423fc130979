package files

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/wire"
)

// globs matches paths against several patterns.
type globs []glob

type glob struct {
	re    *regexp.Regexp
	whole bool // matches the whole path, not only the base name
}

func newGlobs(patterns []wire.Text) (globs, error) {
	if len(patterns) > wire.MaxGlobs {
		return nil, wire.Fail(wire.CodeInvalid, "too many globs")
	}
	var all globs
	for _, p := range patterns {
		re, err := globRegexp(string(p))
		if err != nil {
			return nil, err
		}
		all = append(all, glob{re, strings.Contains(strings.TrimRight(string(p), "/"), "/")})
	}
	return all, nil
}

// match reports whether any of the patterns matches name.
func (g globs) match(name string) bool {
	for _, one := range g {
		subject := name
		if !one.whole {
			subject = path.Base(name)
		}
		if one.re.MatchString(subject) {
			return true
		}
	}
	return false
}

// globRegexp translates a glob: ? and * stay within a name, ** does not, [ ]
// and { , } are as in a shell, \ takes what follows literally.
func globRegexp(pattern string) (*regexp.Regexp, error) {
	bad := wire.Fail(wire.CodeInvalid, "malformed glob "+pattern)
	if len(pattern) > wire.MaxPattern {
		return nil, bad
	}
	t := &globTranslation{rest: strings.Trim(pattern, "/")}
	for t.rest != "" {
		if !t.next() {
			return nil, bad
		}
	}
	if t.braces != 0 {
		return nil, bad
	}
	re, err := regexp.Compile(`(?s)\A(?:` + t.out.String() + `)\z`)
	if err != nil {
		return nil, bad
	}
	return re, nil
}

type globTranslation struct {
	rest   string
	out    strings.Builder
	braces int
}

// globPieces maps wildcards to expressions, the longest first.
var globPieces = []struct{ glob, re string }{
	{"**/", `(?:[^/]*/)*`}, {"/**", `(?:/.*)?`}, {"**", `.*`}, {"*", `[^/]*`}, {"?", `[^/]`},
}

// next translates one piece. It returns false if that is malformed.
func (t *globTranslation) next() bool {
	for _, piece := range globPieces {
		if piece.glob == "/**" && t.rest != "/**" { // in the middle it is /, **/
			continue
		}
		if rest, ok := strings.CutPrefix(t.rest, piece.glob); ok {
			t.rest = rest
			t.out.WriteString(piece.re)
			return true
		}
	}
	c := t.rest[0]
	switch {
	case c == '[':
		return t.class()
	case c == '{':
		t.braces++
		t.put("(?:")
	case c == '}' && t.braces > 0:
		t.braces--
		t.put(")")
	case c == ',' && t.braces > 0:
		t.put("|")
	case c == '\\':
		if t.rest = t.rest[1:]; t.rest == "" {
			return false
		}
		t.literal()
	default:
		t.literal()
	}
	return true
}

// put writes the translation of one byte.
func (t *globTranslation) put(re string) {
	t.out.WriteString(re)
	t.rest = t.rest[1:]
}

// literal translates one character to itself. A byte that is not UTF-8 matches any
// such byte.
func (t *globTranslation) literal() {
	r, size := utf8.DecodeRuneInString(t.rest)
	t.out.WriteString(regexp.QuoteMeta(string(r)))
	t.rest = t.rest[size:]
}

// class translates [abc], [a-z], [!abc].
func (t *globTranslation) class() bool {
	end := strings.IndexByte(t.rest[1:], ']')
	if end < 1 {
		return false
	}
	inside := t.rest[1 : 1+end]
	t.rest = t.rest[2+end:]
	negated := inside[0] == '!' || inside[0] == '^'
	if negated {
		inside = inside[1:]
	}
	if inside == "" {
		return false
	}
	inside = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`, `&`, `\&`).Replace(inside)
	if negated {
		t.out.WriteString("[^/" + inside + "]")
	} else {
		t.out.WriteString("[" + inside + "]")
	}
	return true
}
