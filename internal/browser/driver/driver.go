// Package driver says who drives a browser: its agent, or a person who has taken it over.
package driver

import (
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The reasons why somebody does not get a browser.
var (
	ErrPerson = errhint.With(errors.New("busy: a person has the browser"), "wait until the person gives it back")
	ErrAgent  = errhint.With(errors.New("busy: the agent is using the browser"), "try again when its action has ended")
)

// Drivers knows who drives each browser, by the name of its sandbox. The zero value is
// ready.
type Drivers struct {
	mu      sync.Mutex
	actions map[string]int // of agents, under way
	persons map[string]*seat
}

// seat is a person's turn.
type seat struct{ _ byte } // of some size, so that each has an address of its own

// Act begins an action of an agent. It returns ErrPerson while a person drives. The caller
// calls end.
func (d *Drivers) Act(name string) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persons[name] != nil {
		return nil, ErrPerson
	}
	if d.actions == nil {
		d.actions = map[string]int{}
	}
	d.actions[name]++
	return sync.OnceFunc(func() { d.ended(name) }), nil
}

func (d *Drivers) ended(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.actions[name]--; d.actions[name] == 0 {
		delete(d.actions, name)
	}
}

// Take gives a browser to a person. It returns ErrPerson if another person has it, and
// ErrAgent while an action of the agent is under way. The caller calls release.
func (d *Drivers) Take(name string) (release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.persons[name] != nil:
		return nil, ErrPerson
	case d.actions[name] > 0:
		return nil, ErrAgent
	}
	if d.persons == nil {
		d.persons = map[string]*seat{}
	}
	mine := &seat{}
	d.persons[name] = mine
	return func() { d.release(name, mine) }, nil
}

func (d *Drivers) release(name string, mine *seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persons[name] == mine {
		delete(d.persons, name)
	}
}

// IsTaken reports whether a person drives a browser.
func (d *Drivers) IsTaken(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.persons[name] != nil
}
