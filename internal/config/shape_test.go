package config

import (
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/config/openclawkeys"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// TestTags: every name that a tag uses exists, and every key says what it is.
func TestTags(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(s *shape)
	walk = func(s *shape) {
		for _, name := range []string{s.check, s.keyCheck} {
			if name != "" && valueChecks[name] == nil {
				t.Errorf("%s: there is no check %q", s.goType, name)
			}
		}
		if s.elem != nil {
			walk(s.elem)
		}
		for _, choice := range s.choices {
			walk(choice)
		}
		if s.kind != kindObject || seen[s.goType] {
			return
		}
		seen[s.goType] = true
		for _, f := range s.fields() {
			if f.doc == "" {
				t.Errorf("%s: %s has no doc", s.goType, f.name)
			}
			if f.note != "" && warning(f.note) == "" {
				t.Errorf("%s: there is no note %q", s.goType, f.note)
			}
			walk(f.shape)
		}
	}
	walk(shapeOf(reflect.TypeFor[file](), limits{}))
	for goType := range objectChecks {
		if !seen[goType] {
			t.Errorf("nothing in the file is a %s, so its checks never run", goType)
		}
	}
	for part := range openclawkeys.Accepted {
		if len(openclawkeys.Accepted[part]) == 0 {
			t.Errorf("%s accepts nothing", part)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"mode", "scope", "docker", "workspaceAccess", "noVncEnabled"}
	tests := map[string]string{
		"mdoe": "mode", "MODE": "mode", "dokcer": "docker", "workspaceAcess": "workspaceAccess", "scop": "scope",
		"novncenable": "noVncEnabled", "privileged": "", "": "", "x": "", "日本語": "",
	}
	for written, want := range tests {
		if got := wording.Nearest(written, known); got != want {
			t.Errorf("%q: got %q, want %q", written, got, want)
		}
	}
}
