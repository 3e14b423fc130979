package console

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox"
)

func TestExitCodesOfRun(t *testing.T) {
	failure := errors.New("failure")
	denied := &sandbox.ProvisionError{Name: "x", Step: "check", Err: sandbox.ErrDenied}
	for name, c := range map[string]struct {
		err error
		run int
	}{
		"any failure":         {failure, 125},
		"usage":               {WithCode(ExitUsage, failure), 125},
		"configuration":       {fmt.Errorf("x: %w", config.Problems{{Message: "bad"}}), 125},
		"denied":              {denied, 125},
		"no sandbox":          {&sandbox.ProvisionError{Err: failure}, 125},
		"deadline":            {context.DeadlineExceeded, 125},
		"not found":           {WithCode(ExitNotFound, failure), 127},
		"the command's own":   {WithCode(3, nil), 3},
		"the command's own 2": {WithCode(2, nil), 2},
	} {
		if got := Code(RunError(c.err)); got != c.run {
			t.Errorf("%s, of run: %d, want %d", name, got, c.run)
		}
	}
	if RunError(nil) != nil {
		t.Error("no error became one")
	}
}
