// Package errhint attaches to an error the one line that tells its reader what
// to do next. The command line prints it as "hint:"; the gateway sends it as a
// field of its own. It knows nothing of any domain.
package errhint

import "errors"

// advised is an error together with its hint. The hint is not part of the
// message, so that wrapping the error does not bury it in the middle of a line.
type advised struct {
	error
	hint string
}

func (a advised) Unwrap() error { return a.error }

// With returns err with a hint. A nil error stays nil.
func With(err error, hint string) error {
	if err == nil {
		return nil
	}
	return advised{err, hint}
}

// Of returns the outermost hint of err, or "".
func Of(err error) string {
	if a, ok := errors.AsType[advised](err); ok {
		return a.hint
	}
	return ""
}
