package console

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/run"
)

// The types of flags that several verbs share: one notation for one kind of value.

const (
	maxTime  = 366 * 24 * time.Hour // the longest time that a flag takes
	maxWork  = run.MaxTimeout       // the longest time that an agent can be given
	maxBytes = 1 << 50              // the largest size that a flag takes
)

// timeValue is a length of time: 90 (seconds), 90s, 1m30s or 2d.
type timeValue struct {
	to    *time.Duration
	least time.Duration
	most  time.Duration
	whole bool // only whole seconds
}

// TimeFlag adds a flag that takes a length of time.
func TimeFlag(cmd *cobra.Command, to *time.Duration, name string, value time.Duration, about string) {
	*to = value
	cmd.Flags().Var(&timeValue{to: to, most: maxTime}, name, about)
}

// LifeFlag adds a flag that says how long something is good for: a second at least.
func LifeFlag(cmd *cobra.Command, to *time.Duration, name string, value time.Duration, about string) {
	*to = value
	cmd.Flags().Var(&timeValue{to: to, least: time.Second, most: maxTime}, name, about)
}

// WorkFlag adds a flag that says how long an agent may work: whole seconds, in every
// notation of times.
func WorkFlag(cmd *cobra.Command, to *time.Duration, name string, value time.Duration, about string) {
	*to = value
	cmd.Flags().Var(&timeValue{to: to, most: maxWork, whole: true}, name, about)
}

func (v *timeValue) Type() string { return "time" }

// String is the value without units that are zero; "" for none.
func (v *timeValue) String() string {
	if v.to == nil || *v.to == 0 {
		return ""
	}
	text := v.to.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (v *timeValue) Set(text string) error {
	d, err := parseTime(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return fmt.Errorf("%s is negative", text)
	case d < v.least:
		return fmt.Errorf("%s is less than %v", text, v.least)
	case d > v.most:
		return tooLong(text, v.most)
	case v.whole && d%time.Second != 0:
		return fmt.Errorf("%s is not a whole number of seconds", text)
	}
	*v.to = d
	return nil
}

// parseTime reads 90 (seconds), 90s, 1m30s or 2d.
func parseTime(text string) (time.Duration, error) {
	bad := errhint.With(fmt.Errorf("%q is not a time", text), "write seconds, such as 90, or units, such as 90s, 1m30s or 2d")
	number, unit := text, time.Second
	if days, ok := strings.CutSuffix(text, "d"); ok {
		number, unit = days, 24*time.Hour
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > int64(maxTime/unit) {
			return 0, tooLong(text, maxTime)
		}
		return max(time.Duration(n), -1) * unit, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, bad
	}
	return d, nil
}

func tooLong(text string, most time.Duration) error {
	return fmt.Errorf("%s is more than %dh", text, int(most.Hours()))
}

// sizeValue is an amount of memory: a number and a unit.
type sizeValue struct{ to *string }

// SizeFlag adds a flag that takes an amount of memory.
func SizeFlag(cmd *cobra.Command, to *string, name, about string) {
	cmd.Flags().Var(sizeValue{to}, name, about)
}

func (v sizeValue) Type() string { return "size" }

func (v sizeValue) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

func (v sizeValue) Set(text string) error {
	n, err := config.Size{Text: text}.Bytes()
	switch {
	case err != nil || n <= 0:
		return errhint.With(fmt.Errorf("%q is not an amount of memory", text), "write a number and a unit, such as 512m or 2g")
	case n > maxBytes:
		return fmt.Errorf("%s is more than 1024t", text)
	}
	*v.to = text
	return nil
}

// countValue is a number between 1 and most.
type countValue struct {
	to   *int
	most int
}

func (v countValue) Type() string { return "number" }

func (v countValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.Itoa(*v.to)
}

func (v countValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > v.most {
		return fmt.Errorf("%s is not between 1 and %d", text, v.most)
	}
	*v.to = n
	return nil
}

// LimitFlag adds --limit, the most rows that a verb shows.
func LimitFlag(cmd *cobra.Command, to *int, value, most int) {
	*to = value
	cmd.Flags().VarP(countValue{to, most}, "limit", "n", "show at most `N`")
	OldSpelling(cmd, "lines", "limit")
}

// OldSpelling keeps an earlier spelling of a flag working, unseen in help.
func OldSpelling(cmd *cobra.Command, old, now string) {
	flags := cmd.Flags()
	before := flags.GetNormalizeFunc()
	flags.SetNormalizeFunc(func(set *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == old {
			name = now
		}
		return before(set, name)
	})
}

// flagProblem puts the error of a flag's value into the words of the other errors.
func flagProblem(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return suggestFlag(cmd, unknown)
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	switch bad.GetFlag().Value.(type) {
	case *timeValue, sizeValue, countValue:
		cause := bad.Unwrap()
		return errhint.With(fmt.Errorf("--%s %w", bad.GetFlag().Name, cause), errhint.Of(cause))
	}
	return err
}
