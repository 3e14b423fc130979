package synccmd

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// frame is how many lines of the screen are not the list: title, counts, two rules
// and the keys.
const frame = 5

// rows returns how many lines of the list or the diff fit.
func (m *model) rows() int { return max(1, m.height-frame) }

// view returns the screen as lines, which may be longer than it is wide.
func (m *model) view(height int) []string {
	m.height = height
	lines := []string{m.title(), m.style.Dim(countsText(m.tree)), m.style.Dim(strings.Repeat("─", 40))}
	if m.page == diffPage {
		lines = append(lines, m.diffRows()...)
	} else {
		lines = append(lines, m.listRows()...)
	}
	for len(lines) < height-2 {
		lines = append(lines, "")
	}
	return append(lines, m.note(), m.keys())
}

// note returns the line above the keys: what the last key did, or all of the reason
// of the entry at the cursor, which may not fit into the list.
func (m *model) note() string {
	if m.message == "" && m.page == listPage {
		return m.style.Dim(reasonText(m.entry()))
	}
	return m.style.Warn(m.message)
}

func (m *model) title() string {
	title := m.style.Bold(console.Printable(m.tree.Base))
	if m.page == diffPage {
		return title + "  " + paintVerdict(m.style, m.entry().Verdict) + " " + pathText(m.entry())
	}
	return title + m.style.Dim(fmt.Sprintf("  %d of %d", m.at+1, len(m.entries)))
}

func (m *model) listRows() (lines []string) {
	rows := m.rows()
	m.top = max(min(m.top, m.at), m.at-rows+1)
	c := columnsFor(m.entries)
	for i := m.top; i < min(m.top+rows, len(m.entries)); i++ {
		cursor := "  "
		if i == m.at {
			cursor = m.style.Bold("▸ ")
		}
		lines = append(lines, cursor+m.markText(i)+" "+c.line(m.style, &m.entries[i]))
	}
	return lines
}

func (m *model) markText(i int) string {
	switch m.marks[i] {
	case marked:
		return m.style.Good("✓")
	case rejected:
		return m.style.Alarm("✗")
	}
	return " "
}

func (m *model) diffRows() []string {
	if len(m.lines) == 0 {
		return []string{m.style.Dim("(the content is the same)")}
	}
	return m.lines[m.scroll:min(m.scroll+m.rows(), len(m.lines))]
}

// keys returns the last line: what can be pressed now.
func (m *model) keys() string {
	switch m.page {
	case diffPage:
		return m.style.Dim(fmt.Sprintf("line %d of %d", m.scroll+1, len(m.lines))) + "  j k space b move · a approve · r reject · q back"
	case reasonPage:
		return "why may it pass? " + console.Printable(string(m.typed)) + "▏  " + m.style.Dim("enter · esc back")
	case askPage:
		return m.question() + "  y apply · n back · x leave without"
	case listPage:
	}
	return "d diff · a approve · r reject · u unmark · A all passing · n p move · q quit"
}

// question says what y does. Deletions are named: they are the confirmation.
func (m *model) question() string {
	d := *m
	d.apply = true
	all := d.decisions()
	var parts []string
	if n := len(all.approved) + len(all.overridden); n > 0 {
		text := "apply " + files(n)
		if gone := deletions(all.approved); gone > 0 {
			text += m.style.Alarm(fmt.Sprintf(" (%s deleted)", number(gone)))
		}
		parts = append(parts, text)
	}
	if n := len(all.rejected); n > 0 {
		parts = append(parts, "reject "+files(n))
	}
	return strings.Join(parts, ", ") + "?"
}
