package billing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/model/litellm"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Upstream has the spend logs. *litellm.Client implements it.
type Upstream interface {
	SpendLogs(ctx context.Context, q litellm.Query) ([]litellm.Row, error)
}

// Ledger has our own figures. *usage.Ledger implements it.
type Ledger interface {
	Calls(ctx context.Context, f usage.Filter) ([]usage.Stored, error)
	Correct(ctx context.Context, billed []usage.Billed) (int, error)
}

// Options choose what is compared, and how long to wait for rows.
type Options struct {
	Since, Until time.Time // Until zero is now
	Account, Run string    // "" is all
	Grace        time.Duration
	Retry        time.Duration
	// Wait looks again until no call is pending, or the grace of the youngest
	// is over.
	Wait bool
	// Covers reports whether a call went to this upstream; nil is all.
	Covers func(*usage.Stored) bool
	// Payer returns the end user that a call should be billed to; nil: it is not
	// compared.
	Payer func(*usage.Stored) string
	Now   func() time.Time
}

// margin is how far the two clocks may be apart.
const margin = 15 * time.Minute

// Report is what was found.
type Report struct {
	Since             time.Time `json:"since"`
	Until             time.Time `json:"until"`
	Calls             int       `json:"calls"`
	Matched           int       `json:"matched"`
	Pending           int       `json:"pending"` // younger than the grace
	MissingUpstream   []Missing `json:"missingUpstream"`
	MissingLocal      []Missing `json:"missingLocal"`
	Differences       []Changed `json:"differences"`
	OtherPayer        []Missing `json:"otherPayer,omitzero"` // billed to another account than ours, which is named
	Corrected         int       `json:"corrected"`           // figures that changed in the ledger
	LocalMicroUSD     int64     `json:"localMicroUSD"`       // by our own figures, of matched calls
	BilledMicroUSD    int64     `json:"billedMicroUSD"`      // by LiteLLM's, of matched calls
	DeltaMicroUSD     int64     `json:"deltaMicroUSD"`       // billed less local
	UnmatchedMicroUSD int64     `json:"unmatchedMicroUSD"`   // by our own figures, of calls that are pending or missing upstream
	Provisional       bool      `json:"provisional"`
}

// Missing is a call that only one side has.
type Missing struct {
	ID       string    `json:"id"`
	Run      string    `json:"run"`
	Account  string    `json:"account"`
	Model    string    `json:"model"`
	At       time.Time `json:"at"`
	MicroUSD int64     `json:"microUSD"`
}

// Changed is a call whose figures differ.
type Changed struct {
	ID     string `json:"id"`
	Run    string `json:"run"`
	Model  string `json:"model"`
	Local  int64  `json:"localMicroUSD"`
	Billed int64  `json:"billedMicroUSD"`
}

// Reconcile compares and corrects the ledger.
func Reconcile(ctx context.Context, ledger Ledger, upstream Upstream, o Options) (*Report, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Until.IsZero() {
		o.Until = o.Now()
	}
	for {
		c, err := compare(ctx, ledger, upstream, &o)
		if err != nil {
			return nil, err
		}
		if c.report.Pending == 0 || !o.Wait {
			return c.finish(ctx, ledger)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d calls were not written down upstream yet: %w", c.report.Pending, context.Cause(ctx))
		case <-time.After(max(o.Retry, time.Millisecond)):
		}
	}
}

// comparison is one look at both sides.
type comparison struct {
	options *Options
	report  *Report
	rows    map[string]*row // by our request id
	billed  []usage.Billed
}

// row is what LiteLLM wrote of one request; its own retries are rows too.
type row struct {
	litellm.Row
	used bool
}

func compare(ctx context.Context, ledger Ledger, upstream Upstream, o *Options) (*comparison, error) {
	c := &comparison{options: o, rows: map[string]*row{}, report: &Report{
		Since: o.Since, Until: o.Until, MissingUpstream: []Missing{}, MissingLocal: []Missing{}, Differences: []Changed{}}}
	calls, err := ledger.Calls(ctx, usage.Filter{Since: o.Since.Add(-margin), Until: o.Until.Add(margin), Run: o.Run, Account: o.Account})
	if err != nil {
		return nil, err
	}
	if o.Covers != nil {
		calls = slices.DeleteFunc(calls, func(s usage.Stored) bool { return !o.Covers(&s) })
	}
	if err := c.fetch(ctx, upstream, calls); err != nil {
		return nil, err
	}
	for i := range calls {
		c.compareCall(&calls[i])
	}
	c.addUnknownRows()
	return c, nil
}

