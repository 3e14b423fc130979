package app

import (
	"errors"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/plan"
	"github.com/atoll-run/atoll/internal/rootfs"
)

// ShareAmong tells how to find out whether several accounts use this process.
// While they do, none is shown the host's own programs, nor works on the host: that
// is for a developer's own machine. It is called before the process serves anybody.
func (a *App) ShareAmong(many func() bool) { a.many = many }

func (a *App) isShared() bool { return a.many != nil && a.many() }

// errShared is why a sandbox of the host's programs is not made.
var errShared = errors.New("several accounts use this gateway, so no sandbox is made of the host's own programs")

func (a *App) refuseHostImage(p *plan.Plan) error {
	if !a.isShared() || p.Spec.Backend != backendLinux || !rootfs.IsHost(p.Spec.Image) {
		return nil
	}
	return advice.With(errShared, "name an image: `atoll images import`, then sandbox.docker.image in the configuration")
}

// errSharedHost is why tools do not work on the host.
var errSharedHost = errors.New("several accounts use this gateway, so no tools work on the host")

func (a *App) refuseHostTools() error {
	if !a.isShared() {
		return nil
	}
	return advice.With(errSharedHost, "set sandbox.mode to all")
}
