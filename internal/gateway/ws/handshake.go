package ws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/secret"
)

// refusal is a reply after which the connection is closed.
type refusal struct {
	*protocol.Error
	code int
}

func refuse(e *protocol.Error) *refusal { return &refusal{e, protocol.ClosePolicy} }

// handshake authenticates the client and reports whether it may stay. Until then
// only this goroutine writes.
func (c *conn) handshake() bool {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	// A client that sends nothing is closed without a reason, as OpenClaw does. If it
	// does not answer the close either, the connection is dropped when its read ends.
	late := time.AfterFunc(c.server.Limits.Handshake, func() {
		time.AfterFunc(time.Second, cancel)
		c.closeWith(protocol.CloseNormal, "")
	})
	defer late.Stop()
	c.challenge()
	data, err := c.Read(ctx)
	if err != nil {
		return false
	}
	id, params, ok := c.firstFrame(data)
	if !ok {
		return false
	}
	hello, no := c.admit(params)
	if no != nil {
		c.sendRefusal(id, no)
		return false
	}
	c.register(response(id, hello, nil))
	return true
}

// register adds the connection to the hub and sends hello. From then on the client
// receives every event, and none before.
func (c *conn) register(hello []byte) {
	c.out.hold()
	defer c.out.unhold()
	if !c.server.hub.add(c) {
		c.out.send(hello)
		c.out.close(protocol.CloseRestart, "service restart")
		return
	}
	c.server.Access.Audit(c.ctx, access.LogIn{Caller: c.caller, Path: Path, From: c.from})
	c.out.sendPriority(hello, nil)
}

func (c *conn) write(data []byte) bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.server.Limits.Handshake)
	defer cancel()
	return c.Write(ctx, data) == nil
}

// challenge sends the nonce that the client has to sign. The version is not known
// yet; the capabilities are what version 4 adds, and version 3 ignores them.
func (c *conn) challenge() {
	payload, _ := json.Marshal(map[string]any{"nonce": c.nonce, "ts": time.Now().UnixMilli(), "capabilities": []string{}})
	data, _ := json.Marshal(protocol.Event{Type: protocol.TypeEvent, Event: "connect.challenge", Payload: payload})
	c.write(data)
}

// firstFrame parses the first frame, or closes the connection.
func (c *conn) firstFrame(data []byte) (id string, params jsontext.Value, ok bool) {
	if !jsontext.Value(data).IsValid() {
		c.closeWith(protocol.CloseNormal, "") // as OpenClaw: not a client of this protocol
		return "", nil, false
	}
	req, wrong := parse(protocol.V4, data)
	switch {
	case wrong != "":
		c.closeWith(protocol.ClosePolicy, "invalid request frame")
		return "", nil, false
	case req.Method != "connect":
		c.sendRefusal(req.ID, refuse(invalid("invalid handshake: first request must be connect")))
		return "", nil, false
	}
	return req.ID, jsontext.Value(req.Params), true
}

func (c *conn) sendRefusal(id string, no *refusal) {
	c.server.Logger.InfoContext(c.ctx, "gateway connection refused", "connection", c.id, "from", c.from.String(), "code", no.Code, "reason", no.Message)
	if c.write(response(id, nil, no.Error)) {
		c.closeWith(no.code, no.Message)
	}
}

// closeWith closes a connection that is not authenticated.
func (c *conn) closeWith(code int, reason string) {
	_ = c.Close(code, reason) // the client may be gone
}

// admit authenticates a client and returns its hello.
func (c *conn) admit(params jsontext.Value) (any, *refusal) {
	p, no := c.readConnect(params)
	if no != nil {
		return nil, no
	}
	if role := strings.TrimSpace(p.Role); role != "" && role != "operator" {
		return nil, refuse(invalid("invalid role"))
	}
	caller, own, no := c.identify(p)
	if no != nil {
		return nil, no
	}
	c.caller, c.client, c.since = caller, p.Client, time.Now()
	c.tools = slices.Contains(p.Caps, "tool-events")
	if c.keepsScopes(p) {
		c.scopes = narrow(p.Scopes, caller)
	}
	return c.hello(own), nil
}

