package dockerformat

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// PrintTable prints rows by a format: "table …", "json", or one line a row.
func PrintTable[T any](w io.Writer, format string, rows []T, usual string, heads map[string]string) error {
	if format == "" || format == "table" {
		format = usual
	}
	columns, isTable := strings.CutPrefix(format, "table ")
	if !isTable {
		return printRows(w, format, rows)
	}
	columns = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(columns)
	out := tabwriter.NewWriter(w, 10, 1, 3, ' ', 0)
	head := columns
	for _, name := range slices.Backward(slices.Sorted(keys(heads))) { // long names before their beginnings
		head = strings.ReplaceAll(head, "{{."+name+"}}", heads[name])
	}
	fmt.Fprintln(out, head)
	if err := printRows(out, columns, rows); err != nil {
		return err
	}
	return out.Flush()
}

func printRows[T any](w io.Writer, format string, rows []T) error {
	for _, row := range rows {
		text, err := JSONText(row)
		if format != "json" {
			text, err = Render(format, row)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(w, text)
	}
	return nil
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
