package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
)

// maxProblems is how many problems of the audit log an answer has.
const maxProblems = 100

// auditTail returns the last records; a caller bound to an account gets those of
// its account only.
func (s *Server) auditTail(c *call, q *api.AuditQuery, _ *none) (*api.Audit, error) {
	match, err := c.auditFilter(q)
	if err != nil {
		return nil, err
	}
	before, err := parseAuditCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	most := cmp.Or(q.Limit, 100)
	entries, err := s.Ledger.AuditTail(most+before.seen, func(text string) bool { return before.admits(text) && match(text) })
	if err != nil {
		return nil, err
	}
	entries = entries[:max(len(entries)-before.seen, 0)]
	entries = entries[max(len(entries)-most, 0):]
	answer := &api.Audit{Records: []json.RawMessage{}}
	for _, e := range entries {
		answer.Records = append(answer.Records, json.RawMessage(e.JSON))
	}
	if len(entries) == most {
		answer.Next = before.next(entries)
	}
	return answer, nil
}

// auditHead is what records are chosen by.
type auditHead struct{ Time, Kind, Account, Run, KnownAs, Denied string }

// auditFilter returns what chooses the records of a query that the caller may see.
func (c *call) auditFilter(q *api.AuditQuery) (match func(string) bool, err error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	kinds, err := audit.ParseKinds(q.Kind)
	if err != nil {
		return nil, invalid(api.FieldError{Pointer: "kind", Detail: err.Error()})
	}
	since, until, err := parsePeriod(q.Since, q.Until)
	if err != nil {
		return nil, err
	}
	from, to := auditTime(since), auditTime(until)
	return func(text string) bool {
		var r auditHead
		return json.Unmarshal([]byte(text), &r) == nil && c.caller.Sees(r.Account) && (account == "" || r.Account == account) &&
			(q.Run == "" || r.Run == q.Run || r.KnownAs == q.Run) && (!q.Denied || r.Denied != "") && (len(kinds) == 0 || slices.Contains(kinds, audit.KindOf(r.Kind))) &&
			r.Time >= from && (to == "" || r.Time < to)
	}, nil
}

// auditTime returns a time as records write it; "" for the zero time.
func auditTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// auditCursor is where a page ends: the time of its oldest record, and how many records
// of that time earlier pages had.
type auditCursor struct {
	time string
	seen int
}

func parseAuditCursor(text string) (a auditCursor, err error) {
	if text == "" {
		return a, nil
	}
	at, count, _ := strings.Cut(text, "~")
	if _, err := time.Parse(time.RFC3339Nano, at); err == nil {
		if n, err := fmt.Sscanf(count, "%d", &a.seen); n == 1 && err == nil && a.seen > 0 && a.seen <= 100_000 {
			a.time = at
			return a, nil
		}
	}
	return a, invalid(api.FieldError{Pointer: "cursor", Detail: "is not one of a page before"})
}

// admits reports whether a record is not younger than the page before.
func (a auditCursor) admits(text string) bool {
	var r auditHead
	return a.time == "" || json.Unmarshal([]byte(text), &r) == nil && r.Time <= a.time
}

// next returns the cursor after a page.
func (a auditCursor) next(page []audit.Entry) string {
	var oldest auditHead
	_ = json.Unmarshal([]byte(page[0].JSON), &oldest) // it was read before
	n := 0
	for _, e := range page {
		var r auditHead
		if json.Unmarshal([]byte(e.JSON), &r) == nil && r.Time == oldest.Time {
			n++
		}
	}
	if oldest.Time == a.time {
		n += a.seen
	}
	return fmt.Sprintf("%s~%d", oldest.Time, n)
}

// verifyAudit reads the whole audit log, of all accounts.
func (s *Server) verifyAudit(c *call, _, _ *none) (*api.AuditVerification, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	r, err := s.Ledger.VerifyAudit(c.ctx())
	if err != nil {
		return nil, err
	}
	answer := &api.AuditVerification{OK: len(r.Problems) == 0, Segments: r.Segments, Records: r.Records, Dropped: r.Dropped, Retired: r.Retired, Unsigned: r.Unsigned, Problems: []api.AuditProblem{}}
	for _, p := range r.Problems[:min(len(r.Problems), maxProblems)] {
		answer.Problems = append(answer.Problems, api.AuditProblem{Segment: p.Segment, Line: p.Line, What: p.What})
	}
	return answer, nil
}
