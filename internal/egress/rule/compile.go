package rule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/preset"
	"github.com/atoll-run/atoll/internal/errhint"
)

// The ports of HTTP.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// compiled is one rule for one pattern of hosts.
type compiled struct {
	pattern   hostname.Pattern
	actions   map[int]Action // by port
	methods   []string       // nil is every method
	paths     []pathPattern  // nil is every path
	git       string
	secret    string
	upgrade   bool
	webSocket bool
	text      string // the rule as written, with its key and line
}

// Compile turns the rules of an agent into a policy. The hosts are those that
// were found for the presets among the rules.
func Compile(e *config.Egress, hosts preset.Hosts) (*Policy, error) {
	p := newPolicy(e)
	for i := range e.Allow {
		r := &e.Allow[i]
		var err error
		if r.Preset != "" {
			err = p.addPreset(r, hosts)
		} else {
			err = p.addRule(r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", describe(r.String(), r.At), err)
		}
	}
	for i := range e.Deny {
		d := &e.Deny[i]
		pattern, err := hostname.ParseWidePattern(d.Host)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", describe(d.String(), d.At), err)
		}
		p.deny.add(pattern, denial{port: d.Port, text: describe(d.String(), d.At)})
	}
	return p, p.addVia(e.Via)
}

// Nothing returns the policy that allows nothing.
func Nothing() *Policy { return newPolicy(&config.Egress{Mode: config.EgressOff}) }

// MayInspect reports whether rules have TLS opened, without the hosts of their presets.
func MayInspect(e *config.Egress) bool {
	return slices.ContainsFunc(e.Allow, func(r config.EgressRule) bool {
		if r.Preset != "" {
			set, _ := preset.Get(r.Preset)
			return slices.ContainsFunc(set.Rules, func(p preset.Rule) bool { return Action(p.Mode) == Inspect })
		}
		c := compiled{methods: r.Methods, git: r.Git, secret: r.Secret, webSocket: r.WebSocket}
		actions, err := actionsOf(&r, c.conditional() || len(r.Paths) > 0)
		return err == nil && slices.Contains(slices.Collect(maps.Values(actions)), Inspect)
	})
}

// describe is a rule as written, with its key and line.
func describe(text string, at config.Origin) string {
	switch {
	case at.Path != "" && at.Line > 0:
		return fmt.Sprintf("%s (%s, line %d)", text, at.Path, at.Line)
	case at.Source == config.FromFlag:
		return text + " (--egress)"
	case at.Source == config.FromProject:
		return text + " (the project's file)"
	case at.Path != "":
		return fmt.Sprintf("%s (%s)", text, at.Path)
	}
	return text
}

// addRule adds a rule that names its host.
func (p *Policy) addRule(r *config.EgressRule) error {
	pattern, err := hostname.ParsePattern(r.Host)
	if err != nil {
		return fmt.Errorf("%q: %w", r.Host, err)
	}
	c := &compiled{
		pattern: pattern, methods: slices.Clone(r.Methods), git: r.Git, secret: r.Secret,
		upgrade: r.Upgrade, webSocket: r.WebSocket, text: describe(r.String(), r.At),
	}
	for _, path := range r.Paths {
		c.paths = append(c.paths, newPathPattern(path))
	}
	if c.actions, err = actionsOf(r, c.conditional()); err != nil {
		return err
	}
	p.add(c)
	return nil
}

func (p *Policy) add(c *compiled) {
	p.written = append(p.written, c)
	p.allow.add(c.pattern, c)
}

// conditional reports whether requests must be read to keep the rule.
func (c *compiled) conditional() bool {
	return c.methods != nil || c.paths != nil || c.git != "" || c.secret != "" || c.webSocket
}

// actionsOf returns what a rule does with each of its ports.
func actionsOf(r *config.EgressRule, conditional bool) (map[int]Action, error) {
	ports := r.Ports
	if len(ports) == 0 {
		ports = usualPorts(r)
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("the mode %s needs ports", r.Mode)
	}
	actions := map[int]Action{}
	for _, port := range ports {
		action := Action(r.Mode)
		if action == "" {
			action = usualAction(port, conditional)
		}
		if conditional && action != Inspect && action != HTTP {
			return nil, fmt.Errorf("requests on port %d are not read, so that its conditions would not be kept", port)
		}
		if r.Secret != "" && action == HTTP && (!r.Upgrade || port != portHTTP) {
			return nil, fmt.Errorf("the secret would be sent without encryption on port %d", port)
		}
		actions[port] = action
	}
	return actions, nil
}

// usualPorts are the ports of a rule that names none.
func usualPorts(r *config.EgressRule) []int {
	switch {
	case r.Mode == config.EgressTCP:
		return nil
	case r.Mode == config.EgressHTTP:
		return []int{portHTTP}
	case r.Upgrade:
		return []int{portHTTP, portHTTPS}
	}
	return []int{portHTTPS}
}

// usualAction is what happens on a port whose rule names no mode.
func usualAction(port int, conditional bool) Action {
	switch {
	case port == portHTTP:
		return HTTP
	case port == portHTTPS && conditional:
		return Inspect
	case port == portHTTPS:
		return Splice
	}
	return TCP
}

// addPreset adds the rules of a preset for the hosts that were found.
func (p *Policy) addPreset(r *config.EgressRule, hosts preset.Hosts) error {
	set, ok := preset.Get(r.Preset)
	if !ok {
		return fmt.Errorf("there is no preset %q", r.Preset)
	}
	for i := range set.Rules {
		endpoints, err := endpointsOf(&set.Rules[i], hosts)
		if err != nil && !set.Optional {
			return err
		}
		for _, e := range endpoints {
			if err := p.addEndpoint(r, &set.Rules[i], e); err != nil {
				return err
			}
		}
	}
	return nil
}

// endpointsOf returns the servers that a rule of a preset is for.
func endpointsOf(r *preset.Rule, hosts preset.Hosts) ([]preset.Endpoint, error) {
	var endpoints []preset.Endpoint
	for _, host := range r.Hosts {
		endpoints = append(endpoints, preset.Endpoint{Host: host, Port: portHTTPS})
	}
	if r.Client == "" {
		return endpoints, nil
	}
	found := hosts[r.Client]
	endpoints = append(endpoints, found.Endpoints...)
	if len(endpoints) > 0 {
		return endpoints, nil
	}
	err := fmt.Errorf("no host is known for it: nothing was read of %s", r.Client)
	if found.Err != nil {
		err = fmt.Errorf("no host is known for it: %w", found.Err)
	}
	return nil, errhint.With(err, "name the host of the registry in a rule, in place of the preset")
}

// addEndpoint adds a rule of a preset for one server. What has no TLS is read;
// conditions that a relayed connection cannot keep hold only there.
func (p *Policy) addEndpoint(written *config.EgressRule, r *preset.Rule, e preset.Endpoint) error {
	pattern, err := hostname.ParsePattern(e.Host)
	if err != nil {
		return fmt.Errorf("%q: %w", e.Host, err)
	}
	c := &compiled{pattern: pattern, text: describe(written.String(), written.At), actions: map[int]Action{e.Port: Action(r.Mode)}}
	if e.Plain {
		c.actions[e.Port] = HTTP
	}
	if c.actions[e.Port] != Splice {
		c.methods, c.git = r.Methods, r.Git
		for _, path := range r.Paths {
			c.paths = append(c.paths, newPathPattern(path))
		}
	}
	p.add(c)
	return nil
}

// portText is a port for a rule in a hint, "" for the usual one.
func portText(port int) string {
	if port == portHTTPS {
		return ""
	}
	return ":" + strconv.Itoa(port)
}
