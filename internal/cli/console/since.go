package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// SinceFlag adds --since, a moment in one of the ways that people say it.
func SinceFlag(cmd *cobra.Command, since *string, fallback string) {
	cmd.Flags().StringVar(since, "since", fallback, "from this `time` on: 90m, 24h, 7d, a day (2026-01-31) or a moment (RFC 3339)")
}

// RunFilterFlag adds --run-id for verbs that show what runs did.
func RunFilterFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "run-id", "", "only the run with this `id`")
	OldSpelling(cmd, "run", "run-id")
}

// Moment reads --since.
func Moment(cmd *cobra.Command, text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, Usage(cmd, fmt.Errorf("--since %q is no time", text))
}