// readConnect checks the parameters of connect and agrees on a version.
func (c *conn) readConnect(params jsontext.Value) (*connectParams, *refusal) {
	c.version = protocol.V4
	var offer struct {
		Max int `json:"maxProtocol"`
	}
	if jsonx.Unmarshal(params, &offer) == nil && offer.Max == protocol.V3 {
		c.version = protocol.V3
	}
	if wrong := connectShape(c.version).check(c.version, params); wrong != "" {
		return nil, refuse(invalid("invalid connect params: " + wrong))
	}
	p := new(connectParams)
	if err := jsonx.Unmarshal(params, p); err != nil {
		return nil, refuse(invalid("invalid connect params"))
	}
	if p.MinProtocol > c.version || p.MaxProtocol < protocol.V3 || p.MinProtocol > p.MaxProtocol {
		return nil, &refusal{with(invalid("protocol mismatch"), map[string]any{
			"code": "PROTOCOL_MISMATCH", "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
			"expectedProtocol": protocol.V4, "minimumProbeProtocol": protocol.V3,
		}), protocol.CloseProtocol}
	}
	return p, nil
}

// identify authenticates the client; own is the token of its device.
func (c *conn) identify(p *connectParams) (caller *access.Caller, own secret.Value, no *refusal) {
	token, method := p.credential()
	c.method = method
	switch {
	case c.socket != nil && token == "" && p.Auth.DeviceToken == "":
		return c.socket, own, nil
	case p.Device != nil:
		return c.identifyDevice(p, token)
	case p.Client.ID == controlUI:
		return nil, own, refuse(with(invalid("control ui requires device identity (use HTTPS or localhost secure context)"),
			map[string]any{"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"}))
	case token == "":
		e := &protocol.Error{Code: protocol.CodeNotPaired, Message: "device identity required"}
		return nil, own, refuse(with(e, map[string]any{"code": "DEVICE_IDENTITY_REQUIRED"}))
	}
	caller, err := c.server.Access.Authenticate(c.ctx, c.from, token)
	if err != nil {
		return nil, own, c.authFailure(p, err)
	}
	return caller, own, nil
}

// identifyDevice authenticates a client by the key of its device.
func (c *conn) identifyDevice(p *connectParams, token string) (*access.Caller, secret.Value, *refusal) {
	d, from := p.Device, c.from
	if !c.direct {
		from = netip.IPv4Unspecified() // not loopback: never paired without approval
		if !c.from.IsLoopback() {
			from = c.from
		}
	}
	signed := strings.TrimSpace(p.Auth.Token) // a password is not part of what is signed
	own := cmp.Or(strings.TrimSpace(p.Auth.DeviceToken), token)
	caller, fresh, err := c.server.Access.ConnectDevice(c.ctx, &access.Connect{
		Proof: access.Proof{
			ID: d.ID, PublicKey: d.PublicKey, Signature: d.Signature, SignedAt: d.SignedAt, Nonce: d.Nonce,
			ClientID: p.Client.ID, Mode: p.Client.Mode, Role: "operator", Scopes: p.Scopes, Platform: p.Client.Platform, Family: p.Client.Family,
			Tokens: slices.Compact([]string{signed, own}),
		},
		Nonce: c.nonce, From: from, Token: token, DeviceToken: own,
	})
	if err != nil {
		return nil, secret.Value{}, c.authFailure(p, err)
	}
	return caller, fresh, nil
}

// keepsScopes reports whether requested scopes count. In version 4 a token without
// a device has no scopes, except for programs on this machine.
func (c *conn) keepsScopes(p *connectParams) bool {
	if c.version < protocol.V4 || p.Device != nil || c.socket != nil {
		return true
	}
	return c.direct && (p.Client.ID == backend && p.Client.Mode == "backend" || p.Client.ID == commands && p.Client.Mode == commands)
}

