package tool

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
)

// giveEgress has a command started with an egress, under an id by which its denials are
// found.
func giveEgress(command *machine.Command, e Egress) {
	if e == nil {
		return
	}
	command.Grant, command.ID = e.GrantID(), rand.Text()
	for name, value := range e.Environment() {
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

// startBackground starts a command that has the egress of the location for as long as it
// lives, and says what there is to know about that.
func (l *Location) startBackground(ctx context.Context, command *machine.Command) (id, note string, err error) {
	if l.Background == nil {
		if l.Egress != nil { // it would end with the call
			note = "; it has no egress: run what reaches other hosts in the foreground"
		}
		id, err = l.Machine.Start(ctx, command)
		return id, note, err
	}
	e, err := l.Background.Open(ctx)
	if err != nil {
		return "", "", err
	}
	giveEgress(command, e)
	if id, err = l.Machine.Start(ctx, command); err != nil {
		return "", "", err
	}
	l.Background.Started(id)
	return id, "; it has egress, and ends with the process that serves this session", nil
}

// backgroundDenials returns what egress refused to a command in the background since the
// last time.
func (l *Location) backgroundDenials(id string) []string {
	if l.Background == nil {
		return nil
	}
	return l.Background.Denials(id)
}
