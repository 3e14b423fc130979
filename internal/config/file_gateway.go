package config

// gatewayFile is gateway.*: where the long-running service listens and whom it
// lets in. Most names are OpenClaw's.
type gatewayFile struct {
	Port           *int               `json:"port" min:"1" max:"65535" doc:"Port that the gateway listens on."`
	Bind           *string            `json:"bind" enum:"auto|loopback|lan|custom|tailnet" doc:"Where it listens: this machine only (auto, loopback), every address (lan), or customBindHost (custom)."`
	CustomBindHost *string            `json:"customBindHost" check:"ipAddress" doc:"Address that custom means."`
	TrustedNetwork Lines              `json:"trustedNetwork" check:"trustedNetwork" doc:"Networks (CIDR or interface) that connections may cross without encryption."`
	Hosts          []string           `json:"hosts" check:"hostName" doc:"Names that the gateway is reached by, beside addresses, localhost and those of its certificate."`
	Auth           *gatewayAuthFile   `json:"auth" doc:"Who is let in, beside the tokens of atoll token."`
	TLS            *gatewayTLSFile    `json:"tls" doc:"Encryption."`
	ControlUI      *controlUIFile     `json:"controlUi" doc:"What browsers may do."`
	Traces         *string            `json:"traces" check:"collectorURL" doc:"Where traces of runs and tasks are sent, by OTLP over HTTP: http://HOST:4318/v1/traces."`
	Links          *gatewayLinksFile  `json:"links" doc:"Where pages of other tools are that the dashboard links to."`
	Limits         *gatewayLimitsFile `json:"limits" doc:"How much the gateway takes on, and tokens that say nothing may do."`
	_              struct{}           `accept:"gateway"`
}

type gatewayAuthFile struct {
	Mode     *string  `json:"mode" enum:"none|token|password|trusted-proxy" doc:"Which of the two counts: token or password. With none or trusted-proxy no gateway starts."`
	Token    *Secret  `json:"token" doc:"A token that may do everything, for all accounts."`
	Password *Secret  `json:"password" doc:"A password that does the same."`
	_        struct{} `accept:"gateway.auth"`
}

type gatewayTLSFile struct {
	Enabled  *bool    `json:"enabled" doc:"Encrypt connections."`
	CertPath *string  `json:"certPath" check:"hostPath" doc:"File with the certificate, in PEM."`
	KeyPath  *string  `json:"keyPath" check:"hostPath" doc:"File with its key, in PEM, that only the gateway's user can read."`
	_        struct{} `accept:"gateway.tls"`
}

type controlUIFile struct {
	Enabled        *bool    `json:"enabled" doc:"Serve the dashboard below /ui/."`
	AllowedOrigins []string `json:"allowedOrigins" check:"origin" doc:"Pages of these origins may use the gateway, beside its own."`
	_              struct{} `accept:"gateway.controlUi"`
}

type gatewayLinksFile struct {
	Trace *string `json:"trace" check:"traceLink" doc:"The page of a trace, with {trace} in place of its id: https://HOST/trace/{trace}."`
}

type gatewayLimitsFile struct {
	Connections     *int     `json:"connections" min:"1" max:"1000000" doc:"Most connections at once."`
	PerAddress      *int     `json:"perAddress" min:"1" max:"1000000" doc:"Most connections at once of one address that is not this machine's."`
	Inbound         *int64   `json:"inboundBytes" min:"1048576" max:"1099511627776" doc:"Memory in bytes of requests and messages that are arriving, of all tokens together."`
	InboundPerToken *int64   `json:"inboundBytesPerToken" min:"1048576" max:"1099511627776" doc:"Memory in bytes of requests and messages that are arriving, of each token."`
	Requests        *int     `json:"requests" min:"1" max:"10000000" doc:"Requests a minute, of each token that has no quota of its own."`
	Runs            *int     `json:"runs" min:"1" max:"100000" doc:"Runs and tasks at once, of each such token."`
	Sandboxes       *int     `json:"sandboxes" min:"1" max:"100000" doc:"Sandboxes alive, of the account of each such token."`
	USD             *float64 `json:"usd" above:"0" max:"1000000" doc:"Dollars a day, of the account of each such token."`
}
