package overlays

import (
	"errors"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// explain adds the next command to an error that has no hint.
func explain(err error) error {
	if errhint.Of(err) != "" {
		return err
	}
	if _, ok := errors.AsType[*gate.ConflictError](err); ok {
		return errhint.With(err, "look again with `atoll sync review`; merge what is in conflict by hand")
	}
	if _, ok := errors.AsType[*take.Refused](err); ok {
		return errhint.With(err, "look with `atoll sync commits`; what needs approval: `atoll sync take --approve --commit ID`")
	}
	for _, row := range []struct {
		err  error
		hint string
	}{
		{gate.ErrNoSet, "look first: `atoll sync review`"},
		{gate.ErrUnknownPath, "`atoll sync review` lists what changed"},
		{gate.ErrOtherHash, "look again: `atoll sync review`"},
		{gate.ErrNotAllowed, "what needs approval: `atoll sync override PATH --reason TEXT`"},
		{gate.ErrNoReason, "`atoll sync override PATH --reason TEXT`"},
		{gate.ErrManyDeletions, "look at them with `atoll sync review`, then add --confirm-deletions"},
		{gate.ErrNoBatch, "`atoll sync history` lists what was applied"},
		{gate.ErrUndone, "`atoll sync history` lists what was applied"},
		{checkout.ErrNone, "it is no repository: `atoll sync review` shows the files that changed"},
		{take.ErrNothing, "what is not committed: `atoll sync review`"},
		{take.ErrNoGit, "`atoll sync review` shows the files that changed"},
		{overlay.ErrBaseGone, "move the directory back to where it was; `atoll sync reset` discards the changes"},
	} {
		if errors.Is(err, row.err) {
			return errhint.With(err, row.hint)
		}
	}
	return err
}
