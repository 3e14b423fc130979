package synccmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// mark is what a person decided about an entry, before it is carried out.
type mark int

const (
	unmarked mark = iota
	marked        // to be applied
	rejected
)

// page is what the screen shows.
type page int

const (
	listPage page = iota
	diffPage
	reasonPage // a line is typed
	askPage    // apply?
)

// model is the state of the review screen. It knows no terminal: keys go in, lines
// come out.
type model struct {
	tree    *api.SyncTree
	style   console.Style
	diff    func(path string) (string, error)
	entries []api.SyncEntry
	marks   []mark
	reasons []string // of overrides
	at, top int
	page    page
	lines   []string // of the diff
	scroll  int
	typed   []rune // of the reason
	message string
	height  int
	done    bool
	apply   bool
}

func newModel(t *api.SyncTree, style console.Style, diff func(string) (string, error)) *model {
	entries := sorted(t.Entries)
	return &model{tree: t, style: style, diff: diff, entries: entries, marks: make([]mark, len(entries)), reasons: make([]string, len(entries)), height: 24}
}

func (m *model) entry() *api.SyncEntry { return &m.entries[m.at] }

// press is one key.
func (m *model) press(k key) {
	m.message = ""
	switch m.page {
	case listPage:
		m.pressList(k)
	case diffPage:
		m.pressDiff(k)
	case reasonPage:
		m.pressReason(k)
	case askPage:
		m.pressAsk(k)
	}
}

func (m *model) pressList(k key) {
	switch k {
	case "n", "j", keyDown:
		m.move(1)
	case "p", "k", keyUp:
		m.move(-1)
	case " ", keyPageDown:
		m.move(m.rows())
	case "b", keyPageUp:
		m.move(-m.rows())
	case "g", keyHome:
		m.move(-len(m.entries))
	case "G", keyEnd:
		m.move(len(m.entries))
	case "d", keyEnter:
		m.showDiff()
	case "q", keyEscape, keyInterrupt:
		m.leave(k)
	default:
		m.decide(k)
	}
}

// decide marks entries.
func (m *model) decide(k key) {
	switch k {
	case "a":
		m.approve()
	case "r":
		m.marks[m.at], m.reasons[m.at] = rejected, ""
		m.move(1)
	case "u":
		m.marks[m.at], m.reasons[m.at] = unmarked, ""
	case "A":
		n := 0
		for i := range m.entries {
			if m.entries[i].Verdict == api.SyncPass && m.marks[i] == unmarked {
				m.marks[i] = marked
				n++
			}
		}
		m.message = fmt.Sprintf("%s marked, %d of them deletions", files(n), deletions(m.approved()))
	}
}

// approve marks the entry if it passes, and asks for a reason where one is needed.
func (m *model) approve() {
	switch e := m.entry(); e.Verdict {
	case api.SyncPass:
		m.marks[m.at] = marked
		m.move(1)
	case api.SyncApprove:
		m.page, m.typed = reasonPage, nil
	case api.SyncBlocked:
		m.message = "blocked: " + reasonText(e)
		if isSecret(e) {
			m.message = "a secret is only taken with its hash: atoll sync override " + quoted(e.Path) + " --reason TEXT --hash HASH"
		}
	default:
		m.message = "in conflict with the host's file: merge by hand, then reject (r)"
	}
}

// isSecret reports whether secrets are all that an entry is blocked for.
func isSecret(e *api.SyncEntry) bool {
	return !slices.ContainsFunc(e.Reasons, func(r api.SyncReason) bool { return r.Verdict == api.SyncBlocked && r.Rule != "secret" })
}

func (m *model) pressDiff(k key) {
	switch k {
	case "n", "j", keyDown, keyEnter:
		m.scroll++
	case "p", "k", keyUp:
		m.scroll--
	case " ", keyPageDown:
		m.scroll += m.rows()
	case "b", keyPageUp:
		m.scroll -= m.rows()
	case "q", "d", keyEscape, keyInterrupt:
		m.page = listPage
	case "a", "r":
		m.page = listPage
		m.decide(k)
	}
	m.scroll = max(0, min(m.scroll, len(m.lines)-m.rows()))
}

// maxReason bounds what is typed.
const maxReason = 200

func (m *model) pressReason(k key) {
	switch k {
	case keyEscape, keyInterrupt:
		m.page = listPage
	case keyBackspace:
		m.typed = m.typed[:max(0, len(m.typed)-1)]
	case keyEnter:
		if reason := strings.TrimSpace(string(m.typed)); reason != "" {
			m.marks[m.at], m.reasons[m.at], m.page = marked, reason, listPage
			m.move(1)
		}
	default:
		if r := []rune(k); len(r) == 1 && len(m.typed) < maxReason {
			m.typed = append(m.typed, r[0])
		}
	}
}

func (m *model) pressAsk(k key) {
	switch k {
	case "y":
		m.done, m.apply = true, true
	case "x":
		m.done = true
	case "n", "q", keyEscape, keyInterrupt:
		m.page = listPage
	}
}

// leave ends the review, after a question if something is marked. Ctrl-C leaves
// everything as it is.
func (m *model) leave(k key) {
	if k == keyInterrupt || !slices.ContainsFunc(m.marks, func(is mark) bool { return is != unmarked }) {
		m.done = true
		return
	}
	m.page = askPage
}

func (m *model) move(by int) { m.at = max(0, min(m.at+by, len(m.entries)-1)) }

func (m *model) showDiff() {
	text, err := m.diff(m.entry().Path)
	if err != nil {
		m.message = console.Joined(err.Error())
		return
	}
	m.lines, m.scroll, m.page = nil, 0, diffPage
	for line := range strings.Lines(text) {
		m.lines = append(m.lines, diffLine(m.style, line))
	}
}

// approved returns the entries that are marked and need no reason.
func (m *model) approved() (list []api.SyncEntry) {
	for i := range m.entries {
		if m.marks[i] == marked && m.reasons[i] == "" {
			list = append(list, m.entries[i])
		}
	}
	return list
}

// decisions are what a person decided on the screen.
type decisions struct {
	approved, rejected []api.SyncEntry
	overridden         []override
	confirmed          bool // the number of deletions was in the question
}

type override struct {
	entry  api.SyncEntry
	reason string
}

// decisions returns what is to be carried out: nothing unless the person said so.
func (m *model) decisions() (d decisions) {
	if !m.apply {
		return d
	}
	d.approved, d.confirmed = m.approved(), true
	for i := range m.entries {
		switch {
		case m.marks[i] == rejected:
			d.rejected = append(d.rejected, m.entries[i])
		case m.marks[i] == marked && m.reasons[i] != "":
			d.overridden = append(d.overridden, override{m.entries[i], m.reasons[i]})
		}
	}
	return d
}
