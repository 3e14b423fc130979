package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

// unlimited is the value of a limit that is none.
const unlimited = -1

// UlimitRange reads a ulimit in any of its written forms. A single value, or a
// missing half, stands for both.
func UlimitRange(u config.Ulimit) (soft, hard int64, err error) {
	switch {
	case u.Soft != nil && u.Hard != nil:
		soft, hard = *u.Soft, *u.Hard
	case u.Soft != nil:
		soft, hard = *u.Soft, *u.Soft
	case u.Hard != nil:
		soft, hard = *u.Hard, *u.Hard
	default:
		soft, hard, err = parseUlimit(u.Text)
	}
	switch {
	case err != nil:
		return 0, 0, err
	case soft < unlimited || hard < unlimited:
		return 0, 0, errors.New("is negative")
	case hard != unlimited && (soft == unlimited || soft > hard):
		return 0, 0, fmt.Errorf("the soft limit %d is above the hard limit %d", soft, hard)
	}
	return soft, hard, nil
}

func parseUlimit(text string) (soft, hard int64, err error) {
	first, second, both := strings.Cut(text, ":")
	if !both {
		second = first
	}
	if soft, err = strconv.ParseInt(first, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("%q is not a number", first)
	}
	if hard, err = strconv.ParseInt(second, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("%q is not a number", second)
	}
	return soft, hard, nil
}

// UlimitFlag is a ulimit in the form of the docker command line. A single value
// is given once.
func UlimitFlag(name string, u config.Ulimit) (string, error) {
	soft, hard, err := UlimitRange(u)
	if err != nil {
		return "", fmt.Errorf("ulimit %s: %w", name, err)
	}
	if soft == hard {
		return fmt.Sprintf("%s=%d", name, soft), nil
	}
	return fmt.Sprintf("%s=%d:%d", name, soft, hard), nil
}
