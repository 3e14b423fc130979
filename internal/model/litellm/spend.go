package litellm

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Query chooses rows of the spend logs.
type Query struct {
	EndUser      string // "" is all
	Since, Until time.Time
}

// Row is one row of the spend logs, as far as it matters.
type Row struct {
	RequestID        string    // LiteLLM's own
	Req              string    // ours, "" if the call was not made through Atoll
	Run              string    // as our metadata names it
	EndUser          string    //
	Model            string    //
	MicroUSD         int64     //
	Prompt, Complete int64     // tokens
	Start            time.Time //
	Failed           bool
}

const (
	pageSize = 1000
	maxPages = 10_000
)

// SpendLogs returns all rows of a query: from /spend/logs/v2, page by page until
// a short one, because the total that LiteLLM tells is capped; of older releases
// from /spend/logs, a day at a time.
func (c *Client) SpendLogs(ctx context.Context, q Query) ([]Row, error) {
	rows, err := c.pages(ctx, q)
	if e, ok := asStatus(err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return c.oldLogs(ctx, q)
	}
	return rows, err
}

func (c *Client) pages(ctx context.Context, q Query) ([]Row, error) {
	query := url.Values{
		"start_date": {q.Since.UTC().Format(time.DateTime)}, "end_date": {q.Until.UTC().Add(time.Second).Format(time.DateTime)},
		"page_size": {strconv.Itoa(pageSize)}, "sort_by": {"startTime"}, "sort_order": {"asc"},
	}
	if q.EndUser != "" {
		query.Set("end_user", q.EndUser)
	}
	seen := map[string]bool{} // rows may move between two pages while more are written
	var rows []Row
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		var answer struct{ Data []rawRow }
		if err := c.get(ctx, "/spend/logs/v2", query, &answer); err != nil {
			return nil, err
		}
		for i := range answer.Data {
			row := answer.Data[i].row()
			if !seen[row.RequestID] {
				seen[row.RequestID] = true
				rows = append(rows, row)
			}
		}
		if len(answer.Data) < pageSize {
			return rows, nil
		}
	}
	return nil, fmt.Errorf("LiteLLM: more than %d pages of spend logs; choose a shorter time", maxPages)
}

// oldLogs asks for rows, not sums, and for one day more than the last: the end
// is not part of it. The filter is ours, because LiteLLM has none here.
func (c *Client) oldLogs(ctx context.Context, q Query) ([]Row, error) {
	query := url.Values{
		"start_date": {q.Since.UTC().Format(time.DateOnly)}, "end_date": {q.Until.UTC().AddDate(0, 0, 1).Format(time.DateOnly)},
		"summarize": {"false"},
	}
	var answer []rawRow
	if err := c.get(ctx, "/spend/logs", query, &answer); err != nil {
		return nil, err
	}
	var rows []Row
	for i := range answer {
		row := answer[i].row()
		if (q.EndUser == "" || row.EndUser == q.EndUser) && !row.Start.Before(q.Since) && !row.Start.After(q.Until) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// rawRow is a row as it is sent. Metadata is an object or its text.
type rawRow struct {
	RequestID        string          `json:"request_id"`
	Spend            float64         `json:"spend"`
	PromptTokens     float64         `json:"prompt_tokens"`
	CompletionTokens float64         `json:"completion_tokens"`
	StartTime        string          `json:"startTime"`
	Model            string          `json:"model"`
	EndUser          string          `json:"end_user"`
	Status           string          `json:"status"`
	Metadata         json.RawMessage `json:"metadata"`
}

func (r *rawRow) row() Row {
	start, err := time.Parse(time.RFC3339Nano, r.StartTime)
	if err != nil { // older rows have no zone
		start, _ = time.Parse("2006-01-02T15:04:05.999999", r.StartTime)
	}
	var metadata struct {
		Spend json.RawMessage `json:"spend_logs_metadata"`
	}
	var ours struct {
		Req string `json:"req"`
		Run string `json:"run_id"`
	}
	if unwrap(r.Metadata, &metadata) {
		unwrap(metadata.Spend, &ours)
	}
	return Row{RequestID: r.RequestID, Req: ours.Req, Run: ours.Run, EndUser: r.EndUser, Model: r.Model, MicroUSD: microUSD(r.Spend),
		Prompt: whole(r.PromptTokens), Complete: whole(r.CompletionTokens), Start: start, Failed: r.Status == "failure"}
}

// unwrap reads an object, or a string that holds one.
func unwrap(raw json.RawMessage, out any) bool {
	if len(raw) == 0 {
		return false
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	return json.Unmarshal(raw, out) == nil
}

// microUSD turns LiteLLM's dollars into whole millionths.
func microUSD(dollars float64) int64 { return whole(math.Round(dollars * 1e6)) }

// whole is a number that sums can bear; what is none, or less than none, is 0.
func whole(v float64) int64 {
	if !(v > 0) {
		return 0
	}
	return int64(min(v, 1e15))
}
