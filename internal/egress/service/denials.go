package service

import (
	"fmt"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/egress"
)

const (
	// maxDenials is how many different denials of one command are kept.
	maxDenials = 16
	// maxCommands is how many commands have denials that nothing has asked for.
	maxCommands = 256
)

// denials are what was refused, by the command that caused it.
type denials struct {
	mu      sync.Mutex
	byExec  map[string][]egress.Denial
	ordered []string // the oldest first
}

// add keeps a denial; of the same name, port and reason once.
func (d *denials) add(exec string, denial egress.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byExec == nil {
		d.byExec = map[string][]egress.Denial{}
	}
	known, ok := d.byExec[exec]
	if !ok {
		if len(d.ordered) == maxCommands {
			delete(d.byExec, d.ordered[0])
			d.ordered = d.ordered[1:]
		}
		d.ordered = append(d.ordered, exec)
	}
	if len(known) < maxDenials && !slices.Contains(known, denial) {
		d.byExec[exec] = append(known, denial)
	}
}

// take returns the denials of a command and forgets them.
func (d *denials) take(exec string) []egress.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.byExec[exec]
	delete(d.byExec, exec)
	d.ordered = slices.DeleteFunc(d.ordered, func(id string) bool { return id == exec })
	return found
}

// Denials returns what was refused to a command, a line each, and forgets it.
func (e *Egress) Denials(exec string) (lines []string) {
	if e == nil {
		return nil
	}
	for _, d := range e.denials.take(exec) {
		lines = append(lines, DenialText(d))
	}
	return lines
}

// DenialText is a denial for people and models: the name, the port, why, and the rule
// that would allow it.
func DenialText(d egress.Denial) string {
	text := fmt.Sprintf("egress: %s:%d denied: %s", d.Name, d.Port, d.Reason)
	if d.Hint != "" {
		text += " (" + d.Hint + ")"
	}
	return text
}

// AllDenials returns what was refused to all commands, a line each, and forgets it.
func (e *Egress) AllDenials() (lines []string) {
	if e == nil {
		return nil
	}
	e.denials.mu.Lock()
	execs := slices.Clone(e.denials.ordered)
	e.denials.mu.Unlock()
	for _, exec := range execs {
		lines = append(lines, e.Denials(exec)...)
	}
	return lines
}
