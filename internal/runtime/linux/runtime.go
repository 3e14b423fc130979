// Package linux makes sandboxes with nothing but the kernel: namespaces, mounts,
// control groups, system-call filters. It needs no daemon and no root, and keeps
// everything in the state directory.
//
// A sandbox is a directory below <state>/linux. Its first process is the guest,
// started in fresh namespaces; it builds the walls around itself from a
// description that this package writes (packages walls and guest/enclose), and
// then serves the host. It lives on when whoever made it ends, and the next
// process finds it by its record.
package linux

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Roots says what the root of a sandbox is made of; see rootfs.Store.
type Roots interface {
	Resolve(ctx context.Context, ref string, id rootfs.Identity) (*rootfs.Root, *rootfs.Pin, error)
	Unpin(owner string) error
}

// Options are what a Runtime is made of.
type Options struct {
	Installation string // the id whose sandboxes are ours; see For
	StateDir     string // absolute; everything is kept below it
	// Guest returns the guest program for an architecture ("amd64", "arm64").
	Guest  func(arch string) (*guestbin.Guest, error)
	Roots  Roots
	Logger *slog.Logger // nil discards
}

// Runtime makes sandboxes on this machine.
type Runtime struct {
	options Options
	dir     string // one directory a sandbox
	logger  *slog.Logger
	shelf   *shelf
	groups  func() (*cgroups.Host, error)
	tried   func() []sandbox.Gap
	nursery *nursery
}

var (
	_ sandbox.Runtime = (*Runtime)(nil)
	_ sandbox.Sweeper = (*Runtime)(nil)
	_ sandbox.Finder  = (*Runtime)(nil)
)

// New returns a runtime. It makes nothing yet.
func New(o Options) (*Runtime, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := &Runtime{options: o, dir: filepath.Join(o.StateDir, "linux"), logger: logger, nursery: &nursery{}}
	r.shelf = &shelf{dir: filepath.Join(o.StateDir, "guest"), find: o.Guest}
	r.groups = sync.OnceValues(cgroups.Find)
	r.tried = sync.OnceValue(r.try)
	return r, nil
}

func (o *Options) check() error {
	var problems []error
	if !filepath.IsAbs(o.StateDir) {
		problems = append(problems, fmt.Errorf("state directory %q is not absolute", o.StateDir))
	}
	if o.Guest == nil || o.Roots == nil {
		problems = append(problems, errors.New("guest program or roots are missing"))
	}
	return errors.Join(problems...)
}

// For returns the runtime of an installation. What was found out about the
// machine is known to both.
func (r *Runtime) For(installation string) *Runtime {
	other := *r
	other.options.Installation = installation
	return &other
}

// privileged tells whether this process may do for a sandbox what the sandbox
// cannot do for itself: map any user, mount on its behalf.
func privileged() bool { return os.Geteuid() == 0 }
