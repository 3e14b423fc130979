package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench"
)

// show writes a report as JSON or as tables. With --check a claim that does not
// hold is an error.
func (p *program) show(w io.Writer, r *bench.Report) error {
	if p.asJSON {
		if err := printJSON(w, r); err != nil {
			return err
		}
	} else if err := printTables(w, r); err != nil {
		return err
	}
	if failed := r.Failed(); p.check && len(failed) > 0 {
		return fmt.Errorf("%d of %d claims do not hold", len(failed), len(r.Ratios))
	}
	return nil
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printTables(w io.Writer, r *bench.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MEASUREMENT\tUNIT\tN\tP50\tP95\tP99")
	for _, x := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\n", x.Name, x.Unit, x.N, x.P50, x.P95, x.P99)
	}
	fmt.Fprintln(t, "\nCLAIM\tVALUE\tWANTED\tHOLDS")
	for _, x := range r.Ratios {
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%s\n", x.Name, x.Value, x.Want, holds(x))
	}
	return t.Flush()
}

// holds says whether a claim does; a ratio that is only shown is none.
func holds(x bench.Ratio) string {
	switch {
	case x.Want == bench.Nothing:
		return bench.Nothing
	case x.OK:
		return "yes"
	}
	return "NO"
}
