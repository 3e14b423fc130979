package edit_test

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/config/json5/edit"
)

func TestSet(t *testing.T) {
	for _, c := range []struct {
		src  string
		path []string
		to   any
		want string
	}{
		{"{}", []string{"a"}, 1, `{"a": 1}`},
		{"{b: 2}", []string{"a"}, 1, `{b: 2, "a": 1}`},
		{"{b: 2,}", []string{"a"}, 1, `{b: 2,"a": 1}`},
		{"{a: 1}", []string{"a"}, 1, "{a: 1}"},
		{"{a: 0x1, /* keep */ 'b': 'x'}", []string{"b"}, "y", `{a: 0x1, /* keep */ 'b': "y"}`},
		{"{a: 0x1}", []string{"a"}, 1, "{a: 0x1}"},
		{"// top\n{\n  // one\n  a: 1 // after\n  // end\n}\n", []string{"b", "c"}, true, "// top\n{\n  // one\n  a: 1, // after\n  // end\n  \"b\": {\"c\": true},\n}\n"},
		{"{\n\ta: {\n\t\tb: 1,\n\t},\n}\n", []string{"a", "c"}, []int{1}, "{\n\ta: {\n\t\tb: 1,\n\t\t\"c\": [1],\n\t},\n}\n"},
		{"{\n}\n", []string{"a"}, nil, "{\n  \"a\": null,\n}\n"},
		{"{a: {s: '}', /* } */ t: \"a\\\"}\"}, b: 2}", []string{"b"}, 3, "{a: {s: '}', /* } */ t: \"a\\\"}\"}, b: 3}"},
		{"{a: 1,\n b: 2}", []string{"c"}, 3, "{a: 1,\n b: 2,\n  \"c\": 3,\n}"},
	} {
		got, err := edit.Set([]byte(c.src), c.path, c.to)
		if err != nil || string(got) != c.want {
			t.Errorf("%q %v: %q %v, want %q", c.src, c.path, got, err, c.want)
			continue
		}
		if again, err := edit.Set(got, c.path, c.to); err != nil || string(again) != string(got) {
			t.Errorf("%q %v: twice is not once: %q %v", c.src, c.path, again, err)
		}
	}
}

func TestTextsThatCannotBeChanged(t *testing.T) {
	for _, c := range []struct {
		src  string
		path []string
	}{{"[]", []string{"a"}}, {"{a: 1}", []string{"a", "b"}}, {"{", []string{"a"}}, {"{}", nil}, {"", []string{"a"}}} {
		if got, err := edit.Set([]byte(c.src), c.path, 1); err == nil {
			t.Errorf("%q %v: %q", c.src, c.path, got)
		}
	}
}

// FuzzSet checks that a changed text has the value, that what was there stays, and that
// the same change again changes nothing.
func FuzzSet(f *testing.F) {
	for _, src := range []string{"{}", "{a: {b: 'x'}, // c\n}", "{'k': [1, {z: 2}], a: {}}", "{\n/* x */ a /* y */ : /* z */ {} /* w */,\n}", "{\"a\\u0062\": 1}"} {
		f.Add(src, "b")
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		before, err := json5.Parse([]byte(src))
		if err != nil {
			return
		}
		got, err := edit.Set([]byte(src), []string{"a", "b"}, text)
		if err != nil {
			return
		}
		if again, err := edit.Set(got, []string{"a", "b"}, text); err != nil || string(again) != string(got) {
			t.Fatalf("%q: twice is not once: %q %q %v", src, got, again, err)
		}
		after, err := json5.Parse(got)
		if err != nil {
			t.Fatalf("%q: %q: %v", src, got, err)
		}
		var old, now map[string]any
		if json.Unmarshal(before.JSON, &old) != nil || json.Unmarshal(after.JSON, &now) != nil {
			return
		}
		for key, value := range old {
			if key != "a" && !reflect.DeepEqual(value, now[key]) {
				t.Fatalf("%q: %q: %q was changed", src, got, key)
			}
		}
	})
}
