package sandboxcmd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// explainedEgress says which names the sandbox reaches.
type explainedEgress struct {
	Mode     config.EgressMode   `json:"mode"`
	Rules    []rule.Listed       `json:"rules"`
	Deny     []string            `json:"deny"`
	Private  []netip.Prefix      `json:"private"`
	Upstream string              `json:"upstream"`
	Via      map[string]string   `json:"via"`
	Services []int               `json:"services"`
	Limits   config.EgressLimits `json:"limits"`
	Error    string              `json:"error"` // why nothing is reached
	Hint     string              `json:"hint"`
}

// explainEgress compiles the rules of the agent. The clients of this host are
// asked for the servers of presets, unless egress is off.
func explainEgress(ctx context.Context, p *plan.Plan) explainedEgress {
	e := service.ConfigOf(p, policy.HalfNetworked)
	x := explainedEgress{
		Mode: e.Mode, Rules: []rule.Listed{}, Deny: []string{}, Private: console.OrEmpty(e.Private), Upstream: e.Upstream,
		Via: e.Via, Services: console.OrEmpty(e.Services), Limits: e.Limits,
	}
	for i := range e.Deny {
		x.Deny = append(x.Deny, e.Deny[i].String())
	}
	if e.Mode == config.EgressOff {
		return x
	}
	rules, err := service.Compile(ctx, &e, p.Agent.Workspace)
	if err != nil {
		x.Error, x.Hint = err.Error(), errhint.Of(err)
		return x
	}
	x.Rules = console.OrEmpty(rules.Rules())
	return x
}

// egress says which names the sandbox reaches, and how.
func (pg *page) egress() {
	x := pg.x.Egress
	pg.title("Egress")
	pg.fact("mode", egressText(x.Mode), "sandbox.egress.mode")
	if pg.x.Sandbox.Networked != nil {
		pg.note("in the networked half; the isolated one reaches no name")
	}
	if x.Error != "" {
		pg.painted("unavailable", x.Error, "", pg.style.Alarm)
		if x.Hint != "" {
			pg.note("to do: " + x.Hint)
		}
	}
	pg.egressRules(x)
	if len(x.Services) > 0 {
		pg.fact("services", "ports of this machine's localhost: "+strings.Trim(fmt.Sprint(x.Services), "[]"), "sandbox.egress.services")
	}
	if x.Mode == config.EgressOff {
		return
	}
	pg.egressWays(x)
	l := x.Limits
	pg.fact("limits", fmt.Sprintf("%d connections, %d new ones a minute; each %d MiB out, %d MiB in, %d seconds idle, %d in all",
		l.Connections, l.NewPerMinute, l.BytesOut>>20, l.BytesIn>>20, l.IdleSeconds, l.LifeSeconds), "")
}

// egressRules lists what is allowed, a line each, and what is denied.
func (pg *page) egressRules(x explainedEgress) {
	written := ""
	for _, l := range x.Rules {
		pg.fact("allowed", l.String(), "")
		if l.Rule != written {
			written = l.Rule
			pg.note("← " + l.Rule)
		}
		if l.Unbilled {
			pg.painted("unbilled", l.Host+" serves models, and nothing that goes there is counted or paid", "", pg.style.Warn)
		}
		if l.Network != "" && l.Action == rule.Splice {
			pg.painted("fronting", l.Host+" is on "+l.Network+", where others can be reached behind its name; the mode inspect prevents it", "", pg.style.Warn)
		}
	}
	if len(x.Deny) > 0 {
		pg.fact("denied", listText(x.Deny), "sandbox.egress.deny")
	}
}

// egressWays says how names are reached that are not dialled directly.
func (pg *page) egressWays(x explainedEgress) {
	if len(x.Private) > 0 {
		pg.fact("private", "names may lead to "+strings.Trim(fmt.Sprint(x.Private), "[]"), "sandbox.egress.private")
	}
	if x.Upstream != "" {
		pg.fact("upstream", x.Upstream+": it resolves names, so that addresses are not checked here", "sandbox.egress.upstream")
	}
	for _, pattern := range slices.Sorted(maps.Keys(x.Via)) {
		pg.fact("via", pattern+" through "+x.Via[pattern], "sandbox.egress.via."+pattern)
	}
}

func egressText(m config.EgressMode) string {
	switch m {
	case config.EgressPublic:
		return "public: any public name, on ports 80 and 443"
	case config.EgressEnforce:
		return "enforce: only what is allowed by name"
	case config.EgressLearn:
		return "learn: any public name, on ports 80 and 443; what no rule allows is noted for `atoll egress propose`"
	case config.EgressAsk:
		return "ask: what is allowed by name, and what a person allows when asked"
	default:
		return "off: no name outside"
	}
}
