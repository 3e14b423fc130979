package run

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// Memory that is asked for is distinguished from the variant's own.
func TestMemoryAsked(t *testing.T) {
	v := Agent(AgentOptions{})
	if j := v.job(&Request{Memory: 64 << 20}); j.Memory != 64<<20 || !j.MemoryAsked {
		t.Errorf("asked for 64 MiB: %d", j.Memory)
	}
	if j := v.job(&Request{}); j.Memory != v.Memory || j.MemoryAsked {
		t.Errorf("asked for nothing: %d", j.Memory)
	}
}

// The time that is asked for is the agent's own time limit, whatever the
// variant's own is; more than a day is an error.
//
// Seen to fail with a job that takes the variant's margin off.
func TestTimeout(t *testing.T) {
	own, custom := Agent(AgentOptions{}), Custom{Timeout: 100 * time.Second}.Variant()
	for _, c := range []struct {
		of                    *Variant
		asked, inner, timeout int
	}{
		{&own, 0, 110, 120}, {&own, 8, 8, 10}, {&own, 120, 120, 130}, {&own, 3600, 3600, 3610}, {&custom, 0, 90, 100}, {&custom, 1, 1, 3},
	} {
		j := c.of.job(&Request{TimeoutMs: int64(c.asked) * 1000})
		if j.Inner.Truncate(time.Second) != time.Duration(c.inner)*time.Second || j.Timeout.Truncate(time.Second) != time.Duration(c.timeout)*time.Second {
			t.Errorf("%s, asked for %d: told %v, ended after %v", c.of.ID, c.asked, j.Inner, j.Timeout)
		}
	}
	r := &Request{ID: "x", Model: "m", Messages: []chat.Message{{Role: chat.User, Text: "x"}}, TimeoutMs: 100_000_000}
	if err := r.check(); err == nil || !strings.Contains(err.Error(), "at most 86400 seconds") {
		t.Error(err)
	}
}
