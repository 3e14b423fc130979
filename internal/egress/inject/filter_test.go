package inject

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// encodings are the forms in which a server may repeat a value.
func encodings(value string) map[string]string {
	quoted, _ := json.Marshal(value)
	return map[string]string{
		"plain": value, "JSON": string(quoted), "JSON with slashes": strings.ReplaceAll(string(quoted), "/", `\/`),
		"query": url.QueryEscape(value), "path": url.PathEscape(value), "small escapes": lowerEscapes(url.QueryEscape(value)), "all escaped": percentAll(value),
		"base64 0": base64.StdEncoding.EncodeToString([]byte(value)), "base64 1": base64.StdEncoding.EncodeToString([]byte("u" + value + "x")),
		"base64 2": base64.StdEncoding.EncodeToString([]byte("u:" + value + "yz")), "URL base64": base64.RawURLEncoding.EncodeToString([]byte("?" + value)),
	}
}

const (
	oddValue = `k3y/with+odd="\&<>~chars?`
	oddFake  = "abcdefghijklmnopqrstuvwxy"
)

func TestEveryFormIsTakenOutInPiecesOfAnySize(t *testing.T) {
	for name, encoded := range encodings(oddValue) {
		text := "before " + encoded + " between " + encoded + encoded + " after"
		for size := 1; size < len(text); size++ {
			f := &Filter{forms: formsOf("s", oddValue, oddFake)}
			out := pass(f, text, size)
			if len(out) != len(text) {
				t.Fatalf("%s in pieces of %d: %d bytes became %d", name, size, len(text), len(out))
			}
			if bare := strings.Trim(encoded, `"=`); strings.Contains(out, bare[2:len(bare)-3]) || f.Found() != "s" {
				t.Fatalf("%s in pieces of %d: %q", name, size, out)
			}
			if !strings.HasPrefix(out, "before ") || !strings.HasSuffix(out, " after") {
				t.Fatalf("%s in pieces of %d: %q", name, size, out)
			}
		}
	}
}

// pass sends a text through a filter in pieces.
func pass(f *Filter, text string, size int) string {
	var out bytes.Buffer
	for rest := []byte(text); len(rest) > 0; {
		n := min(size, len(rest))
		out.Write(f.Next(bytes.Clone(rest[:n])))
		rest = rest[n:]
	}
	out.Write(f.Rest())
	return out.String()
}

func TestOnlyABeginningIsHeldBack(t *testing.T) {
	f := &Filter{forms: formsOf("s", "sesame-0123456789", "")}
	for _, c := range []struct{ in, out string }{
		{"data: event\n\n", "data: event\n\n"}, {"open ses", "open "}, {"ame", ""}, {"-0", ""}, {"1x", "sesame-01x"}, {"s", ""}, {"s", "s"},
	} {
		if got := string(f.Next([]byte(c.in))); got != c.out {
			t.Errorf("after %q: %q, want %q", c.in, got, c.out)
		}
	}
	if got := string(f.Rest()); got != "s" || f.Found() != "" {
		t.Errorf("%q %q", got, f.Found())
	}
}

func TestAFilterWithoutFormsChangesNothing(t *testing.T) {
	var none *Filter
	if got := string(none.Next([]byte("x"))); got != "x" || none.Rest() != nil || none.Found() != "" || none.Text("y") != "y" {
		t.Error(got)
	}
}

// FuzzFilter: whatever surrounds a value, and however the stream is cut, the value does
// not come through, the length stays, and what is not the value stays.
func FuzzFilter(f *testing.F) {
	f.Add("a", "b", byte(3), byte(0))
	f.Add("ghp_", oddValue[:9], byte(1), byte(7))
	f.Add(oddValue[:20], oddValue[5:], byte(200), byte(3))
	names := []string{"plain", "JSON", "query", "path", "all escaped", "base64 0", "base64 1", "base64 2", "URL base64"}
	f.Fuzz(func(t *testing.T, before, after string, size, which byte) {
		encoded := encodings(oddValue)[names[int(which)%len(names)]]
		text := before + encoded + after
		filter := &Filter{forms: formsOf("s", oddValue, oddFake)}
		out := pass(filter, text, int(size)+1)
		if len(out) != len(text) || filter.Found() == "" {
			t.Fatalf("%d bytes became %d; found %q", len(text), len(out), filter.Found())
		}
		for i := range filter.forms {
			if strings.Contains(out, string(filter.forms[i].text)) {
				t.Fatalf("%q has %q", out, filter.forms[i].text)
			}
		}
		if again := pass(&Filter{forms: filter.forms}, text, len(text)); again != out {
			t.Fatalf("cut otherwise: %q and %q", out, again)
		}
	})
}
