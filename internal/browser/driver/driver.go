// Package driver says who drives a browser: its agent, or a person who has taken it over.
package driver

import (
	"errors"
	"sync"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
)

// The reasons why somebody does not get a browser.
var (
	ErrPerson = errhint.With(errors.New("busy: a person has the browser"), "wait until the person gives it back")
	ErrAgent  = errhint.With(errors.New("busy: the agent is using the browser"), "try again when its action has ended")
)

// Drivers knows who drives each browser, by the name of its sandbox. The zero value is
// ready.
type Drivers struct {
	// Locks have it known to all processes of this machine. It is set before the first
	// use; nil is this process alone.
	Locks *filelock.Locks

	mu      sync.Mutex
	actions map[string]*turn // of agents, under way
	persons map[string]*turn
}

// turn is the time in which an agent, or a person, drives.
type turn struct {
	count int // of actions
	lock  *filelock.Lock
}

// lockName names what a person holds and agents share.
func lockName(name string) string { return "driver " + name }

// Act begins an action of an agent. It returns ErrPerson while a person drives. The caller
// calls end.
func (d *Drivers) Act(name string) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persons[name] != nil {
		return nil, ErrPerson
	}
	mine := d.actions[name]
	if mine == nil {
		mine = &turn{}
		if mine.lock, err = d.lock((*filelock.Locks).TryShare, name); err != nil {
			return nil, err
		}
		if d.actions == nil {
			d.actions = map[string]*turn{}
		}
		d.actions[name] = mine
	}
	mine.count++
	return sync.OnceFunc(func() { d.ended(name, mine) }), nil
}

// lock takes the lock of a browser. Where another process has it, the error says who.
func (d *Drivers) lock(try func(*filelock.Locks, string) (*filelock.Lock, error), name string) (*filelock.Lock, error) {
	if d.Locks == nil {
		return nil, nil //nolint:nilnil // a lock that is nil can be released
	}
	lock, err := try(d.Locks, lockName(name))
	if errors.Is(err, filelock.ErrHeld) {
		if err = ErrAgent; d.isHeldAlone(name) {
			err = ErrPerson
		}
	}
	return lock, err
}

func (d *Drivers) isHeldAlone(name string) bool {
	held, err := d.Locks.IsHeldAlone(lockName(name))
	return held || err != nil
}

func (d *Drivers) ended(name string, mine *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mine.count--; mine.count == 0 {
		mine.lock.Release()
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
	case d.actions[name] != nil:
		return nil, ErrAgent
	}
	mine := &turn{count: 1}
	if mine.lock, err = d.lock((*filelock.Locks).TryHold, name); err != nil {
		return nil, err
	}
	if d.persons == nil {
		d.persons = map[string]*turn{}
	}
	d.persons[name] = mine
	return func() { d.release(name, mine) }, nil
}

func (d *Drivers) release(name string, mine *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.persons[name] == mine {
		mine.lock.Release()
		delete(d.persons, name)
	}
}

// IsTaken reports whether a person drives a browser.
func (d *Drivers) IsTaken(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.persons[name] != nil || d.Locks != nil && d.isHeldAlone(name)
}
