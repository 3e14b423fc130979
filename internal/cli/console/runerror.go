package console

import (
	"errors"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// RunError gives every failure of Atoll itself the code 125, so that none can
// be mistaken for the command's.
func RunError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sandbox.ErrBusy) {
		err = errhint.With(err, errhint.Of(err)+"; or give --rm for a sandbox of its own, or --scope session --session NAME for another that stays")
	}
	if exit, ok := errors.AsType[*ExitError](err); ok && (exit.Err == nil || exit.Code >= ExitTimeout) {
		return err
	}
	return WithCode(ExitRunFailure, err)
}
