package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// Listed is what a rule does with one port of its hosts, for people.
type Listed struct {
	Rule      string   `json:"rule"` // as written, with its key and line
	Host      string   `json:"host"`
	Port      int      `json:"port"`
	Action    Action   `json:"action"`
	Methods   []string `json:"methods,omitzero"`
	Paths     []string `json:"paths,omitzero"`
	Git       string   `json:"git,omitempty"`
	Secret    string   `json:"secret,omitempty"`
	Upgrade   bool     `json:"upgrade,omitzero"`
	WebSocket bool     `json:"websocket,omitzero"`
	Unbilled  bool     `json:"unbilled,omitzero"` // the host serves models
	Network   string   `json:"network,omitempty"` // the network of many owners that the host is on
}

// Rules returns what is allowed by name, in the order in which it is written.
func (p *Policy) Rules() []Listed {
	var list []Listed
	for _, c := range p.written {
		for _, port := range slices.Sorted(maps.Keys(c.actions)) {
			l := Listed{
				Rule: c.text, Host: c.pattern.String(), Port: port, Action: c.actions[port],
				Methods: c.methods, Git: c.git, Secret: c.secret, Upgrade: c.upgrade && port == portHTTP, WebSocket: c.webSocket,
				Unbilled: !c.pattern.Wildcard && p.isModel(c.pattern.Name), Network: hostname.SharedNetwork(c.pattern.Name),
			}
			if c.paths != nil {
				l.Paths = texts(c.paths)
			}
			list = append(list, l)
		}
	}
	return list
}

// String says what is allowed, in one line.
func (l Listed) String() string {
	parts := []string{l.Host + portText(l.Port), string(l.Action)}
	add := func(text string, is bool) {
		if is {
			parts = append(parts, text)
		}
	}
	add(strings.Join(l.Methods, " "), l.Methods != nil)
	add(strings.Join(l.Paths, " "), l.Paths != nil)
	add("git "+l.Git, l.Git != "")
	add("secret "+l.Secret, l.Secret != "")
	add("sent on with TLS", l.Upgrade)
	add("WebSocket", l.WebSocket)
	add("unbilled", l.Unbilled)
	return strings.Join(parts, ", ")
}
