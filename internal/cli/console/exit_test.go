package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

func TestExitCodes(t *testing.T) {
	failure := errors.New("failure")
	denied := &sandbox.ProvisionError{Name: "x", Step: "check", Err: sandbox.ErrDenied}
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"any failure":         {failure, 1},
		"usage":               {WithCode(ExitUsage, failure), 2},
		"configuration":       {fmt.Errorf("x: %w", config.Problems{{Message: "bad"}}), 2},
		"denied":              {denied, 3},
		"no sandbox":          {&sandbox.ProvisionError{Err: failure}, 4},
		"deadline":            {context.DeadlineExceeded, 124},
		"not found":           {WithCode(ExitNotFound, failure), 127},
		"the command's own":   {WithCode(3, nil), 3},
		"the command's own 2": {WithCode(2, nil), 2},
	} {
		if got := Code(c.err); got != c.code {
			t.Errorf("%s: %d, want %d", name, got, c.code)
		}
	}
}

// ending runs finish on an error and returns what it printed and its code.
func ending(ctx context.Context, outErr, err error) (string, int) {
	var stderr strings.Builder
	e := NewEnv(&Terminal{Out: io.Discard, Err: &stderr})
	e.Out.Err = outErr
	code := e.Finish(ctx, err)
	return stderr.String(), code
}

func TestFinishSaysWhatAndWhatToDo(t *testing.T) {
	err := errhint.With(errors.New("first\nsecond\x1b"), "do\x1bthis")
	text, code := ending(t.Context(), nil, err)
	if want := "error: first\n  second\\u001b\nhint: do\\u001bthis\n"; text != want || code != 1 {
		t.Errorf("got %d, %q", code, text)
	}
}

func TestFinishIsQuietAboutSignals(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(signalled{syscall.SIGINT})
	for name, c := range map[string]struct {
		ctx         context.Context
		outErr, err error
		code        int
		quiet       bool
	}{
		"Ctrl-C":                 {interrupted, nil, fmt.Errorf("x: %w", context.Canceled), 130, true},
		"Ctrl-C too late":        {interrupted, nil, nil, 0, true},
		"Ctrl-C, but it failed":  {interrupted, nil, errors.New("failure"), 1, false},
		"a pipe was closed":      {t.Context(), fmt.Errorf("x: %w", syscall.EPIPE), nil, 141, true},
		"the disk is full":       {t.Context(), syscall.ENOSPC, nil, 1, false},
		"cancelled by ourselves": {t.Context(), nil, context.Canceled, 1, false},
	} {
		text, code := ending(c.ctx, c.outErr, c.err)
		if code != c.code || (text == "") != c.quiet {
			t.Errorf("%s: code %d, want %d; said %q", name, code, c.code, text)
		}
	}
}
