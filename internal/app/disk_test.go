package app_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Where a private copy could take the last of the disk, no sandbox is made, and
// the message has the numbers and what to do.
func TestPrivateCopyNeedsRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	a := s.open()
	a.MeasureFree = func() (int64, error) { return 255 << 20, nil }
	_, err := a.Provide(t.Context(), session("full"), provide.Options{})
	failed, ok := errors.AsType[*sandbox.ProvisionError](err)
	if !ok || failed.Step != "workspace" || !strings.Contains(err.Error(), "255 MiB are free") || !strings.Contains(err.Error(), "256") {
		t.Errorf("%v, want a refusal with the numbers", err)
	}
	if !strings.Contains(errhint.Of(err), "ATOLL_STATE_DIR") {
		t.Errorf("the hint is %q", errhint.Of(err))
	}
	if rows := s.rows(a); len(rows) > 0 {
		t.Errorf("made all the same: %v", rows)
	}
	a.MeasureFree = func() (int64, error) { return 511 << 20, nil } // and the reserve is not allocated yet
	if _, err := a.Provide(t.Context(), session("full"), provide.Options{}); err == nil || !strings.Contains(err.Error(), "511 MiB are free") {
		t.Errorf("%v, want a refusal: the reserve would take the last of the disk", err)
	}
	a.MeasureFree = func() (int64, error) { return 512 << 20, nil }
	discardLater(t, a, s.provide(a, session("full")))
}

// What is brought home of another machine leaves the reserve on the disk.
func TestCopiesLeaveTheReserve(t *testing.T) {
	t.Parallel()
	a := newSite(t).open()
	a.MeasureFree = func() (int64, error) { return 300 << 20, nil }
	if err := a.CheckRoom(300<<20 - provide.DiskReserve); err != nil {
		t.Errorf("what leaves the reserve: %v", err)
	}
	if err := a.CheckRoom(301<<20 - provide.DiskReserve); !errors.Is(err, provide.ErrDiskFull) || !strings.Contains(errhint.Of(err), "ATOLL_STATE_DIR") {
		t.Errorf("what takes of it: %v", err)
	}
}

// discardLater removes a sandbox when the test is over.
func discardLater(t *testing.T, a *app.App, in *provide.ReadySandbox) {
	t.Helper()
	t.Cleanup(func() {
		in.Release()
		if err := a.Discard(context.WithoutCancel(t.Context()), in.Plan); err != nil {
			t.Error(err)
		}
	})
}

// A command that fills the disk is ended before the reserve is gone, and its
// sandbox serves the next one when there is room again.
func TestCommandThatFillsTheDiskIsEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	a := s.open()
	var free atomic.Int64
	free.Store(1 << 30)
	a.MeasureFree = func() (int64, error) { return free.Load(), nil }
	in := s.provide(a, session("filling"))
	discardLater(t, a, in)
	begun := time.AfterFunc(100*time.Millisecond, func() { free.Store(1 << 20) })
	defer begun.Stop()
	_, err := in.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sleep", "60"}})
	if err == nil || !strings.Contains(err.Error(), "the disk is full: 1 MiB are free") || errhint.Of(err) == "" {
		t.Errorf("%v (%s), want it ended for the disk", err, errhint.Of(err))
	}
	free.Store(1 << 30)
	result, err := in.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/true"}})
	if err != nil || result.ExitCode != 0 {
		t.Errorf("the next command: %v, %v", result, err)
	}
}
