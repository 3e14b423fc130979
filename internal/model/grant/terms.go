package grant

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Terms are what a grant allows and on whose account. They do not change while it is
// open.
type Terms struct {
	Account string // who pays; "" where there are no accounts
	Agent   string
	Session string
	Run     string
	Attempt string
	Graph   string
	Trace   string

	Models     []string  // names or patterns that may be called; empty: no model
	Budget     Budget    // for the run
	Until      time.Time // required
	BodyPolicy string    // how much of a request is passed on: a policy of the proxy
	// Headers are sent with every call, see the function Headers. They cannot change
	// who pays.
	Headers map[string]string
}

// Budget bounds what may be spent. Zero is no bound in that unit.
type Budget struct {
	MicroUSD int64
	Tokens   int64
	// Day is how much the account may have spent on the day of a call, in
	// millionths of a dollar, all its runs together.
	Day int64 `json:"Day,omitzero"`
}

const (
	// MaxLife is how long a grant can be open.
	MaxLife = 7 * 24 * time.Hour
	// maxName bounds each name in the terms; they become headers and rows.
	maxName = 256
	// maxModels bounds the models of a grant.
	maxModels = 256
)

// ErrInvalid are terms that are refused.
var ErrInvalid = errors.New("invalid terms")

// check returns all problems of the terms.
func (t *Terms) check(now time.Time) error {
	var problems []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, field := range []struct{ what, value string }{
		{"account", t.Account}, {"agent", t.Agent}, {"session", t.Session}, {"run", t.Run},
		{"attempt", t.Attempt}, {"graph", t.Graph}, {"trace", t.Trace}, {"body policy", t.BodyPolicy},
	} {
		add(!plain(field.value), "the %s is over %d bytes long or holds control characters", field.what, maxName)
	}
	add(len(t.Models) > maxModels, "%d models are over the limit of %d", len(t.Models), maxModels)
	for i, model := range t.Models {
		add(model == "" || !plain(model), "model %d is empty, over %d bytes long or holds control characters", i, maxName)
	}
	_, err := Headers(t.Headers)
	add(err != nil, "%w", err)
	add(t.Budget.MicroUSD < 0 || t.Budget.Tokens < 0 || t.Budget.Day < 0, "a budget is negative")
	add(t.Until.IsZero(), "a grant needs an end")
	add(!t.Until.IsZero() && !t.Until.After(now), "the end lies in the past")
	add(t.Until.Sub(now) > MaxLife, "the end lies more than %v ahead", MaxLife)
	if problems == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(problems...))
}

func plain(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
}
