package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

// stopError is a reason to end a request that is under way.
type stopError struct{ problem *dialect.Problem }

func (e *stopError) Error() string { return e.problem.Message }

// errGone is a caller that does not wait for its answer any more.
var errGone = errors.New("the caller has gone")

func stop(status int, code, message string, retry bool) error {
	return &stopError{&dialect.Problem{Status: status, Code: code, Message: message, Retry: retry}}
}

// callerError is a failure to read from the caller or to write to it.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *callerError) Unwrap() error { return e.err }

// isCallers reports whether a failure is the caller's: it has gone, or its
// connection broke.
func isCallers(err error) bool {
	_, atCaller := errors.AsType[*callerError](err)
	return atCaller || errors.Is(err, errGone)
}

// isUpstreams reports whether a failure is the upstream's, and not the caller's or
// a reason of ours to stop. That it is silent for too long is one.
func isUpstreams(err error) bool {
	if s, ok := errors.AsType[*stopError](err); ok {
		return s.problem.Code == "upstream_timeout"
	}
	return !isCallers(err)
}

// fail answers a request whose answer has not begun.
func (x *exchange) fail(err error) bool { return x.refuse(x.problemOf(err)) }

// problemOf returns the problem that the caller gets for a failure.
func (x *exchange) problemOf(err error) *dialect.Problem {
	if s, ok := errors.AsType[*stopError](err); ok {
		return s.problem
	}
	if isCallers(err) {
		return callerGone
	}
	x.s.options.Logger.Warn("upstream", "error", err, "request", x.id)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &dialect.Problem{Status: 504, Code: "upstream_timeout", Message: "the model did not answer in time", Retry: true}
	}
	return &dialect.Problem{Status: 502, Code: "upstream_failed", Message: "the model cannot be reached at the moment", Retry: true}
}

// reason returns why a call to the upstream failed: the reason that it was
// cancelled for, or else what net/http says.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// checkStop returns the reason to stop waiting, if there is one; limit is when
// the upstream has been silent for too long.
func (x *exchange) checkStop(now, limit time.Time) error {
	switch {
	case x.s.ctx.Err() != nil:
		return stop(503, "shutting_down", "the proxy is being stopped", true)
	case x.timeIsOver(now):
		return stop(403, "deadline", "the run's time is over", false)
	case now.After(x.end):
		return stop(504, "deadline", "the answer took longer than is allowed", false)
	case now.After(limit):
		return stop(504, "upstream_timeout", "the model fell silent", true)
	}
	if err := x.c.reader.Probe(); errors.Is(err, io.EOF) {
		return errGone
	} else if err != nil {
		return &callerError{err}
	}
	return nil
}

// timeIsOver reports whether the caller may ask nothing more.
func (x *exchange) timeIsOver(now time.Time) bool {
	return x.caller.ended() || now.After(x.end) && !x.caller.Until.IsZero()
}
