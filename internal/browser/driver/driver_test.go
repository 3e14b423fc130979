package driver_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/browser/driver"
	"github.com/atoll-run/atoll/internal/filelock"
)

// TestOneDriver checks that an agent and a person never drive at once.
func TestOneDriver(t *testing.T) {
	var d driver.Drivers
	end, err := d.Act("box")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Take("box"); !errors.Is(err, driver.ErrAgent) {
		t.Error(err)
	}
	end()
	end()
	release, err := d.Take("box")
	if err != nil || !d.IsTaken("box") || d.IsTaken("other") {
		t.Fatal(err)
	}
	if _, err := d.Act("box"); !errors.Is(err, driver.ErrPerson) {
		t.Error(err)
	}
	if _, err := d.Take("box"); !errors.Is(err, driver.ErrPerson) {
		t.Error(err)
	}
	if _, err := d.Act("other"); err != nil {
		t.Error(err)
	}
	release()
	again, err := d.Take("box")
	if err != nil {
		t.Fatal(err)
	}
	release() // of the turn before
	if !d.IsTaken("box") {
		t.Error("an old release ended a new turn")
	}
	again()
}

// TestOneDriverOfTwoProcesses checks that two processes know of each other's drivers.
func TestOneDriverOfTwoProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "locks")
	locks, err := filelock.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	agent, person := driver.Drivers{Locks: locks}, driver.Drivers{Locks: filelock.Existing(file)}
	end, err := agent.Act("box")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := person.Take("box"); !errors.Is(err, driver.ErrAgent) || person.IsTaken("box") {
		t.Error(err)
	}
	end()
	release, err := person.Take("box")
	if err != nil || !agent.IsTaken("box") || agent.IsTaken("other") {
		t.Fatal(err)
	}
	if _, err := agent.Act("box"); !errors.Is(err, driver.ErrPerson) {
		t.Error(err)
	}
	if _, err := agent.Take("box"); !errors.Is(err, driver.ErrPerson) {
		t.Error(err)
	}
	release()
	if _, err := agent.Act("box"); err != nil || agent.IsTaken("box") {
		t.Error(err)
	}
}

// TestOnePersonWins checks that of many who take a browser at once one gets it.
func TestOnePersonWins(t *testing.T) {
	var d driver.Drivers
	var won atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := d.Take("box"); err == nil {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Error(won.Load())
	}
}