// fetch asks for the rows of every account that made calls; calls without one
// can only be found among all rows.
func (c *comparison) fetch(ctx context.Context, upstream Upstream, calls []usage.Stored) error {
	accounts := map[string]bool{}
	for i := range calls {
		accounts[calls[i].Subject.Account] = true
	}
	switch {
	case c.options.Account != "":
		accounts = map[string]bool{c.options.Account: true}
	case accounts[""] || len(accounts) == 0 || c.options.Run == "": // unknown rows may have any account
		accounts = map[string]bool{"": true}
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		rows, err := upstream.SpendLogs(ctx, litellm.Query{EndUser: account, Since: c.options.Since.Add(-margin), Until: c.options.Until.Add(margin)})
		if err != nil {
			return err
		}
		for _, r := range rows {
			c.add(r)
		}
	}
	return nil
}

func (c *comparison) add(r litellm.Row) {
	if r.Req == "" {
		return // not made through us
	}
	if known := c.rows[r.Req]; known != nil {
		known.MicroUSD += r.MicroUSD
		return
	}
	c.rows[r.Req] = &row{Row: r}
}

func (c *comparison) inRange(at time.Time) bool {
	return !at.Before(c.options.Since) && at.Before(c.options.Until)
}

// compareCall looks for one of our calls upstream.
func (c *comparison) compareCall(s *usage.Stored) {
	r := c.rows[s.ID]
	if r != nil {
		r.used = true
	}
	if !c.inRange(s.At) {
		return
	}
	c.report.Calls++
	switch {
	case r != nil:
		c.match(s, r)
	case c.options.Now().Sub(s.At) < c.options.Grace:
		c.report.Pending++
		c.report.UnmatchedMicroUSD += s.Cost
	case s.Tokens.Total() == 0 && s.Cost == 0: // refused before it cost anything
		c.report.Matched++
		c.billed = append(c.billed, usage.Billed{ID: s.ID, At: s.At})
	default:
		c.report.UnmatchedMicroUSD += s.Cost
		c.report.MissingUpstream = append(c.report.MissingUpstream,
			Missing{s.ID, s.Subject.Run, s.Subject.Account, s.Model, s.At, s.Cost})
	}
}

func (c *comparison) match(s *usage.Stored, r *row) {
	c.report.Matched++
	c.report.LocalMicroUSD += s.Cost
	c.report.BilledMicroUSD += r.MicroUSD
	c.report.DeltaMicroUSD += r.MicroUSD - s.Cost
	c.billed = append(c.billed, usage.Billed{ID: s.ID, At: s.At, MicroUSD: r.MicroUSD})
	if c.options.Payer != nil && r.EndUser != "" && r.EndUser != c.options.Payer(s) {
		c.report.OtherPayer = append(c.report.OtherPayer, Missing{s.ID, s.Subject.Run, r.EndUser, s.Model, s.At, r.MicroUSD})
	}
	if r.MicroUSD != s.Cost {
		c.report.Differences = append(c.report.Differences, Changed{s.ID, s.Subject.Run, s.Model, s.Cost, r.MicroUSD})
	}
}

// addUnknownRows reports rows that carry our request id but are not in the ledger.
func (c *comparison) addUnknownRows() {
	for id, r := range c.rows {
		asked := c.options.Run == "" || c.options.Run == r.Run // who calls may name a run otherwise
		if !r.used && asked && c.inRange(r.Start) {
			c.report.MissingLocal = append(c.report.MissingLocal, Missing{id, r.Run, r.EndUser, r.Model, r.Start, r.MicroUSD})
		}
	}
	slices.SortFunc(c.report.MissingLocal, func(a, b Missing) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
}

// finish corrects the ledger by the billed figures.
func (c *comparison) finish(ctx context.Context, ledger Ledger) (_ *Report, err error) {
	c.report.Corrected, err = ledger.Correct(ctx, c.billed)
	c.report.Provisional = c.report.Pending > 0 || len(c.report.MissingUpstream) > 0 || len(c.report.OtherPayer) > 0
	return c.report, err
}
