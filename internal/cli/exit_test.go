package cli

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
		err       error
		code, run int
	}{
		"any failure":         {failure, 1, 125},
		"usage":               {withCode(exitUsage, failure), 2, 125},
		"configuration":       {fmt.Errorf("x: %w", config.Problems{{Message: "bad"}}), 2, 125},
		"denied":              {denied, 3, 125},
		"no sandbox":          {&sandbox.ProvisionError{Err: failure}, 4, 125},
		"deadline":            {context.DeadlineExceeded, 124, 125},
		"not found":           {withCode(exitNotFound, failure), 127, 127},
		"the command's own":   {withCode(3, nil), 3, 3},
		"the command's own 2": {withCode(2, nil), 2, 2},
	} {
		if got := code(c.err); got != c.code {
			t.Errorf("%s: %d, want %d", name, got, c.code)
		}
		if got := code(asRunError(c.err)); got != c.run {
			t.Errorf("%s, of run: %d, want %d", name, got, c.run)
		}
	}
	if asRunError(nil) != nil {
		t.Error("no error became one")
	}
}

// ending runs finish on an error and returns what it printed and its code.
func ending(ctx context.Context, outErr, err error) (string, int) {
	var stderr strings.Builder
	e := newEnv(&Terminal{Out: io.Discard, Err: &stderr})
	e.out.err = outErr
	code := e.finish(ctx, err)
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
