package usage_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/model/usage"
)

// What a killed process or a full disk left of a record never counted; what
// no process wrote is refused.
func TestTornAndDamagedJournals(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		spent  int64 // below zero: refused
	}{
		"whole":           {func(b []byte) []byte { return b }, 20},
		"half a record":   {func(b []byte) []byte { return append(b, usage.Sample()[:40]...) }, 20},
		"a byte":          {func(b []byte) []byte { return append(b, 7) }, 20},
		"zeros":           {func(b []byte) []byte { return append(b, make([]byte, 300)...) }, 20},
		"much of nothing": {func(b []byte) []byte { return append(b, make([]byte, 100_000)...) }, -1},
		"header":          {func(b []byte) []byte { b[3] ^= 1; return b }, -1},
		"no header":       {func(b []byte) []byte { return b[:5] }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := state(t)
			l := openWith(t, dir, func(o *usage.Options) { o.ProjectEvery = 1 << 40 })
			settle(t, l, call("a", 10, 10), usage.Tokens{Input: 10, Output: 1})
			path := filepath.Join(dir, "usage", "journal")
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			other := state(t) // the same journal, before anything was stored
			copyState(t, other, c.change(content))
			got, err := tryOpen(t, other)
			switch {
			case c.spent < 0 && !errors.Is(err, usage.ErrDamaged):
				if err == nil || name != "no header" {
					t.Errorf("%v, want ErrDamaged", err)
				}
			case c.spent >= 0 && (err != nil || got != c.spent):
				t.Errorf("%d, %v; want %d", got, err, c.spent)
			}
		})
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(usage.Sample())
	f.Add(usage.Sample()[:30])
	f.Add([]byte{255, 255, 255, 255, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, used := usage.ReadAll(b); used > len(b) {
			t.Errorf("%d of %d bytes", used, len(b))
		}
	})
}
