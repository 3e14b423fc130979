package jsonscan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

func check(in string) error {
	s := jsonscan.New()
	s.Reset([]byte(in))
	s.Skip()
	return s.End()
}

func TestWhatIsAccepted(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `0`, `-0.5e+10`, `"x"`, `null`, " \t\r\n[1, 2,{\"a\":[true,false]}] ",
		`{"a":"\u00e9\ud83d\ude00\n","b":"ü日本"}`, `{"a":{"b":{"c":1,"C":2}}}`,
		strings.Repeat("[", jsonscan.MaxDepth) + strings.Repeat("]", jsonscan.MaxDepth),
	} {
		if err := check(in); err != nil {
			t.Errorf("%.60s: %v", in, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
		}
		return "[[{" + b.String() + last + ":1}]]"
	}
	for name, in := range map[string]string{
		"nothing": "", "byte order mark": "\ufeff{}", "two values": "{} {}", "garbage": "{}x", "NaN": `{"a":NaN}`,
		"twice": `{"a":1,"a":2}`, "twice, escaped": `{"model":1,"mod\u0065l":2}`, "twice deep down": `[[[{"a":1,"a":2}]]]`,
		"twins": `{"model":1,"MODEL":2}`, "twins on the second level": `{"a":{"url":1,"URL":2}}`,
		"Kelvin": `{"k":1,"` + "\u212a" + `":2}`, "long s": `{"ſtream":true}`,
		"twice among many": many(`"k"`), "UTF-16": "{\x00}\x00", "invalid UTF-8": "\"\xff\"", "overlong": "\"\xc0\xaf\"",
		"surrogate": `"\ud800"`, "surrogates, wrong order": `"\ude00\ud83d"`, "half a pair": `"\ud83dx"`,
		"control character": "\"a\nb\"", "open string": `"abc`, "open object": `{"a":1`, "open array": `[1`,
		"trailing comma": `[1,]`, "trailing comma in an object": `{"a":1,}`, "no comma": `[1 2]`, "no colon": `{"a" 1}`,
		"no key": `{1:2}`, "single quotes": `{'a':1}`, "comment": `{}//`, "leading zero": `01`, "plus": `+1`, "point": `1.`, "hex": `0x1`,
		"escape": `"\x41"`, "too deep": strings.Repeat("[", 10000), "word": "nul", "long number": strings.Repeat("1", 100),
		"too many keys": "[[[{" + strings.Repeat(`"a":1,`, jsonscan.MaxKeys+10) + `"b":1}]]]`,
	} {
		if check(in) == nil {
			t.Errorf("%s is accepted: %.80s", name, in)
		}
	}
	if err := check(many(`"other"`)); err != nil {
		t.Errorf("many keys: %v", err)
	}
}

func TestPrefixesOfLongStrings(t *testing.T) {
	s := jsonscan.New()
	for in, want := range map[string]string{
		`"data:abc"`: "data:", `"ht\u0074p://"`: "http:", `"x"`: "x",
		`"\u0064\u0061ta:` + strings.Repeat("x", 1000) + `"`: "data:",
	} {
		s.Reset([]byte(in))
		if got := s.Prefix(5); string(got) != want || s.End() != nil {
			t.Errorf("%.40s: %q %v", in, got, s.Err())
		}
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	in := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello \\n", 100) + `"}],"n":1}`)
	s := jsonscan.New()
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(in)
		s.Skip()
		if s.End() != nil {
			t.Fatal(s.Err())
		}
	}); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkScan256K(b *testing.B) {
	for name, text := range map[string]string{
		"code":    `package main\n\nfunc main() { println(\"hello\") } // some code, as agents send it, in long strings\n`,
		"base64":  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg",
		"German":  "Die Prüfung läuft für jede größere Anfrage, und Umlaute stehen überall in den Wörtern. ",
		"Chinese": "每个请求都会被检查，计量并记录下来。",
		"units":   `\u6bcf\u4e2a\u8bf7\u6c42\u90fd\u4f1a\u88ab\u68c0\u67e5`,
		"short":   `","content":"some words","role":"user","name":"`,
	} {
		b.Run(name, func(b *testing.B) { benchmarkScan(b, text) })
	}
}

func benchmarkScan(b *testing.B, text string) {
	before, after := `[{"role":"user","content":"`, `"}]`
	many := bytes.Repeat([]byte(text), 256<<10/len(text))
	if strings.HasPrefix(text, `"`) { // several strings: each an object of its own, for no key comes twice
		before, after = `[{"a":"`, `"}]`
		many = bytes.Repeat([]byte(`"},{"content":"some words","role":"user","name":"`), 5000)
	}
	in := slices.Concat([]byte(before), many, []byte(after))
	s := jsonscan.New()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		s.Reset(in)
		s.Skip()
		if err := s.End(); err != nil {
			b.Fatal(err)
		}
	}
}

func compareText(t *testing.T, in []byte, want string) {
	t.Helper()
	s := jsonscan.New()
	s.Reset(in)
	if got := s.Text(); string(got) != want {
		t.Fatalf("%q is %q here and %q there", in, got, want)
	}
	s.Reset(in)
	if got := s.Prefix(3); string(got) != want[:min(3, len(want))] {
		t.Fatalf("%q begins with %q here and %q there", in, got, want)
	}
}
