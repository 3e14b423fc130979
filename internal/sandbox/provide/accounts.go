package provide

import (
	"errors"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ShareAmong tells how to find out whether several accounts use this process.
// While they do, no tools work on the host, and only the first account is shown the
// host's own programs. It is called before the process serves requests.
func (a *Installation) ShareAmong(many func() bool) { a.shared = many }

func (a *Installation) isShared() bool { return a.shared != nil && a.shared() }

// errShared is why an account has no sandbox.
var errShared = errors.New("several accounts use this gateway, the host's own programs are for the first of them, and there is no image for this one")

// errSharedHost is why tools do not work on the host.
var errSharedHost = errors.New("several accounts use this gateway, so no tools work on the host")

// RefuseHostTools returns an error while several accounts use this process.
func (a *Installation) RefuseHostTools() error {
	if !a.isShared() {
		return nil
	}
	return errhint.With(errSharedHost, "set sandbox.mode to all")
}
