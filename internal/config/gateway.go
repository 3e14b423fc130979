package config

import (
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Gateway is gateway.* with defaults, as far as it is Atoll's.
type Gateway struct {
	Port           int           `json:"port"`
	Bind           string        `json:"bind"`
	CustomBindHost string        `json:"customBindHost,omitempty"`
	TrustedNetwork []string      `json:"trustedNetwork,omitzero"`
	Hosts          []string      `json:"hosts,omitzero"`
	Token          *Secret       `json:"token,omitempty"`
	Password       *Secret       `json:"password,omitempty"`
	ByPassword     bool          `json:"byPassword,omitzero"` // auth.mode is password
	TLS            GatewayTLS    `json:"tls,omitzero"`
	Dashboard      bool          `json:"dashboard"` // controlUi.enabled
	Origins        []string      `json:"allowedOrigins,omitzero"`
	Traces         string        `json:"traces,omitempty"`
	TraceLink      string        `json:"traceLink,omitempty"` // links.trace
	Limits         GatewayLimits `json:"limits"`
}

// GatewayTLS is gateway.tls, if it is enabled.
type GatewayTLS struct {
	CertFile string `json:"certPath,omitempty"`
	KeyFile  string `json:"keyPath,omitempty"`
}

// GatewayLimits is gateway.limits; 0 is no limit of the configuration.
type GatewayLimits struct {
	Connections     int     `json:"connections"`
	PerAddress      int     `json:"perAddress"`
	Inbound         int64   `json:"inboundBytes"`
	InboundPerToken int64   `json:"inboundBytesPerToken"`
	Requests        int     `json:"requests"`
	Runs            int     `json:"runs"`
	Sandboxes       int     `json:"sandboxes,omitzero"`
	USD             float64 `json:"usd,omitzero"`
}

func builtinGateway() Gateway {
	return Gateway{
		Port: DefaultGatewayPort, Bind: "loopback", Dashboard: true,
		Limits: GatewayLimits{Connections: 8192, PerAddress: 512, Inbound: 256 << 20, InboundPerToken: 64 << 20, Requests: 6000, Runs: 1000},
	}
}

// Gateway returns gateway.* with defaults.
func (c *Config) Gateway() (Gateway, error) {
	g, f := builtinGateway(), orEmpty(c.file.Gateway)
	set(&g.Port, f.Port)
	set(&g.Bind, f.Bind)
	set(&g.CustomBindHost, f.CustomBindHost)
	g.TrustedNetwork, g.Hosts = slices.Clone(f.TrustedNetwork), slices.Clone(f.Hosts)
	if err := g.authenticate(orEmpty(f.Auth)); err != nil {
		return g, err
	}
	g.Origins = slices.DeleteFunc(slices.Clone(orEmpty(f.ControlUI).AllowedOrigins), func(o string) bool { return o == textcheck.AnyOrigin })
	set(&g.Dashboard, orEmpty(f.ControlUI).Enabled)
	set(&g.Traces, f.Traces)
	set(&g.TraceLink, orEmpty(f.Links).Trace)
	limits := orEmpty(f.Limits)
	set(&g.Limits.Connections, limits.Connections)
	set(&g.Limits.PerAddress, limits.PerAddress)
	set(&g.Limits.Inbound, limits.Inbound)
	set(&g.Limits.InboundPerToken, limits.InboundPerToken)
	set(&g.Limits.Requests, limits.Requests)
	set(&g.Limits.Runs, limits.Runs)
	set(&g.Limits.Sandboxes, limits.Sandboxes)
	set(&g.Limits.USD, limits.USD)
	c.limits.gateway(&g)
	return g, c.gatewayPlace(&g, orEmpty(f.TLS))
}

// authenticate settles what callers show, as OpenClaw does: of a token and a password
// the one that the mode names, the token if it names none.
func (g *Gateway) authenticate(f *gatewayAuthFile) error {
	mode := *orEmpty(f.Mode)
	if mode == "" && f.Token == nil && f.Password != nil {
		mode = "password"
	}
	switch g.ByPassword = mode == "password"; {
	case mode == "none":
		return errhint.With(errors.New("gateway.auth.mode: none would let everybody in"), `set it to "token"; programs of the gateway's own user need none, they come through its socket`)
	case mode == "trusted-proxy":
		return errhint.With(errors.New("gateway.auth.mode: trusted-proxy is not supported: what a proxy says of its callers is not believed"), `set it to "token", and give the proxy a token of atoll token for each account`)
	case g.ByPassword:
		g.Password = f.Password
	default:
		g.Token = f.Token
	}
	return nil
}

// gatewayPlace settles what depends on several keys. Files of OpenClaw may leave
// open what it finds out by itself: they load, and are refused here.
func (c *Config) gatewayPlace(g *Gateway, f *gatewayTLSFile) (err error) {
	switch {
	case g.Bind == "custom" && g.CustomBindHost == "":
		return errhint.With(errors.New("gateway.bind is custom, and gateway.customBindHost is missing"), "set it to an address of this machine")
	case g.Bind == "tailnet":
		return errhint.With(errors.New("gateway.bind: the address of a tailnet is not found by itself"), `set bind: "custom", customBindHost to that address, and trustedNetwork to its interface`)
	case f.Enabled == nil || !*f.Enabled:
		return nil
	case f.CertPath == nil || f.KeyPath == nil:
		return errhint.With(errors.New("gateway.tls is enabled, and certPath or keyPath is missing"), "name a certificate that clients trust: none is made here")
	}
	if g.TLS.CertFile, err = c.hostPath(*f.CertPath); err != nil {
		return err
	}
	g.TLS.KeyFile, err = c.hostPath(*f.KeyPath)
	return err
}

// Address is where the gateway listens, HOST:PORT.
func (g *Gateway) Address() string {
	host := "127.0.0.1"
	switch g.Bind {
	case "lan":
		host = "0.0.0.0"
	case "custom":
		host = g.CustomBindHost
	}
	return net.JoinHostPort(host, strconv.Itoa(g.Port))
}
