package ws

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// connectParams are the parameters of connect, a client's first request.
type connectParams struct {
	MinProtocol int         `json:"minProtocol"`
	MaxProtocol int         `json:"maxProtocol"`
	Client      clientInfo  `json:"client"`
	Caps        []string    `json:"caps"`
	Role        string      `json:"role"`
	Scopes      []string    `json:"scopes"`
	Device      *deviceInfo `json:"device"`
	Auth        struct {
		Token       string `json:"token"`
		DeviceToken string `json:"deviceToken"`
		Password    string `json:"password"`
	} `json:"auth"`
}

// credential returns the token or password of a client, and which of the two it is:
// clients send the configured password where they have no token.
func (p *connectParams) credential() (text, method string) {
	if token := strings.TrimSpace(p.Auth.Token); token != "" || p.Auth.Password == "" {
		return token, "token"
	}
	return p.Auth.Password, "password"
}

// clientInfo is a client's description of itself.
type clientInfo struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	Version     string `json:"version"`
	Platform    string `json:"platform"`
	Family      string `json:"deviceFamily"`
	Model       string `json:"modelIdentifier"`
	Mode        string `json:"mode"`
	Instance    string `json:"instanceId"`
}

type deviceInfo struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// maxWord bounds each field of a client's description, which is stored and shown to
// others.
const maxWord = 256

// Ids of clients that are treated differently.
const (
	backend   = "gateway-client"
	commands  = "cli"
	controlUI = "openclaw-control-ui"
)

func clientIDs(version int) []string {
	ids := []string{"webchat-ui", controlUI, "webchat", commands, backend, "openclaw-macos", "openclaw-ios", "openclaw-android", "node-host", "test", "fingerprint", "openclaw-probe"}
	if version >= protocol.V4 {
		ids = append(ids, "openclaw-tui", "openclaw-linux", "openclaw-watchos", "openclaw-browser-copilot", "openclaw-worker")
	}
	return ids
}

func clientModes(version int) []string {
	modes := []string{"webchat", commands, "ui", "backend", "node", "probe", "test"}
	if version >= protocol.V4 {
		modes = append(modes, "worker")
	}
	return modes
}

// connectShape is the shape of connect's parameters.
func connectShape(version int) shape {
	return shape{
		{name: "minProtocol", kind: integer, need: true, min: 1}, {name: "maxProtocol", kind: integer, need: true, min: 1},
		{name: "client", kind: object, need: true, in: shape{
			{name: "id", kind: text, need: true, enum: clientIDs(version)}, {name: "displayName", kind: word, max: maxWord},
			{name: "version", kind: word, need: true, max: maxWord}, {name: "buildId", kind: word, max: 96, v4: true},
			{name: "platform", kind: word, need: true, max: maxWord}, {name: "deviceFamily", kind: word, max: maxWord},
			{name: "modelIdentifier", kind: word, max: maxWord}, {name: "timeZone", kind: word, max: 64, v4: true},
			{name: "mode", kind: text, need: true, enum: clientModes(version)}, {name: "instanceId", kind: word, max: maxWord},
		}},
		{name: "caps", kind: words}, {name: "commands", kind: words}, {name: "permissions", kind: record}, {name: "pathEnv", kind: text},
		{name: "computerUse", kind: anything, v4: true}, {name: "workerRuns", kind: anything, v4: true}, {name: "modelCatalog", kind: record, v4: true},
		{name: "role", kind: word}, {name: "scopes", kind: words},
		{name: "device", kind: object, in: shape{
			{name: "id", kind: word, need: true}, {name: "publicKey", kind: word, need: true}, {name: "signature", kind: word, need: true},
			{name: "signedAt", kind: integer, need: true}, {name: "nonce", kind: word, need: true},
		}},
		{name: "auth", kind: object, in: shape{
			{name: "token", kind: text}, {name: "deviceToken", kind: text}, {name: "password", kind: text}, {name: "bootstrapToken", kind: text, v4: true},
			{name: "approvalRuntimeToken", kind: text, v4: true}, {name: "agentRuntimeIdentityToken", kind: text, v4: true},
		}},
		{name: "locale", kind: text}, {name: "userAgent", kind: text},
	}
}

// scopes are the rights of a connection, by OpenClaw's names.
type scopes []string

// The scopes that methods need.
const (
	scopeAdmin     = "operator.admin"
	scopeApprovals = "operator.approvals"
	scopeRead      = "operator.read"
	scopeWrite     = "operator.write"
)

// scopesOf returns the scopes that a token allows.
func scopesOf(c *access.Caller) scopes {
	var s scopes
	if c.May(access.Read) {
		s = append(s, scopeRead, "operator.sessions.read")
	}
	if c.May(access.Run) {
		s = append(s, scopeWrite, "operator.sessions.write", "operator.questions")
	}
	if c.May(access.Operator) {
		s = append(s, scopeAdmin)
	}
	if c.May(access.Approvals) {
		s = append(s, scopeApprovals)
	}
	if c.May(access.Operator) {
		s = append(s, "operator.pairing", "operator.talk", "operator.talk.secrets")
	}
	return s
}

// narrow returns the requested scopes that a token allows.
func narrow(asked []string, c *access.Caller) scopes {
	allowed, kept := scopesOf(c), scopes{}
	for _, s := range asked {
		if slices.Contains(allowed, s) && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// has reports whether a scope is included: write includes read, admin includes
// everything.
func (s scopes) has(scope string) bool {
	return scope == "" || slices.Contains(s, scope) || slices.Contains(s, scopeAdmin) ||
		scope == scopeRead && slices.Contains(s, scopeWrite)
}

// isCLI reports whether a client is the command line, which gets other hints.
func (c *clientInfo) isCLI() bool { return c.ID == commands || c.Mode == commands }

func (c *clientInfo) isBrowser() bool { return c.ID == controlUI || strings.HasPrefix(c.ID, "webchat") }
