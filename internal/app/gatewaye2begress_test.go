package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// reaches tells whether a program in the sandbox reaches a name.
func (c *e2bClient) reaches(host string) bool {
	c.t.Helper()
	line := fmt.Sprintf("curl -sSk --max-time 20 https://%s/x | grep -q 'GET %s/x'", host, host)
	said := strings.Join(c.stream("/process.Process/Start", `{"process":{"cmd":"/bin/bash","args":["-c","`+line+`"],"envs":{}},"stdin":false}`), "")
	if !strings.Contains(said, `"exited":true`) {
		c.t.Errorf("curl did not end: %s", said)
	}
	return strings.Contains(said, `"exitCode":0`)
}

// Sandboxes of E2B's clients reach what e2b.egress allows, nothing by default, and others
// reach what agent api has.
func TestInvariant_EGRESS_OF_E2B(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	for name, reached := range map[string]bool{"by default": false, "with e2b.egress": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := gatewaySite(t)
			proxy := internetFor(t, s) // agent api reaches shop.example
			if reached {
				s.set("e2b.egress", map[string]any{"mode": "enforce", "allow": []any{"other.example", "more.example"}, "upstream": proxy})
			}
			g := s.gateway(time.Minute)
			c := newE2B(t, s, g, "acme")
			for host, want := range map[string]bool{"shop.example": false, "other.example": reached} {
				if got := c.reaches(host); got != want {
					t.Errorf("%s is reached: %v", host, got)
				}
			}
			c.choosesNames(reached)
			s.keepsEgressOfOthers(g, c)
		})
	}
}

// choosesNames makes sandboxes that name what they reach, which is among what e2b.egress
// allows, also for a key without an account.
func (c *e2bClient) choosesNames(allowed bool) {
	c.t.Helper()
	const network = `{"templateID":"base","network":{"allowOut":["%s"],"denyOut":["0.0.0.0/0"]}}`
	for host, want := range map[string]bool{"more.example": allowed, "shop.example": false} {
		one := *c
		status, text := c.ask(http.MethodPost, "/v2/sandboxes", fmt.Sprintf(network, host))
		switch {
		case !want && status != http.StatusForbidden:
			c.t.Errorf("%s: %d %s", host, status, text)
		case want && json.Unmarshal([]byte(text), &one) != nil, want && (!one.reaches(host) || one.reaches("other.example")):
			c.t.Errorf("%s alone: %d %s", host, status, text)
		}
	}
}

// keepsEgressOfOthers compares a sandbox of the gateway's own API with a copy of one of E2B's.
func (s *site) keepsEgressOfOthers(g *gatewayProcess, c *e2bClient) {
	s.t.Helper()
	own, err := g.CreateSandbox(c.t.Context(), &api.CreateSandbox{})
	if err != nil {
		c.t.Fatal(err)
	}
	copied, err := g.ForkSandbox(c.t.Context(), c.ID, &api.ForkSandbox{})
	if err != nil {
		c.t.Fatal(err)
	}
	for id, want := range map[string]bool{own.ID: true, copied.ID: false} {
		if got := curl(c.t, g.Client, id, "https://shop.example/x"); want != strings.Contains(got, "GET shop.example/x") {
			c.t.Errorf("%s, which is to reach it: %v: %q", id, want, got)
		}
	}
}
