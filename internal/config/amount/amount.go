// Package amount reads amounts as people write them: "512m", "1024:2048".
package amount

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
)

// Unlimited is the amount that means no limit, where that is allowed.
const Unlimited = -1

// Bytes reads a size. The units are docker's: b, k, m, g, t with an optional b or
// ib after them, powers of 1024; fractions are allowed. "-1" is Unlimited.
func Bytes(written string) (int64, error) {
	text := strings.TrimSpace(written)
	if text == "-1" {
		return Unlimited, nil
	}
	digits := strings.TrimRight(text, "bkmgtiBKMGTI ")
	unit, ok := unitOf(strings.TrimSpace(text[len(digits):]))
	value, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || strings.ContainsAny(digits, "+-eEpPxXnN_") {
		return 0, fmt.Errorf("size %s: expected a number and b, k, m, g or t", wording.Quote(written))
	}
	if value *= unit; value >= math.MaxInt64 {
		return 0, fmt.Errorf("size %s: too large", wording.Quote(written))
	}
	return int64(value), nil
}

func unitOf(suffix string) (factor float64, ok bool) {
	suffix = strings.ToLower(suffix)
	if suffix == "" || suffix == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgt", suffix[0])
	rest := suffix[1:]
	if power < 0 || rest != "" && rest != "b" && rest != "ib" {
		return 0, false
	}
	return float64(int64(1) << (10 * (power + 1))), true
}

// Limits reads a limit, or a soft and a hard one: hard is nil if there is one only.
func Limits(text string) (soft, hard *int64, err error) {
	first, second, both := strings.Cut(text, ":")
	if soft, err = limit(first); err != nil {
		return nil, nil, err
	}
	if both {
		hard, err = limit(second)
	}
	return soft, hard, err
}

func limit(text string) (*int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < Unlimited {
		return nil, fmt.Errorf("expected a limit such as 1024 or 1024:2048, found %s", wording.Quote(text))
	}
	return &v, nil
}

// SoftHard returns both limits of a text, or of a soft and a hard one where one is given;
// one alone is both. A soft limit above the hard one is an error.
func SoftHard(text string, s, h *int64) (soft, hard int64, err error) {
	if s == nil && h == nil {
		if s, h, err = Limits(text); err != nil {
			return 0, 0, err
		}
	}
	if s == nil {
		s = h
	}
	if h == nil {
		h = s
	}
	if *h >= 0 && (*s < 0 || *s > *h) {
		return 0, 0, fmt.Errorf("the soft limit %d is above the hard limit %d", *s, *h)
	}
	return *s, *h, nil
}
