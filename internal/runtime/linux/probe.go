package linux

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// probe makes an empty sandbox and removes it, which shows more surely than any
// setting what this machine permits. Success is remembered until the next boot.
func (r *Runtime) probe() []sandbox.Gap {
	program, hash, err := r.guests.open()
	if err == nil {
		defer program.Close()
		proof := fmt.Sprintf("%s %s %d", bootID(), hash, os.Geteuid())
		if r.isProven(proof) {
			return nil
		}
		if err = r.probeOnce(program); err == nil {
			r.saveProven(proof)
			return nil
		}
	}
	if errors.Is(err, guestbin.ErrMissing) { // an engine needs it too
		return []sandbox.Gap{{Field: "backend", Reason: err.Error(), Remedy: cmp.Or(errhint.Of(err), "build Atoll with `make build`"), Wrong: true}}
	}
	return []sandbox.Gap{{Field: "backend", Reason: "this machine does not let us build a sandbox: " + err.Error(), Remedy: errhint.Of(err)}}
}

// provenFile records the last successful probe. It is no sandbox: names do not
// begin with a dot.
const provenFile = ".proven"

func (r *Runtime) isProven(proof string) bool {
	text, err := os.ReadFile(filepath.Join(r.dir, provenFile))
	return err == nil && string(text) == proof
}

// saveProven records a success, so that the next process need not probe.
func (r *Runtime) saveProven(proof string) {
	if _, err := os.Stat(r.dir); err != nil {
		return // a probe alone makes no directory
	}
	path := filepath.Join(r.dir, provenFile)
	temporary := fmt.Sprintf("%s-%d", path, os.Getpid())
	if os.WriteFile(temporary, []byte(proof), 0o600) == nil {
		_ = os.Rename(temporary, path)
	}
}

func (r *Runtime) probeOnce(program *os.File) error {
	filter, err := filterOf(&sandbox.Spec{})
	if err != nil {
		return err
	}
	user := account{os.Geteuid(), os.Getegid()}
	d := &draft{Blueprint: blueprint.Blueprint{
		Hostname: "probe", UID: user.uid, GID: user.gid, Become: privileged(), ProbeOnly: true, Filter: filter,
		Root:   blueprint.Mount{Kind: blueprint.Overlay, Target: "/"},
		Mounts: []blueprint.Mount{{Kind: blueprint.Tmpfs, Target: "/dev"}, {Kind: blueprint.Proc, Target: "/proc"}, {Kind: blueprint.Sysfs, Target: "/sys"}},
	}}
	layer, err := d.sources.add("/usr", hostpath.ID{})
	if err != nil {
		return err
	}
	defer d.sources.close()
	d.Root.Lowers = []blueprint.Source{*layer}
	e, err := startInit(program, user, nil, &cgroups.Group{})
	if err != nil {
		return err
	}
	err = e.sendBlueprint(&d.Blueprint, d.sources.files)
	_ = e.abort()
	return withProbeHint(err)
}

// withProbeHint adds a hint to the error of a failed probe.
func withProbeHint(err error) error {
	failed, ok := errors.AsType[*buildError](err)
	if !ok {
		return err
	}
	switch {
	case failed.Step == "mounts" && errors.Is(err, syscall.EPERM):
		return errhint.With(err, "inside a container, /proc must be fully visible: run that container with --security-opt systempaths=unconfined, or use sandbox.backend docker")
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		return errhint.With(err, "Linux 5.12 or newer is needed")
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return errhint.With(err, FindUsernsRestriction().Hint())
	}
	return err
}

// explainRefusal adds a hint to the error of a clone that the kernel refused.
func explainRefusal(err error) error {
	if failed, ok := errors.AsType[*spawn.Error](err); ok && failed.Stage == spawn.StageGroup {
		return err
	}
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EUSERS) {
		return errhint.With(fmt.Errorf("user namespaces: %w: %w", sandbox.ErrUnsupported, err), FindUsernsRestriction().Hint())
	}
	return err
}

func selinuxEnabled() bool {
	_, err := os.Stat("/sys/fs/selinux/enforce")
	return err == nil
}
