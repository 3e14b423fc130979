package config

import (
	"net/netip"
	"net/url"
)

// openclawGatewayMode is runs.openclaw.mode for a gateway that many runs share.
const openclawGatewayMode = "gateway"

// checkOpenClawMode wants a gateway where one is to be used, and no token sent
// where others could listen in.
func checkOpenClawMode(c *checker, at *path, n *node) {
	gateway := n.get("gateway")
	if mode := n.get("mode"); mode != nil && mode.text == openclawGatewayMode && gateway == nil {
		c.error(finding{at.child("mode"), mode.offset, "there is no gateway to work at", `write gateway: {url: "ws://127.0.0.1:18789", token: {env: "OPENCLAW_GATEWAY_TOKEN"}}`})
	}
	if gateway == nil || gateway.kind != '{' {
		return
	}
	address := gateway.get("url")
	if address == nil || address.kind != '"' || gateway.get("trustedNetwork").isTrue() {
		return
	}
	if u, err := url.Parse(address.text); err == nil && u.Scheme == "ws" && !isLoopback(u.Hostname()) {
		c.error(finding{at.child("gateway").child("url"), address.offset, "the token would be sent to another host unencrypted", "use wss://, or say trustedNetwork: true"})
	}
}

func isLoopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

func (c *Config) openclawGateway(f *openclawGatewayFile) (*OpenClawGateway, error) {
	g := &OpenClawGateway{}
	set(&g.URL, f.URL)
	u, err := url.Parse(g.URL)
	if err != nil {
		return nil, err
	}
	g.Local = isLoopback(u.Hostname())
	g.Token, err = c.llmKey(f.Token)
	return g, err
}