// authFailure returns the reply to a failed authentication, which never says which
// part was wrong.
func (c *conn) authFailure(p *connectParams, err error) *refusal {
	if proof, ok := errors.AsType[*access.ProofError](err); ok {
		code := "DEVICE_AUTH_INVALID"
		if known := proofCodes()[proof.Reason]; known != "" && c.version >= protocol.V4 {
			code = known
		}
		return refuse(with(invalid(proof.Message), map[string]any{"code": code, "reason": proof.Reason}))
	}
	switch {
	case errors.Is(err, access.ErrNotPaired):
		return c.pairingRequired(p)
	case errors.Is(err, access.ErrTooMany):
		return c.unauthorized("rate_limited", "too many failed authentication attempts (retry later)")
	case errors.Is(err, access.ErrDenied) && c.method == "password":
		return c.unauthorized("password_mismatch", "gateway password mismatch ("+c.hint(p)+")")
	case errors.Is(err, access.ErrDenied) && p.Auth.Token == "" && p.Auth.DeviceToken == "":
		return c.unauthorized("token_missing", "gateway token missing ("+c.hint(p)+")")
	case errors.Is(err, access.ErrDenied) && p.Auth.Token == "":
		return c.unauthorized("device_token_mismatch", "device token mismatch (rotate/reissue device token)")
	case errors.Is(err, access.ErrDenied):
		return c.unauthorized("token_mismatch", "gateway token mismatch ("+c.hint(p)+")")
	}
	c.server.Logger.ErrorContext(c.ctx, "gateway token could not be checked", "connection", c.id, "error", err)
	e := unavailable("the token cannot be checked now")
	e.Retryable = true
	return refuse(e)
}

func (c *conn) pairingRequired(p *connectParams) *refusal {
	message := "pairing required"
	if c.version >= protocol.V4 {
		message = "device pairing required"
	}
	e := &protocol.Error{Code: protocol.CodeNotPaired, Message: message}
	return refuse(with(e, map[string]any{"code": "PAIRING_REQUIRED", "requestId": p.Device.ID, "deviceId": p.Device.ID, "reason": "not-paired"}))
}

func (c *conn) unauthorized(reason, message string) *refusal {
	// The code is the reason in capitals.
	details := map[string]any{"code": "AUTH_" + strings.ToUpper(reason), "authReason": reason}
	e := invalid("unauthorized: " + message)
	if c.version >= protocol.V4 {
		details["canRetryWithDeviceToken"], details["recommendedNextStep"] = false, nextStep(reason)
		e.Retryable = reason == "rate_limited"
	}
	return refuse(with(e, details))
}

// nextStep returns the advice that version 4 adds to a refusal.
func nextStep(reason string) string {
	switch reason {
	case "token_missing":
		return "update_auth_configuration"
	case "rate_limited":
		return "wait_then_retry"
	}
	return "update_auth_credentials"
}

// hint says where a client's token is configured.
func (c *conn) hint(p *connectParams) string {
	switch {
	case c.method == "password" && p.Client.isBrowser():
		return "enter the password in Control UI settings"
	case c.method == "password" && p.Client.isCLI():
		return "set gateway.remote.password to match gateway.auth.password"
	case c.method == "password":
		return "provide gateway auth password"
	case p.Client.isCLI() && c.direct && c.version >= protocol.V4:
		return "use this gateway's gateway.auth.token or pair the device"
	case p.Client.isCLI():
		return "set gateway.remote.token to match gateway.auth.token"
	case p.Client.isBrowser():
		return "open the dashboard URL and paste the token in Control UI settings"
	}
	return "provide gateway auth token"
}

// proofCodes are version 4's codes for a refused proof of a device.
func proofCodes() map[string]string {
	return map[string]string{
		"device-id-mismatch": "DEVICE_AUTH_DEVICE_ID_MISMATCH", "device-signature-stale": "DEVICE_AUTH_SIGNATURE_EXPIRED",
		"device-nonce-missing": "DEVICE_AUTH_NONCE_REQUIRED", "device-nonce-mismatch": "DEVICE_AUTH_NONCE_MISMATCH",
		"device-signature": "DEVICE_AUTH_SIGNATURE_INVALID", "device-public-key": "DEVICE_AUTH_PUBLIC_KEY_INVALID",
	}
}
