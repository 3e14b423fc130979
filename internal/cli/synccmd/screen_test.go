package synccmd

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func review(t *testing.T, keys string) *model {
	t.Helper()
	m := newModel(tree(), console.Style{}, func(string) (string, error) {
		return "@@ -1 +1 @@\n-old\x1b[2J\n" + strings.Repeat("+new\n", 100), nil
	})
	m.view(24)
	for _, k := range keysIn([]byte(keys)) {
		m.press(k)
	}
	return m
}

func TestKeysDecide(t *testing.T) {
	for keys, want := range map[string]string{
		"Aqy":                      "old/legacy.go src/cart.go src/cart_test.go |  | ",
		"aqy":                      "old/legacy.go |  | ",
		"auq":                      " |  | ",
		"nrqy":                     " | README.md | ",
		"nnaqy":                    " |  | ", // blocked: not marked, so nothing is asked
		"nnna\rbecause\rqy":        " |  | scripts/run.sh: because",
		"nnnabx\x7fy\rAqy":         "old/legacy.go src/cart.go src/cart_test.go |  | scripts/run.sh: by",
		"drqy":                     " | old/legacy.go | ",
		"Aq\x1b\x1b[B\x1b[Bqx":     " |  | ",
		"A\x03":                    " |  | ",
		"Aqnrqy":                   "src/cart.go src/cart_test.go | old/legacy.go | ",
		"\x1b[6~\x1b[99~\x1bOAaqy": "src/cart.go |  | ",
	} {
		m := review(t, keys)
		d := m.decisions()
		var reasons []string
		for _, o := range d.overridden {
			reasons = append(reasons, o.entry.Path+": "+o.reason)
		}
		got := strings.Join(paths(d.approved), " ") + " | " + strings.Join(paths(d.rejected), " ") + " | " + strings.Join(reasons, " ")
		if got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
}

func TestScreen(t *testing.T) {
	m := review(t, "A")
	lines := m.view(24)
	if len(lines) != 24 || !strings.Contains(lines[3], "▸ ✓ pass      D old/legacy.go") || !strings.Contains(lines[22], "3 files marked, 1 of them deletions") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	m.press("q")
	if last := m.view(24)[23]; !strings.HasPrefix(last, "apply 3 files (1 deleted)?") {
		t.Error(last)
	}
	m.press("n")
	m.press("d")
	lines = m.view(10)
	if text := strings.Join(lines, "\n"); len(lines) != 10 || !strings.Contains(text, `-old\u001b[2J`) || strings.Contains(text, "\x1b") {
		t.Error(text)
	}
	for range 50 {
		m.press(" ")
	}
	if lines = m.view(10); lines[7] != "+new" || !strings.Contains(lines[9], "line 98 of 102") {
		t.Errorf("%q", lines)
	}
}

// However small the screen is, the entry at the cursor is on it.
func TestSmallScreen(t *testing.T) {
	for height := 1; height < 12; height++ {
		m := review(t, "")
		for i := range m.entries {
			m.view(height)
			lines := m.view(height)
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "▸") && strings.Contains(l, m.entries[i].Path) }) {
				t.Errorf("%d rows, entry %d: %q", height, i, lines)
			}
			m.press("n")
		}
	}
}

func TestHostileNamesOnTheScreen(t *testing.T) {
	set := tree()
	set.Entries = []api.SyncEntry{{Path: hostile, Kind: "added", Verdict: api.SyncBlocked, Reasons: []api.SyncReason{{Detail: hostile}}}}
	set.Base = hostile
	m := newModel(set, console.Style{}, func(string) (string, error) { return "", nil })
	for _, k := range []key{"a", "d", "q"} {
		m.press(k)
		for _, line := range m.view(24) {
			if strings.ContainsAny(line, "\x1b\n\u202e") || !utf8.ValidString(line) {
				t.Errorf("%q", line)
			}
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[A\x1b[1;5Ba\xff\x1b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := review(t, string(data))
		m.view(24)
		if m.apply && !m.done {
			t.Error("applies and goes on")
		}
	})
}
