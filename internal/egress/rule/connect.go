package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// Connect decides about a connection to a port of a name.
func (p *Policy) Connect(name string, port int) Decision {
	d, _ := p.connect(name, port)
	return d
}

// connect returns the decision and the rules that allow the connection, of
// which those of the most specific pattern count.
func (p *Policy) connect(name string, port int) (Decision, []*compiled) {
	canonical, err := hostname.Canonical(name)
	switch {
	case err != nil:
		return deny(fmt.Sprintf("the name is refused: %v", err), ""), nil
	case port < 1 || port > 65535:
		return deny(fmt.Sprintf("%d is no port", port), ""), nil
	case p.mode == config.EgressOff:
		return deny("egress is off", `write sandbox.egress.mode: "enforce" and what is allowed, or use --egress`), nil
	}
	if text := p.deniedBy(canonical, port); text != "" {
		return Decision{Rule: text, Reason: canonical + " is denied"}, nil
	}
	if metadataNames.has(canonical) {
		return deny(canonical+" is the metadata service of a cloud, which gives out credentials of this machine", ""), nil
	}
	rules, exact := p.rulesFor(canonical, port)
	if reason, hint := p.special(canonical, port); reason != "" && !exact {
		return deny(reason, hint), nil
	}
	if len(rules) > 0 {
		d := joined(rules, port)
		d.Unbilled, d.Private = p.isModel(canonical), p.private
		return d, rules
	}
	return p.byMode(canonical, port), nil
}

// deniedBy returns the entry of deny that a name and a port have, or "".
func (p *Policy) deniedBy(name string, port int) string {
	for entries := range p.deny.levels(name) {
		for _, d := range entries {
			if d.port == 0 || d.port == port {
				return d.text
			}
		}
	}
	return ""
}

// rulesFor returns the rules for a port of the most specific pattern that has
// any, and whether that is the name itself.
func (p *Policy) rulesFor(name string, port int) (rules []*compiled, exact bool) {
	for level := range p.allow.levels(name) {
		for _, c := range level {
			if c.actions[port] != "" {
				rules = append(rules, c)
			}
		}
		if len(rules) > 0 {
			return rules, !rules[0].pattern.Wildcard
		}
	}
	return nil, false
}

// joined is the decision for rules of one pattern. The action that sees most
// counts, so that no condition of one is lost through another.
func joined(rules []*compiled, port int) Decision {
	d := Decision{Allow: true, Rule: rules[0].text}
	for _, c := range rules {
		if action := c.actions[port]; sight[action] > sight[d.Action] {
			d.Action, d.Rule = action, c.text
		}
		d.Upgrade = d.Upgrade || c.upgrade && port == portHTTP
		d.WebSocket = d.WebSocket || c.webSocket
		d.addSecret(c.secret)
	}
	return d
}

// sight orders the actions by how much of a connection they see.
var sight = map[Action]int{TCP: 1, Splice: 2, HTTP: 3, Inspect: 4}

func (d *Decision) addSecret(name string) {
	if name != "" && !slices.Contains(d.Secrets, name) {
		d.Secrets = append(d.Secrets, name)
	}
}

// byMode decides about a name and a port that no rule has.
func (p *Policy) byMode(name string, port int) Decision {
	hint := fmt.Sprintf("add %q to sandbox.egress.allow", name+portText(port))
	noRule := deny(fmt.Sprintf("no rule allows %s on port %d", name, port), hint)
	if p.mode == config.EgressEnforce {
		return noRule
	}
	if port != portHTTP && port != portHTTPS {
		noRule.Reason += fmt.Sprintf(", and without one only ports %d and %d are reached", portHTTP, portHTTPS)
		return noRule
	}
	if !isPublicName(name) {
		noRule.Reason += ", and it is no public name"
		return noRule
	}
	if p.mode == config.EgressAsk {
		noRule.Ask, noRule.Action, noRule.Private = true, usualAction(port, false), p.privateWithoutRule()
		return noRule
	}
	return Decision{
		Allow: true, Action: usualAction(port, false), Private: p.privateWithoutRule(),
		Rule: p.modeText, Reason: fmt.Sprintf("the mode %s allows public names", p.mode),
	}
}

// localDomains have names that mean something on this machine or in its network only.
var localDomains = []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "onion", "arpa", "invalid"}

// isPublicName reports whether a name can be one of the internet.
func isPublicName(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != name && !slices.Contains(localDomains, last)
}
