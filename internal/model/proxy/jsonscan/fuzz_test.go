package jsonscan_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FuzzScan holds the scanner against a strict parser: whatever is accepted here
// must be accepted there, with the same strings.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e9\ud83d\ude00"],"b":null}`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", `[[[[]]]]`, `{"a":{"B":1,"b":2}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if check(string(in)) != nil {
			return
		}
		if !jsontext.Value(in).IsValid() {
			t.Fatalf("%q is accepted here, and not there", in)
		}
		var text string
		if json.Unmarshal(in, &text) == nil && jsontext.Value(in).Kind() == '"' {
			compareText(t, in, text)
		}
	})
}
