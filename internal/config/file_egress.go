package config

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// egressFile is sandbox.egress: which names outside a sandbox reaches.
type egressFile struct {
	Mode     *EgressMode       `json:"mode" enum:"off|public|enforce|learn|ask" doc:"Which names a sandbox reaches: none (off), any public one on ports 80 and 443 (public), those that allow names (enforce), those and public ones, which are noted for atoll egress propose (learn), those and what a person allows when asked (ask)."`
	Allow    []egressRuleFile  `json:"allow" check:"egressRule" doc:"What is reached: NAME, *.NAME, NAME:PORT, preset:NAME, or a rule with its conditions."`
	Deny     []string          `json:"deny" check:"egressDeny" doc:"What is never reached, whatever allow says: NAME, *.NAME or NAME:PORT."`
	Private  []string          `json:"private" check:"privateRange" doc:"Addresses (CIDR) that allowed names may have although they are not public. Metadata services are never reached."`
	Upstream *string           `json:"upstream" check:"proxyURL" doc:"HTTP proxy that everything goes through: http://HOST:PORT."`
	Via      map[string]string `json:"via" keys:"egressWide" check:"socksURL" doc:"SOCKS5 proxies for some names, such as *.ts.net: socks5://HOST:PORT."`
	Services []int             `json:"services" min:"1" max:"65535" doc:"TCP ports of this machine's loopback address that the sandbox sees on its own."`
	ProxyEnv *bool             `json:"proxyEnv" doc:"Set HTTP_PROXY and HTTPS_PROXY inside, for programs that insist on a proxy."`
	Limits   *egressLimitsFile `json:"limits" doc:"How much a sandbox may have at once, and how long."`
}

// egressRuleFile is an entry of allow: a text, or an object with conditions.
type egressRuleFile struct {
	text string
	egressRule
}

// egressRule is an entry of allow in its long form.
type egressRule struct {
	Host      *string  `json:"host" check:"egressHost" doc:"NAME or *.NAME (every name below it, never NAME itself)."`
	Preset    *string  `json:"preset" check:"egressPreset" doc:"Name of a preset (atoll egress presets), in place of host."`
	Ports     []int    `json:"ports" min:"1" max:"65535" doc:"Ports; 443 if not given."`
	Mode      *string  `json:"mode" enum:"splice|inspect|http|tcp" doc:"What happens to a connection: TLS is relayed as it is (splice), TLS is opened by a certificate authority of this sandbox (inspect), HTTP without encryption is read (http), bytes are relayed (tcp)."`
	Methods   []string `json:"methods" check:"httpMethod" doc:"Only these HTTP methods."`
	Paths     []string `json:"paths" check:"urlPattern" doc:"Only these paths; * stands for a part of a segment, ** for any number of segments."`
	Git       *string  `json:"git" enum:"read|write" doc:"Requests of git over HTTP: clone and fetch (read), push too (write)."`
	Secret    *string  `json:"secret" check:"secretName" doc:"Name of the secret (secrets) that is put into requests."`
	Upgrade   *bool    `json:"upgrade" doc:"Plain HTTP on port 80 is sent on with TLS, to port 443."`
	WebSocket *bool    `json:"websocket" doc:"Requests may become WebSocket connections."`
}

// Forms returns a value of each form that the file may have.
func (egressRuleFile) Forms() []any { return []any{egressText(""), egressRule{}} }

// egressText is an entry of allow in its short form.
type egressText string

// UnmarshalJSON reads a text or an object.
func (r *egressRuleFile) UnmarshalJSON(b []byte) error {
	*r = egressRuleFile{}
	switch jsontext.Value(b).Kind() {
	case '"':
		return json.Unmarshal(b, &r.text)
	case '{':
		return json.Unmarshal(b, &r.egressRule)
	}
	return errors.New("expected a string or an object")
}

type egressLimitsFile struct {
	Connections  *int  `json:"connections" min:"1" max:"10000" doc:"Most connections at once."`
	NewPerMinute *int  `json:"newPerMinute" min:"1" max:"1000000" doc:"Most connections that begin in a minute."`
	BytesOut     *Size `json:"bytesOut" check:"amount" doc:"Most bytes that one connection sends out."`
	BytesIn      *Size `json:"bytesIn" check:"amount" doc:"Most bytes that one connection brings in."`
	IdleSeconds  *int  `json:"idleSeconds" min:"1" max:"86400" doc:"A connection without traffic is closed after so long."`
	LifeSeconds  *int  `json:"lifeSeconds" min:"1" max:"604800" doc:"A connection is closed after so long."`
}

// secretFile is an entry of secrets: a value that never enters a sandbox.
type secretFile struct {
	From   []secretSourceFile `json:"from" doc:"Where the value comes from; the first that has one counts. Without any: what atoll secrets set has kept."`
	Hosts  []string           `json:"hosts" required:"yes" check:"egressHost" doc:"Names of the hosts that are sent the value."`
	Env    *string            `json:"env" check:"envName" doc:"Variable of the sandbox that holds the placeholder."`
	Header *string            `json:"header" check:"headerName" doc:"The one header of a request that the value is put into."`
	Form   *string            `json:"form" check:"headerForm" doc:"What the header says; {} stands for the value."`
}

type secretSourceFile struct {
	Env      *string  `json:"env" check:"envName" doc:"Variable of the environment of atoll."`
	File     *string  `json:"file" check:"hostPath" doc:"File that only you can read."`
	Command  []string `json:"command" check:"line" doc:"Program, with its arguments, that prints the value."`
	Age      *string  `json:"age" check:"hostPath" doc:"File encrypted with age."`
	Identity *string  `json:"identity" check:"hostPath" doc:"File with the age identity that opens it."`
	Keyring  *string  `json:"keyring" check:"line" doc:"Name of an entry in the keyring of the desktop."`
}
