package tool

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
)

// giveEgress has a command started with the egress of the location, under an id by which
// its denials are found.
func (l *Location) giveEgress(command *machine.Command) {
	if l.Egress == nil {
		return
	}
	command.Grant, command.ID = l.Egress.GrantID(), rand.Text()
	for name, value := range l.Egress.Environment() {
		if !slices.ContainsFunc(command.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			command.Env = append(command.Env, name+"="+value)
		}
	}
}

// denials returns what egress refused to a command that has ended.
func (l *Location) denials(command *machine.Command) []string {
	if l.Egress == nil {
		return nil
	}
	return l.Egress.Denials(command.ID)
}
