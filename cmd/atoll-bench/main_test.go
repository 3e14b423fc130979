package main

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench"
	"github.com/atoll-run/atoll/internal/errhint"
)

func TestUnknownBenchmarksAreNamed(t *testing.T) {
	cmd := newCommand()
	cmd.SetArgs([]string{"speed"})
	err := cmd.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), `no benchmark "speed"`) || errhint.Of(err) == "" {
		t.Errorf("%v, hint %q", err, errhint.Of(err))
	}
	for _, b := range bench.All() {
		if !strings.Contains(cmd.Long, b.Name) {
			t.Errorf("the help does not name %s", b.Name)
		}
	}
}

// With --check a claim that does not hold is an error, in both forms of output.
func TestClaimsAreChecked(t *testing.T) {
	report := &bench.Report{
		Bench:  "sample",
		Rows:   []bench.Row{{Name: "exec", Unit: "ms", N: 3, P50: 1, P95: 2, P99: 3}},
		Ratios: []bench.Ratio{{Name: "a", Value: 2, Want: "≤ 1"}, {Name: "b", Value: 1, Want: "≤ 1", OK: true}, {Name: "c", Value: 7, Want: bench.Nothing, OK: true}},
	}
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		if err := (&program{asJSON: asJSON}).show(&out, report); err != nil {
			t.Error(err)
		}
		if err := (&program{asJSON: asJSON, check: true}).show(&out, report); err == nil || !strings.Contains(err.Error(), "1 of 3 claims") {
			t.Errorf("%v", err)
		}
		if !asJSON && (!strings.Contains(out.String(), "NO") || !strings.Contains(out.String(), "yes")) {
			t.Errorf("the table does not say what holds:\n%s", out.String())
		}
	}
}
