package app_test

import (
	"testing"
	"time"

	sessions "github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/run"
)

// A task's bill is provisional when it ends, and LiteLLM's when runs are listed.
func TestListedRunsAreSettled(t *testing.T) {
	s, upstream := gatewaySite(t)
	o, _ := s.hire()
	o.ask(ann, sessions.Task{ID: "t-1", Key: "agent:main:ann:x", Message: "hello"})
	o.over(ann, "t-1")
	book := o.app.Models.RunStore()
	list, err := book.List(t.Context(), run.Filter{})
	if err != nil || len(list) != 1 || !list[0].Bill.Provisional {
		t.Fatalf("%+v, %v", list, err)
	}
	if !o.app.Models.SettleRuns(t.Context(), list, time.Minute) {
		t.Error("nothing was looked for")
	}
	list, err = book.List(t.Context(), run.Filter{})
	if truth := int64(upstream.Rows()[0].Spend*1e6 + .5); err != nil || list[0].Bill.Provisional || list[0].Bill.Source != "litellm" || list[0].Bill.MicroUSD != truth {
		t.Errorf("%+v, %v; LiteLLM says %d", list[0].Bill, err, truth)
	}
	if o.app.Models.SettleRuns(t.Context(), list, time.Minute) {
		t.Error("what is settled was looked for again")
	}
}
