package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// conditions are the keys of a rule that need its requests to be read.
var conditions = []string{"methods", "paths", "git", "secret", "websocket"}

// checkRuleKeys wants keys that fit each other in a rule's long form.
func checkRuleKeys(c *checker, at *path, n *node) {
	host, named := n.get("host"), n.get("preset")
	switch {
	case host == nil && named == nil:
		c.error(finding{at, n.offset, `the key "host" is missing`, `write { host: "example.com" }`})
	case host != nil && named != nil:
		c.error(finding{at.child("preset"), offsetOf(n, "preset"), "host and preset exclude each other", "keep one of the two"})
	case named != nil:
		checkPresetRule(c, at, n)
		return
	}
	checkRuleMode(c, at, n)
	if n.get("mode").string() == EgressTCP && n.get("ports") == nil {
		c.error(finding{at.child("mode"), offsetOf(n, "mode"), "the mode tcp needs ports", "write ports: [PORT]"})
	}
	for _, key := range []string{"methods", "paths", "ports"} {
		if list := n.get(key); list != nil && list.kind == '[' && len(list.items) == 0 {
			c.error(finding{at.child(key), list.offset, "the list is empty, so that the rule allows nothing", "remove the key, or name what is allowed"})
		}
	}
}

// checkPresetRule wants nothing in the rule that the preset decides.
func checkPresetRule(c *checker, at *path, n *node) {
	for _, m := range n.members {
		if m.key != "preset" && n.get(m.key) != nil {
			c.error(finding{at.child(m.key), m.offset, "a preset decides this itself", "remove it, or write a rule with host"})
		}
	}
}

// checkRuleMode refuses conditions that a mode cannot see.
func checkRuleMode(c *checker, at *path, n *node) {
	mode := n.get("mode").string()
	plain := mode == EgressHTTP || mode == "" && n.get("upgrade").isTrue()
	if n.get("secret") != nil && sendsPlain(n, mode) {
		c.error(finding{at.child("secret"), offsetOf(n, "secret"), "the secret would be sent without encryption", `write mode: "inspect", or upgrade: true for port 80`})
	}
	if n.get("upgrade").isTrue() && mode != "" && mode != EgressHTTP {
		c.error(finding{at.child("upgrade"), offsetOf(n, "upgrade"), "upgrade is for plain HTTP, and the mode is " + mode, "remove mode"})
	}
	if ports := n.get("ports"); n.get("upgrade").isTrue() && ports != nil && !slices.ContainsFunc(ports.items, func(port *node) bool { return port.text == "80" }) {
		c.error(finding{at.child("upgrade"), offsetOf(n, "upgrade"), "upgrade is for port 80, which the rule does not have", "add 80 to ports, or remove upgrade"})
	}
	if mode != EgressSplice && mode != EgressTCP {
		checkRulePorts(c, at, n, plain)
		return
	}
	for _, key := range conditions {
		if n.get(key) != nil {
			c.error(finding{at.child(key), offsetOf(n, key), fmt.Sprintf("the mode %s cannot see requests, so that %s would not be kept", mode, key), `write mode: "inspect"`})
		}
	}
}

// sendsPlain reports whether a rule has a port whose requests leave without TLS:
// upgrade is for port 80 alone.
func sendsPlain(n *node, mode string) bool {
	upgrade, ports := n.get("upgrade").isTrue(), n.get("ports")
	if ports == nil {
		return mode == EgressHTTP && !upgrade
	}
	return slices.ContainsFunc(ports.items, func(port *node) bool {
		isHTTP := mode == EgressHTTP || mode == "" && port.text == "80"
		return isHTTP && (!upgrade || port.text != "80")
	})
}

// checkRulePorts refuses conditions on ports whose bytes are not read.
func checkRulePorts(c *checker, at *path, n *node, plain bool) {
	ports := n.get("ports")
	if ports == nil || ports.kind != '[' || n.get("mode") != nil {
		return
	}
	conditional := slices.ContainsFunc(conditions, func(key string) bool { return n.get(key) != nil })
	for i, port := range ports.items {
		if conditional && !plain && port.text != "443" && port.text != "80" {
			c.error(finding{at.child("ports").item(i), port.offset, "what is spoken on port " + port.text + " is not known", `write mode: "inspect" or mode: "http"`})
		}
	}
}

// warnFronting warns of rules that relay TLS to a network that serves many
// owners: the name in the TLS greeting need not be the one that is asked inside.
func warnFronting(c *checker, at *path, n *node) {
	allow := n.get("allow")
	if allow == nil {
		return
	}
	for i, item := range allow.items {
		text, spliced := spliceHost(item)
		p, err := hostname.ParsePattern(text)
		if !spliced || err != nil {
			continue
		}
		if network := hostname.SharedNetwork(p.Name); network != "" {
			c.warn(finding{at.child("allow").item(i), item.offset,
				fmt.Sprintf("%s is on %s, which serves many owners: in the mode splice a program inside can reach others of them behind this name (domain fronting)", p, network),
				fmt.Sprintf("write { host: %s, mode: \"inspect\" }", wording.Quote(p.String()))})
		}
		if shown := hostname.Unicode(p.Name); shown != p.Name {
			c.warn(finding{at.child("allow").item(i), item.offset, fmt.Sprintf("%s is read as %s", p, wording.Quote(shown)), ""})
		}
	}
}

// warnLoopback warns of private networks that this machine itself is in.
func warnLoopback(c *checker, at *path, n *node) {
	private := n.get("private")
	if private == nil {
		return
	}
	for i, item := range private.items {
		if prefix, err := netip.ParsePrefix(item.text); err == nil && prefix.Addr().IsLoopback() {
			c.warn(finding{at.child("private").item(i), item.offset, "names may lead to every service of this machine itself", "write services: [PORT] for single ones"})
		}
	}
}

// spliceHost returns the host of a rule whose connections are relayed as they are.
func spliceHost(item *node) (host string, spliced bool) {
	if item.kind == '"' {
		host, port, err := hostname.SplitPort(item.text)
		return host, err == nil && (port == 0 || port == 443) && !strings.HasPrefix(item.text, textcheck.PresetPrefix)
	}
	mode := item.get("mode").string()
	conditional := slices.ContainsFunc(conditions, func(key string) bool { return item.get(key) != nil })
	return item.get("host").string(), mode == EgressSplice || mode == "" && !conditional && !item.get("upgrade").isTrue()
}
