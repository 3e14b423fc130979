package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/atoll-run/atoll/internal/egress/hostname"
)

const egressKey = "sandbox.egress."

// egress merges sandbox.egress.*, or the same keys of a browser or of e2b, below the key at.
func (m *merge) egress(at string, agent, global *egressFile) (Egress, error) {
	e := builtinEgress()
	e.Mode = pick(m, at+"mode", agent.Mode, global.Mode, e.Mode)
	e.ModeAt = m.origins[at+"mode"]
	e.Upstream = pick(m, at+"upstream", agent.Upstream, global.Upstream, "")
	e.ProxyEnv = pick(m, at+"proxyEnv", agent.ProxyEnv, global.ProxyEnv, false)
	e.Services = pickList(m, at+"services", agent.Services, global.Services, nil)
	e.Limits = m.egressLimits(at+"limits.", orEmpty(agent.Limits), orEmpty(global.Limits), e.Limits)
	for pattern, proxy := range joinMaps(m, at+"via", agent.Via, global.Via, nil) {
		if err := e.addVia(pattern, proxy); err != nil {
			return e, err
		}
	}
	for _, text := range pickList(m, at+"private", agent.Private, global.Private, nil) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return e, err
		}
		e.Private = append(e.Private, prefix.Masked())
	}
	return e, errors.Join(
		m.egressAllow(at, &e, pickList(m, at+"allow", agent.Allow, global.Allow, nil)),
		m.egressDeny(at, &e, pickList(m, at+"deny", agent.Deny, global.Deny, nil)),
		m.bytes(at+"limits.bytesOut", orEmpty(agent.Limits).BytesOut, orEmpty(global.Limits).BytesOut, &e.Limits.BytesOut),
		m.bytes(at+"limits.bytesIn", orEmpty(agent.Limits).BytesIn, orEmpty(global.Limits).BytesIn, &e.Limits.BytesIn),
	)
}

func (m *merge) egressLimits(at string, agent, global *egressLimitsFile, l EgressLimits) EgressLimits {
	l.Connections = pick(m, at+"connections", agent.Connections, global.Connections, l.Connections)
	l.NewPerMinute = pick(m, at+"newPerMinute", agent.NewPerMinute, global.NewPerMinute, l.NewPerMinute)
	l.IdleSeconds = pick(m, at+"idleSeconds", agent.IdleSeconds, global.IdleSeconds, l.IdleSeconds)
	l.LifeSeconds = pick(m, at+"lifeSeconds", agent.LifeSeconds, global.LifeSeconds, l.LifeSeconds)
	return l
}

func (e *Egress) addVia(pattern, proxy string) error {
	p, err := hostname.ParseWidePattern(pattern)
	if err != nil {
		return fmt.Errorf("%svia: %s: %w", egressKey, pattern, err)
	}
	if e.Via == nil {
		e.Via = map[string]string{}
	}
	e.Via[p.String()] = proxy
	return nil
}

// egressAllow fills in the rules, each with the place that it is written at.
func (m *merge) egressAllow(at string, e *Egress, written []egressRuleFile) error {
	for i := range written {
		r, err := written[i].rule()
		if err != nil {
			return err
		}
		r.At = m.itemOrigin(at+"allow", i)
		e.Allow = append(e.Allow, r)
	}
	return nil
}

func (m *merge) egressDeny(at string, e *Egress, written []string) error {
	for i, text := range written {
		d, err := denied(text)
		if err != nil {
			return err
		}
		d.At = m.itemOrigin(at+"deny", i)
		e.Deny = append(e.Deny, d)
	}
	return nil
}

// itemOrigin returns the place of an item of a list whose place is noted.
func (m *merge) itemOrigin(key string, i int) Origin {
	o := m.origins[key]
	at := globalAt
	if o.Source == fromAgent {
		at = m.agentAt
	}
	o.Path += "[" + strconv.Itoa(i) + "]"
	o.Line = m.cfg.lineOf(at.under(key).item(i))
	return o
}

// rule is the entry with its names in their one spelling.
func (f *egressRuleFile) rule() (EgressRule, error) {
	if f.text != "" {
		return shortRule(f.text)
	}
	r := EgressRule{
		Preset: orEmptyText(f.Preset), Mode: orEmptyText(f.Mode), Git: orEmptyText(f.Git), Secret: orEmptyText(f.Secret),
		Ports: slices.Clone(f.Ports), Methods: slices.Clone(f.Methods), Paths: slices.Clone(f.Paths),
		Upgrade: f.Upgrade != nil && *f.Upgrade, WebSocket: f.WebSocket != nil && *f.WebSocket,
	}
	if f.Host == nil {
		return r, nil
	}
	p, err := hostname.ParsePattern(*f.Host)
	r.Host = p.String()
	return r, err
}

// modelHosts returns the names of the hosts of the model providers.
func (c *Config) modelHosts() ([]string, error) {
	llm, err := c.LLM()
	if err != nil {
		return nil, err
	}
	var hosts []string
	for i := range llm.Providers {
		u, err := url.Parse(llm.Providers[i].URL)
		if err != nil {
			continue
		}
		if name, err := hostname.Canonical(u.Hostname()); err == nil {
			hosts = append(hosts, name)
		}
	}
	return hosts, nil
}

// narrow takes names away and lowers limits.
func (e *Egress) narrow(f *egressFile) {
	if f.Mode != nil && (egressOrder[*f.Mode] < egressOrder[e.Mode] || e.ModeIsDefault()) {
		e.ModeAt = Origin{Source: FromProject}
		if egressOrder[*f.Mode] < egressOrder[e.Mode] {
			e.Mode = *f.Mode
		}
	}
	if f.Allow != nil {
		e.Allow = nil
	}
	if f.Private != nil {
		e.Private = nil
	}
	if f.Services != nil {
		e.Services = nil
	}
	for _, text := range f.Deny {
		if d, err := denied(text); err == nil {
			d.At = Origin{Source: FromProject}
			e.Deny = append(slices.Clip(e.Deny), d)
		}
	}
	e.Limits.narrow(orEmpty(f.Limits))
}

// egressOrder has the mode with the fewest names first.
var egressOrder = map[EgressMode]int{EgressOff: 0, EgressEnforce: 1, EgressAsk: 2, EgressLearn: 3, EgressPublic: 3}

func (l *EgressLimits) narrow(f *egressLimitsFile) {
	lower(&l.Connections, f.Connections)
	lower(&l.NewPerMinute, f.NewPerMinute)
	lower(&l.IdleSeconds, f.IdleSeconds)
	lower(&l.LifeSeconds, f.LifeSeconds)
	lowerBytes(&l.BytesOut, f.BytesOut)
	lowerBytes(&l.BytesIn, f.BytesIn)
}
