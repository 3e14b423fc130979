package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// namespaces are those that a process can be started in. The others it makes
// itself (see guest/setup).
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Start makes the sandbox run; nothing to do if it does.
func (i *Instance) Start(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reload(); err != nil {
		return err
	}
	if i.record.Run.alive() {
		return nil
	}
	if err := i.begin(ctx); err != nil {
		return fmt.Errorf("sandbox %q: start: %w", i.name, err)
	}
	i.updateSeen()
	return nil
}

func (i *Instance) begin(ctx context.Context) (err error) {
	guest, err := i.runtime.guests.program()
	if err != nil {
		return err
	}
	if err := errors.Join(i.seal(), i.clear()); err != nil {
		return err
	}
	group, started, err := i.initAndGroup(ctx, guest)
	defer func() {
		if err != nil {
			err = errors.Join(err, group.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if err != nil {
		return err
	}
	d, err := i.makeBlueprint(guest, groupViews(group))
	e, failed := started() // meanwhile
	if err = errors.Join(err, failed); err != nil {
		return errors.Join(err, e.abort(), d.close())
	}
	defer func() { _ = d.close() }()
	if err := i.finishInit(e, d, group); err != nil {
		return err
	}
	keepSpares(d.storage)
	return nil
}

// clear empties the wire directory, which an earlier run may have left files in.
func (i *Instance) clear() error {
	if err := os.RemoveAll(i.path(wireDir)); err != nil {
		return err
	}
	if err := os.Mkdir(i.path(wireDir), 0o700); err != nil {
		return err
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil || !privileged() {
		return err
	}
	return os.Lchown(i.path(wireDir), user.uid, user.gid)
}

// initAndGroup starts the init process, unless Expect has, and returns its control
// group. The process is in its group before it does anything else.
func (i *Instance) initAndGroup(ctx context.Context, guest string) (*cgroups.Group, func() (*initProcess, error), error) {
	limits, err := i.groupLimits()
	if err != nil {
		return &cgroups.Group{}, nil, err
	}
	if e := i.takePrestarted(limits); e != nil {
		return e.group, e.result, nil
	}
	group, err := i.runtime.makeGroup(ctx, i.record.Summary.ID, limits)
	if err != nil {
		return &cgroups.Group{}, nil, err
	}
	started, err := i.startInit(guest, group)
	return group, started, err
}

func (i *Instance) groupLimits() (cgroups.Limits, error) {
	if i.record.Groupless {
		return cgroups.Limits{}, nil
	}
	return i.runtime.groupLimits(i.record.Spec)
}

// makeGroup makes the control group of a sandbox, if it has limits to keep.
func (r *Runtime) makeGroup(ctx context.Context, id string, limits cgroups.Limits) (*cgroups.Group, error) {
	if limits.None() {
		return &cgroups.Group{}, nil
	}
	host, err := r.groups()
	if err != nil {
		return nil, err
	}
	if err := host.Existing(id).Remove(ctx); err != nil {
		return nil, err
	}
	return host.Make(id, limits)
}

// finishInit has the init process build the sandbox and execute the guest. The
// record is saved first, so that the process is found by it from then on.
func (i *Instance) finishInit(e *initProcess, d *draft, group *cgroups.Group) error {
	e.run.Limits = group.Kept
	i.record.Run = e.run
	if err := i.record.save(i.dir); err != nil {
		return errors.Join(err, e.abort())
	}
	if err := e.sendBlueprint(&d.Blueprint, d.sources.files); err != nil {
		err = errors.Join(explain(err, d.spec), e.abort())
		i.record.Run = nil
		return errors.Join(err, i.record.save(i.dir))
	}
	_ = e.control.Close()
	go reap(e.run.PID) // it is our child until we end
	return nil
}

// sendBlueprint sends the blueprint and waits for the report. The guest runs when
// the control socket is closed after a report without an error.
func (e *initProcess) sendBlueprint(plan *blueprint.Blueprint, files []*os.File) error {
	plan.Files = len(files)
	if err := errors.Join(blueprint.Send(e.control, plan), blueprint.SendFiles(e.control, files)); err != nil {
		return fmt.Errorf("the new process does not listen: %w", err)
	}
	var report blueprint.Report
	if err := blueprint.Receive(e.control, &report); err != nil {
		return fmt.Errorf("the new process ended: %w", err)
	}
	if !report.OK {
		return &buildError{report}
	}
	if err := blueprint.Receive(e.control, &report); err == nil {
		return &buildError{report} // the guest could not be executed
	}
	return nil
}

// buildError is the step of the sandbox's construction that failed.
type buildError struct{ blueprint.Report }

func (e *buildError) Error() string { return e.Step + ": " + e.Report.Error }

func (e *buildError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return syscall.Errno(e.Errno)
}

// explain adds what to do about the failures that a configuration or the host
// causes.
func explain(err error, spec *sandbox.Spec) error {
	failed, ok := errors.AsType[*buildError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(err, unix.ESTALE):
		return fmt.Errorf("%w: %w", err, sandbox.ErrDenied)
	case failed.Step == "workdir":
		return errhint.With(err, "the sandbox's user may not enter "+spec.Workdir+": change docker.user, or the directory's owner")
	case failed.Step == "limits":
		return errhint.With(err, "a limit above this process's own cannot be given: lower docker.ulimits")
	}
	return err
}
