package synccmd

import (
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// The exit codes of these verbs: 0 done, 1 failed, 2 usage, 3 something is blocked,
// in conflict or not what was shown, 4 no overlay.
const exitNoOverlay = console.ExitNoSandbox

// errRefused means that some of what was asked for was not applied.
var errRefused = errors.New("not everything was applied")

func errNoTree(n int) error {
	return console.WithCode(exitNoOverlay, errhint.With(fmt.Errorf("the sandbox has no overlay %d", n), "`atoll sync status` lists them"))
}

// withCode gives an error its exit code.
func withCode(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*console.ExitError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*gate.ConflictError](err); ok {
		return console.WithCode(console.ExitDenied, err)
	}
	if _, ok := errors.AsType[*take.Refused](err); ok {
		return console.WithCode(console.ExitDenied, err)
	}
	for _, row := range []struct {
		err  error
		code int
	}{
		{errNoMatch, console.ExitUsage}, {gate.ErrNoReason, console.ExitUsage}, {overlay.ErrNone, exitNoOverlay}, {errRefused, console.ExitDenied},
		{gate.ErrNoSet, console.ExitDenied}, {gate.ErrUnknownPath, console.ExitDenied}, {gate.ErrOtherHash, console.ExitDenied}, {gate.ErrNotAllowed, console.ExitDenied},
		{gate.ErrManyDeletions, console.ExitDenied}, {gate.ErrUndone, console.ExitDenied}, {gate.ErrGone, console.ExitDenied},
		{take.ErrChanged, console.ExitDenied}, {take.ErrCheckedOut, console.ExitDenied}, {take.ErrDiverged, console.ExitDenied},
	} {
		if errors.Is(err, row.err) {
			return console.WithCode(row.code, err)
		}
	}
	return err
}
