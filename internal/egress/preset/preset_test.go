package preset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/preset"
)

func TestEveryPresetIsGood(t *testing.T) {
	names := preset.Names()
	if len(names) < 10 {
		t.Fatalf("presets: %q", names)
	}
	for _, name := range names {
		p, ok := preset.Get(name)
		if !ok || p.About == "" || len(p.Rules) == 0 || !preset.Known(name) {
			t.Errorf("%s: %+v", name, p)
		}
		for _, r := range p.Rules {
			if (r.Client == "") == (len(r.Hosts) == 0) || r.Mode != "splice" && r.Mode != "inspect" {
				t.Errorf("%s: %+v", name, r)
			}
			for _, host := range r.Hosts {
				if _, err := hostname.ParsePattern(host); err != nil {
					t.Errorf("%s: %s: %v", name, host, err)
				}
			}
		}
	}
}

// TestReadPresetsOnlyRead wants GET and HEAD, and git without push, of every
// preset whose name says that it reads.
func TestReadPresetsOnlyRead(t *testing.T) {
	for _, name := range preset.Names() {
		if !strings.HasSuffix(name, "-read") {
			continue
		}
		p, _ := preset.Get(name)
		for _, r := range p.Rules {
			if r.Mode != "inspect" || !slices.Equal(r.Methods, []string{"GET", "HEAD"}) || r.Git != "" && r.Git != "read" {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestUnknownPreset(t *testing.T) {
	if _, ok := preset.Get("nothing"); ok || preset.Known("nothing") {
		t.Error("there is a preset called nothing")
	}
	if got := preset.Clients([]string{"npm", "npm-read", "nothing", "github"}); !slices.Equal(got, []string{"npm"}) {
		t.Errorf("clients: %q", got)
	}
}
