// Package linux makes sandboxes with nothing but the kernel: namespaces, mounts,
// control groups, system-call filters. It needs no daemon and no root, and keeps
// everything in the state directory.
//
// A sandbox is a directory below <state>/linux. Its init process is the guest,
// started in new namespaces; it sets up mounts, limits and filters from a
// description that this package writes (packages blueprint and guest/setup), and
// then serves the host. It keeps running when the process that made it ends, and
// the next one finds it by its record.
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

// Roots resolves an image to the layers of a root; see rootfs.Store.
type Roots interface {
	Resolve(ctx context.Context, ref string, id rootfs.Identity) (*rootfs.Root, *rootfs.Pin, error)
	Unpin(owner string) error
}

// Options are the parameters of New.
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
	options    Options
	dir        string // one directory a sandbox
	logger     *slog.Logger
	guests     *guestStore
	groups     func() (*cgroups.Host, error)
	probed     func() []sandbox.Gap
	prestarted *prestartedInits
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
	r := &Runtime{options: o, dir: filepath.Join(o.StateDir, "linux"), logger: logger, prestarted: &prestartedInits{}}
	r.guests = &guestStore{dir: filepath.Join(o.StateDir, "guest"), find: o.Guest}
	r.groups = sync.OnceValues(cgroups.Find)
	r.probed = sync.OnceValue(r.probe)
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

// For returns the runtime of another installation, which shares what was found out
// about the machine.
func (r *Runtime) For(installation string) *Runtime {
	other := *r
	other.options.Installation = installation
	return &other
}

// privileged reports whether this process is root, and so may map any user and
// mount for a sandbox.
func privileged() bool { return os.Geteuid() == 0 }
