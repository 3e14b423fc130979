package console

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/terminal"
)

const (
	columnGap = 2 // spaces between columns
	// columnFloor is how narrow a column is made to fit a terminal; its header always fits.
	columnFloor = 8
)

// Table prints rows in aligned columns below a header. On a terminal that is too
// narrow cells are shortened; where that is not enough a row becomes several lines.
type Table struct{ rows [][]string }

// NewTable returns a table with these column headers.
func NewTable(header ...string) *Table { return &Table{rows: [][]string{header}} }

// Add appends a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Len is the number of rows below the header.
func (t *Table) Len() int { return len(t.rows) - 1 }

// Print prints the table, fitted to the terminal behind w.
func (t *Table) Print(w io.Writer) { t.printIn(w, columnsOf(w)) }

// columnsOf is how many columns the terminal behind w has; 0 if there is none.
func columnsOf(w io.Writer) int {
	if out, ok := w.(*output); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	return int(terminal.Size(f).Cols)
}

// printIn prints the table in so many columns; 0 is as many as it needs.
func (t *Table) printIn(w io.Writer, columns int) {
	widths := t.widths()
	if columns > 0 && needed(widths) > columns {
		t = t.withoutEmpty()
		widths = t.widths()
	}
	if columns > 0 && !t.shrink(widths, columns) {
		t.stack(w)
		return
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			cell = Shortened(Printable(cell), widths[i])
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+columnGap))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// widths are those that the cells need.
func (t *Table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(Printable(cell)))
		}
	}
	return widths
}

// needed is how many columns a table of these widths takes.
func needed(widths []int) int {
	total := columnGap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	return total
}

// withoutEmpty is the table without columns in which no row has anything.
func (t *Table) withoutEmpty() *Table {
	rows := make([][]string, len(t.rows))
	for i := range t.rows[0] {
		if !slices.ContainsFunc(t.rows[1:], func(row []string) bool { return !isEmpty(row[i]) }) {
			continue
		}
		for n, row := range t.rows {
			rows[n] = append(rows[n], row[i])
		}
	}
	return &Table{rows: rows}
}

func isEmpty(cell string) bool { return cell == "" || cell == "-" }

// shrink makes the widest columns narrower, never the first, which names the row,
// until all fit. It reports whether they do.
func (t *Table) shrink(widths []int, columns int) bool {
	for total := needed(widths); total > columns; total-- {
		widest := -1
		for i := 1; i < len(widths); i++ {
			if widths[i] > t.floor(i) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

func (t *Table) floor(i int) int { return max(columnFloor, utf8.RuneCountInString(t.rows[0][i])) }

// stack prints every row as lines of a name and a value; what is empty is left out.
func (t *Table) stack(w io.Writer) {
	header, width := t.rows[0], 0
	for _, name := range header {
		width = max(width, utf8.RuneCountInString(name))
	}
	for n, row := range t.rows[1:] {
		if n > 0 {
			fmt.Fprintln(w)
		}
		for i, cell := range row {
			if !isEmpty(cell) {
				fmt.Fprintf(w, "%-*s  %s\n", width, header[i], Printable(cell))
			}
		}
	}
}
