package app_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
)

// A task of a session has one id that its caller knows: the one that its headers
// name, or its own. LiteLLM, the audit log, receipts and costs know it by that. What
// it costs is LiteLLM's figure everywhere, without a call of billing reconcile.
func TestATaskIsKnownAsItsCallerKnowsIt(t *testing.T) {
	s, upstream := gatewaySite(t)
	s.set("llm.billing", map[string]any{"retrySeconds": 1})
	s.set("llm.prices", map[string]any{"small": map[string]any{"input": 900, "output": 900}}) // wrong on purpose
	c, _ := s.gatewayHere()
	for header, want := range map[string]string{"": "", "run-of-theirs": "run-of-theirs"} {
		headers := map[string]string{}
		if header != "" {
			headers["x-cogni-run-id"] = header
		}
		seen := len(upstream.Requests())
		task, err := c.Send(t.Context(), "agent:main:known"+header, &api.SendRequest{Message: "hello", Headers: headers}, "")
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = task.ID
		}
		q := upstream.Requests()[seen]
		var said struct {
			Run     string `json:"run_id"`
			Attempt *int
			Session string `json:"session_id"`
			Trace   string `json:"existing_trace_id"`
		}
		if err := json.Unmarshal([]byte(q.Header.Get("x-litellm-spend-logs-metadata")), &said); err != nil {
			t.Fatal(err)
		}
		if q.Header.Get("x-cogni-run-id") != want || said.Run != want || said.Attempt == nil || *said.Attempt != 0 || said.Session == "" || !traceparent.IsID(said.Trace) {
			t.Errorf("%s: LiteLLM was told %v", want, q.Header)
		}
		receipt, err := c.Run(t.Context(), want)
		if err != nil || receipt.ID != task.Report.Run {
			t.Errorf("%s: %+v, %v", want, receipt, err)
		}
		if costs, err := c.Costs(t.Context(), api.CostQuery{Run: want}); err != nil || len(costs.Runs) != 1 || costs.Runs[0].Run != want {
			t.Errorf("%s: %+v, %v", want, costs, err)
		}
		truth := int64(upstream.Rows()[seen].Spend*1e6 + .5)
		deadline := time.Now().Add(time.Minute)
		for receipt.Bill.Source != "litellm" {
			if time.Now().After(deadline) {
				t.Fatalf("%s is never settled: %+v", want, receipt.Bill)
			}
			time.Sleep(50 * time.Millisecond)
			if receipt, err = c.Run(t.Context(), want); err != nil {
				t.Fatal(err)
			}
		}
		for {
			log, err := c.Audit(t.Context(), api.AuditQuery{Run: want})
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%s: the audit log has %v, %v", want, log, err)
			}
			if len(log.Records) == 1 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		later, err := c.Task(t.Context(), task.ID)
		if err != nil || receipt.Bill.Provisional || receipt.Bill.MicroUSD != truth || later.MicroUSD != truth || task.MicroUSD == truth {
			t.Errorf("%s: LiteLLM says %d; the receipt %+v, the task %+v, %v", want, truth, receipt.Bill, later, err)
		}
	}
}
