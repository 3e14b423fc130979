package config

import (
	"reflect"
	"testing"

	"github.com/atoll-run/atoll/internal/config/openclawkeys"
	"github.com/atoll-run/atoll/internal/config/shape"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// TestTags: every name that a tag uses exists, and every key says what it is.
func TestTags(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(s *shape.Shape)
	walk = func(s *shape.Shape) {
		for _, name := range []string{s.Check, s.KeyCheck} {
			if name != "" && checkNamed(name) == nil {
				t.Errorf("%s: there is no check %q", s.GoType, name)
			}
		}
		if s.Elem != nil {
			walk(s.Elem)
		}
		for _, choice := range s.Choices {
			walk(choice)
		}
		if s.Kind != shape.KindObject || seen[s.GoType] {
			return
		}
		seen[s.GoType] = true
		for _, f := range s.Fields() {
			if f.Doc == "" {
				t.Errorf("%s: %s has no doc", s.GoType, f.Key)
			}
			if f.Note != "" && warning(f.Note) == "" {
				t.Errorf("%s: there is no note %q", s.GoType, f.Note)
			}
			walk(f.Shape)
		}
	}
	walk(shape.Of(reflect.TypeFor[file](), shape.Limits{}))
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
