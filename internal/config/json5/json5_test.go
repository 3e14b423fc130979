package json5_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/json5"
)

func TestParse(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"plain JSON", `{"a": [1, true, null, "x"]}`, `{"a":[1,true,null,"x"]}`},
		{"scalar at the top", ` -1.5e-3 `, `-1.5e-3`},
		{"line comment", "// c\n1// d", `1`},
		{"line comment ends at U+2028", "// c\u20281", `1`},
		{"block comment", "/* * / \n */[/**/1/***/]", `[1]`},
		{"trailing commas", `{a:[1,2,],b:{c:1,},}`, `{"a":[1,2],"b":{"c":1}}`},
		{"unquoted keys", `{$_:1, ünï_1:2, a\u0062c:3, null:4, Infinity:5}`,
			`{"$_":1,"ünï_1":2,"abc":3,"null":4,"Infinity":5}`},
		{"key with joiner and combining mark", "{a\u200d\u0301:1}", "{\"a\u200d\u0301\":1}"},
		{"single quotes", `{'a"b': 'it\'s'}`, `{"a\"b":"it's"}`},
		{"simple escapes", `'\b\f\n\r\t\v\0\\\/\a\"'`, `"\u0008\u000c\u000a\u000d\u0009\u000b\u0000\\/a\""`},
		{"hex and unicode escapes", `"\x41\u00e9\uD83D\uDE00\x00"`, `"Aé😀\u0000"`},
		{"line continuations", "'a\\\nb\\\r\nc\\\rd\\\u2028e\\\u2029f'", `"abcdef"`},
		{"raw separators and controls in strings", "'\u2028\u2029\t\x01'", "\"\u2028\u2029\\u0009\\u0001\""},
		{"hexadecimal", `[0x1F, -0XfF, +0x0, 0xFFFFFFFFFFFFFFFFFF]`, `[31,-255,0,4722366482869645213695]`},
		{"points and signs", `[.5, 5., +1, -.5e3, 5.E+2, 0., -0]`, `[0.5,5,1,-0.5e3,5E+2,0,-0]`},
		{"white space of every kind", "\ufeff\u00a0\u2003\t\v\f\r\n[\u30001\u2029]\u2028", `[1]`},
		{"duplicate keys are kept", `{a:1,a:2}`, `{"a":1,"a":2}`},
		{"empty object and list", `{a:{},b:[]}`, `{"a":{},"b":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json5.Parse([]byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(doc.JSON); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"empty", "", "1:1: expected a value, found the end of the file"},
		{"only a comment", "// x\n", "2:1: expected a value, found the end of the file"},
		{"two values", "1 2", "1:3: expected the end of the file after the value, found '2'"},
		{"no key", "{,}", "1:2: expected a key or '}', found ','"},
		{"number as key", "{1:2}", "1:2: expected a key or '}', found '1'"},
		{"no colon", "{a 1}", "1:4: expected ':' after the key, found '1'"},
		{"no value", "{a:}", "1:4: expected a value, found '}'"},
		{"no comma", "{\n  a: 1\n  b: 2}", "3:3: expected ',' or '}', found 'b'"},
		{"two commas", "[1,,2]", "1:4: expected a value or ']', found ','"},
		{"wrong bracket", "[1}", "1:3: expected ',' or ']', found '}'"},
		{"object not closed", "{a:1", "1:5: expected ',' or '}', found the end of the file"},
		{"list not closed", "[", "1:2: expected a value or ']', found the end of the file"},
		{"bare word", "{mode: all}", `1:8: expected a value, found the word "all" (text needs quotes)`},
		{"infinity", "[1, -Infinity]", "1:5: -Infinity is not a number that can be used here"},
		{"not a number", "NaN", "1:1: NaN is not a number that can be used here"},
		{"sign without number", "-x", `1:2: expected digits after the sign, found "x"`},
		{"sign alone", "+", "1:2: expected digits after the sign, found the end of the file"},
		{"two signs", "--1", "1:2: expected digits after the sign, found '-'"},
		{"point alone", ".", "1:1: expected a number, found '.'"},
		{"octal", "010", "1:1: a number cannot start with 0 and another digit (octal is not allowed)"},
		{"exponent without digits", "1e", "1:3: expected the digits of the exponent, found the end of the file"},
		{"hexadecimal without digits", "0x", "1:3: expected hexadecimal digits after 0x, found the end of the file"},
		{"letter after number", "12m", "1:3: expected the end of the number, found 'm'"},
		{"string not closed", "{a: 'b\n'}", "1:5: the string that starts here has no end, expected ' on the same line"},
		{"octal escape", `"\1"`, `1:2: octal escapes are not allowed, expected \x or \u and hexadecimal digits`},
		{"zero and digit", `"\01"`, `1:2: octal escapes are not allowed, expected \x or \u and hexadecimal digits`},
		{"short escape", `"\u12"`, `1:6: expected 4 hexadecimal digits, found '"'`},
		{"half a surrogate pair", `"\ud800"`, `1:2: half a surrogate pair, expected two \u escapes that make one character`},
		{"wrong surrogate pair", `"\ud800\u0041"`, `1:2: these two \u escapes do not make one character`},
		{"escaped space in key", `{a\u0020:1}`, `1:3: ' ' cannot be part of a key without quotes`},
		{"unknown escape in key", `{a\x41:1}`, `1:4: expected 'u' after '\' in a key, found 'x'`},
		{"comment not closed", "[1 /* x", "1:4: the comment that starts here has no end, expected '*/'"},
		{"slash alone", "/1", "1:1: expected a comment ('//' or '/*') after '/'"},
		{"not UTF-8", "'é\xff'", "1:3: the file is not UTF-8 here"},
		{"columns are characters", "['é', x]", `1:7: expected a value, found the word "x" (text needs quotes)`},
		{"byte order mark is no column", "\ufeffx", `1:1: expected a value, found the word "x" (text needs quotes)`},
		{"lines end with CR, LF or both", "[\r1,\r\n2,\n!]", "4:1: expected a value, found '!'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := json5.Parse([]byte(tt.src))
			if err == nil {
				t.Fatalf("accepted as %s", doc.JSON)
			}
			if _, ok := errors.AsType[*json5.SyntaxError](err); !ok {
				t.Errorf("error is a %T", err)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	sized := func(n int) string { return "1" + strings.Repeat(" ", n-1) }
	hex := func(n int) string { return "0x" + strings.Repeat("f", n) }
	tests := []struct {
		name  string
		limit int
		make  func(int) string
		want  string
	}{
		{"depth", json5.MaxDepth, nested, "nested more than 200 levels"},
		{"size", json5.MaxSize, sized, "larger than 8388608 bytes"},
		{"hexadecimal digits", json5.MaxHexDigits, hex, "more than 256 hexadecimal digits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := json5.Parse([]byte(tt.make(tt.limit))); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			_, err := json5.Parse([]byte(tt.make(tt.limit + 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("over the limit: got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPosition(t *testing.T) {
	const src = "// top\n{\n  mode: 'é\\tx', // c\n  list: [0x10,\n    .5,],\n}\n"
	doc, err := json5.Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, in     string // in: a piece of the JSON
		shift        int    // where in it
		line, column int
	}{
		{"object", `{`, 0, 2, 1},
		{"unquoted key", `"mode"`, 0, 3, 3},
		{"inside an unquoted key", `"mode"`, 2, 3, 4},
		{"string", `"é`, 0, 3, 9},
		{"escape", `\u0009`, 3, 3, 11},
		{"after an escape", `x"`, 0, 3, 13},
		{"hexadecimal", `16`, 1, 4, 10},
		{"made digit", `0.5`, 0, 5, 5},
		{"after a made digit", `0.5`, 2, 5, 6},
		{"end", `}`, 0, 6, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := strings.Index(string(doc.JSON), tt.in)
			if at < 0 {
				t.Fatalf("%q is not in %s", tt.in, doc.JSON)
			}
			got := doc.Position(at + tt.shift)
			if got.Line != tt.line || got.Column != tt.column {
				t.Errorf("got %d:%d, want %d:%d", got.Line, got.Column, tt.line, tt.column)
			}
		})
	}
	t.Run("out of range", func(t *testing.T) {
		if got := doc.Position(-5); got.Line != 2 || got.Column != 1 {
			t.Errorf("below: %+v", got)
		}
		if got := doc.Position(1 << 20); got.Line != 6 || got.Column != 1 {
			t.Errorf("above: %+v", got)
		}
	})
}
