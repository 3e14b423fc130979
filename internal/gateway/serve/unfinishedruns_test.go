package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/run"
)

// Runs whose last steps failed are tried again after pauses that double up to a limit, and
// after a minute when all went well.
func TestUnfinishedRunsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var pauses []time.Duration
		ctx, stop := context.WithCancel(t.Context())
		last := time.Now()
		u := &unfinishedRuns{logger: slog.New(slog.NewTextHandler(&log, nil)), end: func(context.Context) ([]run.Receipt, error) {
			pauses, last = append(pauses, time.Since(last)), time.Now()
			switch len(pauses) {
			case 9:
				stop()
			case 8:
				return []run.Receipt{{ID: "run-1", Step: run.Over}}, nil
			default:
				return []run.Receipt{{ID: "run-1", Step: run.Finished}}, errors.New("the node does not answer")
			}
			return nil, nil
		}}
		u.watch(ctx)
		minutes := []int{1, 2, 4, 8, 16, 30, 30, 30, 1}
		for i, want := range minutes {
			if pauses[i] != time.Duration(want)*time.Minute {
				t.Errorf("pause %d is %v, want %d minutes", i, pauses[i], want)
			}
		}
		if n := strings.Count(log.String(), "the last steps of a run were done"); n != 1 || len(pauses) != len(minutes) {
			t.Errorf("%d looks:\n%s", len(pauses), &log)
		}
	})
}
