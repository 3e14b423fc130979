package json5_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// FuzzParse checks on any input that what is accepted becomes valid JSON with
// positions inside the source, and that valid JSON keeps its meaning.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{a:[1,.5,0x1f,+1.,],'b':"\x41\u{", /* c */ c:null,}`, "{\"a\":\"\\ud83d\\ude00\"}",
		"'\\\r\n\\\u2028'//x\u2029", `[1e400,-0,01,--1,Infinity,-NaN]`, "\ufeff{\\u0061b:{}}",
		`{"a":{"a":1,"a":2}}`, `"\ud800"`, "[[[[[[", `{"` + "\x00\x7f" + `":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		doc, err := json5.Parse(src)
		isJSON := validJSON(src)
		if err != nil {
			if isJSON && !tooDeep(src) {
				t.Fatalf("valid JSON refused: %v", err)
			}
			return
		}
		if !validJSON(doc.JSON) {
			t.Fatalf("not JSON: %q", doc.JSON)
		}
		if isJSON {
			compareTokens(t, src, doc.JSON)
		}
		checkPositions(t, src, doc)
	})
}

func validJSON(src []byte) bool {
	return jsontext.Value(src).IsValid(jsontext.AllowDuplicateNames(true))
}

func tooDeep(src []byte) bool {
	return bytes.Count(src, []byte("["))+bytes.Count(src, []byte("{")) > json5.MaxDepth
}

func compareTokens(t *testing.T, a, b []byte) {
	x := jsontext.NewDecoder(bytes.NewReader(a), jsontext.AllowDuplicateNames(true))
	y := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true))
	for {
		p, errX := x.ReadToken()
		q, errY := y.ReadToken()
		if errors.Is(errX, io.EOF) && errors.Is(errY, io.EOF) {
			return
		}
		if errX != nil || errY != nil || p.Kind() != q.Kind() || p.String() != q.String() {
			t.Fatalf("%q became %q: %v, %v", a, b, errX, errY)
		}
	}
}

func checkPositions(t *testing.T, src []byte, doc *json5.Document) {
	last := 0
	for i := range doc.JSON {
		p := doc.Position(i)
		if p.Offset < last || p.Offset >= len(src) || p.Line < 1 || p.Column < 1 {
			t.Fatalf("JSON offset %d of %q is at %+v, the one before at %d", i, doc.JSON, p, last)
		}
		last = p.Offset
	}
}
