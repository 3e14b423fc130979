package config

import (
	"reflect"
	"strings"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/config/textcheck"
)

const browserKey = "sandbox.browser."

// Browser is sandbox.browser.* of one agent.
type Browser struct {
	browserkeys.Browser
	Egress *Egress `json:"egress,omitzero"` // nil if it is not written
}

// BrowserEgress returns what the browser beside a sandbox reaches: what
// sandbox.browser.egress says, else sandbox.egress where it has a mode; else public names,
// or none if browser.network is none.
func (s *Sandbox) BrowserEgress() Egress {
	if s.Browser.Egress != nil {
		return *s.Browser.Egress
	}
	e := s.Egress
	switch {
	case !e.ModeIsDefault():
	case strings.EqualFold(s.Browser.Network, "none"):
		e.Mode = EgressOff
	default:
		e.Mode = EgressPublic
	}
	return e
}

// browser merges sandbox.browser.*.
func (m *merge) browser(agent, global *browserFile) (Browser, error) {
	own, err := browserkeys.Merge(&agent.File, &global.File, m.noteBrowser)
	if err != nil {
		return Browser{}, err
	}
	b := Browser{Browser: own}
	b.Binds = concat(m, browserKey+"binds", agent.Binds, global.Binds)
	if agent.Egress == nil && global.Egress == nil {
		return b, nil
	}
	e, err := m.egress(browserKey+"egress.", orEmpty(agent.Egress), orEmpty(global.Egress))
	if e.ModeIsDefault() {
		e.Mode = EgressPublic
	}
	b.Egress = &e
	return b, err
}

// noteBrowser records the level of a key of sandbox.browser.
func (m *merge) noteBrowser(key, name string, from browserkeys.Level) {
	if from == browserkeys.LevelDefault {
		m.note(browserKey+key, fromDefault, nil)
		return
	}
	m.written(browserKey+key, string(from), browserKey+name)
}

// narrowBrowser takes away from the browser, and from what it reaches.
func (s *Sandbox) narrowBrowser(f *browserFile) {
	s.Browser.Narrow(&f.File)
	if f.Egress == nil {
		return
	}
	e := s.BrowserEgress()
	e.narrow(f.Egress)
	if !reflect.DeepEqual(e, s.BrowserEgress()) {
		s.Browser.Egress = &e
	}
}

// checkHostControl refuses the host's own browser by name.
func checkHostControl(c *checker, at *path, n *node) {
	if n.get("allowHostControl").isTrue() {
		c.error(finding{at.child("allowHostControl"), offsetOf(n, "allowHostControl"),
			textcheck.SecurityPrefix + "allowHostControl would give an agent the browser of this host, with its cookies and its network",
			"remove it: the browser sandbox has a live view and a hand-over for logins"})
	}
}

// checkBrowserEgress refuses secrets in a browser's rules: pages could read them.
func checkBrowserEgress(c *checker, at *path, n *node) {
	allow := n.get("egress").get("allow")
	if allow == nil {
		return
	}
	for i, item := range allow.items {
		if secret := item.get("secret"); secret != nil {
			c.error(finding{at.under("egress.allow").item(i).child("secret"), secret.offset,
				textcheck.SecurityPrefix + "a browser gets no secret: what pages do with a login is not known", "remove secret, and log in by hand-over"})
		}
	}
}

// warnOneWall names settings that take a browser's protection away.
func warnOneWall(c *checker, at *path, n *node) {
	for _, risk := range browserkeys.Risks() {
		if n.get(risk.Key).isTrue() {
			c.warn(finding{at.child(risk.Key), offsetOf(n, risk.Key), risk.Means, ""})
		}
	}
}
