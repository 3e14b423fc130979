package entry_test

import (
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/dockercli/entry"
)

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]entry.Entry{
		"empty":    {},
		"a little": {ID: "id", Process: "main", Env: "A=1"},
		"all":      {"id", "name", "host", "/w", "0:0", "/root", "main", "true", "/s", "12", "boot:3", "lease", "4", "false", "A=1" + entry.End + "B=\n2"},
	} {
		record := e.Format() + "{rest}"
		text, rest, ok := entry.Cut(record)
		if !ok || rest != "{rest}" {
			t.Fatalf("%s: %q, %v", name, rest, ok)
		}
		if got, ok := entry.Parse(text); !ok || got != e {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if text := (&entry.Entry{Workdir: "/a" + entry.End + "b"}).Format(); text != "" {
		t.Errorf("a field that would be two: %q", text)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "007": 7, "999999999999999999": 999999999999999999, "4611686018427387903": 1<<62 - 1,
		"": -1, "-1": -1, "+1": -1, "1x": -1, " 1": -1, "9223372036854775807": -1, "9999999999999999999": -1, "12345678901234567890": -1,
	} {
		if n, ok := entry.Number(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
}

func TestBirths(t *testing.T) {
	t.Parallel()
	const after = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21\n"
	for stat, want := range map[string]string{
		"12 (guest) S" + after:     "777",
		"12 (a) Z 1 (b) S" + after: "777", // a name may look like anything
		"12 () ) S" + after:        "777",
		"12 (guest) Z" + after:     "",
		"12 (guest) X" + after:     "",
		"12 (guest) S 1 2 3":       "",
		"":                         "",
		"12 (guest) S" + strings.TrimSuffix(after, " 20 21\n") + "\n": "777",
	} {
		if got := entry.Born(stat); got != want {
			t.Errorf("%q: %q, want %q", stat, got, want)
		}
		if want != "" && !entry.IsBirth("boot:"+want, "boot\n", stat) {
			t.Errorf("%q was not born then", stat)
		}
		for _, birth := range []string{"", ":", "boot", "boot:", "other:777", "boot:7777", "boot:77"} {
			if entry.IsBirth(birth, "boot\n", stat) {
				t.Errorf("%q was born at %q", stat, birth)
			}
		}
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := entry.Number(entry.Born(string(stat))); !ok {
		t.Errorf("born at %q", entry.Born(string(stat)))
	}
}
