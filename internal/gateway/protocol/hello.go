package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Challenge is the first event of a connection.
type Challenge struct {
	Nonce string `json:"nonce"`
	TS    int64  `json:"ts"`
}

// ClientInfo describes the client program.
type ClientInfo struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName,omitempty"`
	Version     string `json:"version"`
	Platform    string `json:"platform"`
	Mode        string `json:"mode"`
	InstanceID  string `json:"instanceId,omitempty"`
}

// ConnectAuth holds the credentials of a client.
type ConnectAuth struct {
	Token       string `json:"token,omitempty"`
	DeviceToken string `json:"deviceToken,omitempty"`
	Password    string `json:"password,omitempty"`
}

// Connect are the parameters of a client's first request.
type Connect struct {
	MinProtocol int          `json:"minProtocol"`
	MaxProtocol int          `json:"maxProtocol"`
	Client      ClientInfo   `json:"client"`
	Caps        []string     `json:"caps,omitempty"`
	Role        string       `json:"role,omitempty"`
	Scopes      []string     `json:"scopes,omitempty"`
	Device      *DeviceProof `json:"device,omitempty"`
	Auth        *ConnectAuth `json:"auth,omitempty"`
}

// Hello is a gateway's answer to connect.
type Hello struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Server   struct {
		Version string `json:"version"`
		ConnID  string `json:"connId"`
		BootID  string `json:"bootId"` // of version 4
	} `json:"server"`
	Features struct {
		Methods []string `json:"methods"`
		Events  []string `json:"events"`
	} `json:"features"`
	Snapshot struct {
		UptimeMs int64 `json:"uptimeMs"`
	} `json:"snapshot"`
	Auth *struct {
		Role   string   `json:"role"`
		Scopes []string `json:"scopes"`
	} `json:"auth"`
	Policy struct {
		MaxPayload     int64 `json:"maxPayload"`
		TickIntervalMs int64 `json:"tickIntervalMs"`
	} `json:"policy"`

	// The gateway's process started between these two times, by the local clock.
	bootedAfter, bootedBefore time.Time
}

// helloType is the type of a Hello.
const helloType = "hello-ok"

// Has reports whether the gateway has a method.
func (h *Hello) Has(method string) bool { return slices.Contains(h.Features.Methods, method) }

// SameBoot reports whether a later hello is of the same process, whose tasks may
// still be under way.
func (h *Hello) SameBoot(later *Hello) bool {
	if h.Server.BootID != "" && later.Server.BootID != "" {
		return h.Server.BootID == later.Server.BootID
	}
	return !later.bootedAfter.After(h.bootedBefore)
}

// check returns what is wrong with a hello. Missing scopes are reported here,
// because later calls would fail without a clear reason.
func (h *Hello) check(wanted []string) error {
	switch {
	case h.Type != helloType:
		return fmt.Errorf("the gateway's first answer is no %s", helloType)
	case h.Protocol != V3 && h.Protocol != V4:
		return fmt.Errorf("the gateway speaks protocol %d; known are %d and %d", h.Protocol, V3, V4)
	case h.Protocol == V4 && h.Auth == nil:
		return errors.New("the gateway does not say which scopes it grants")
	}
	for _, method := range []string{"agent", "agent.wait", "sessions.patch", "chat.abort"} {
		if !h.Has(method) {
			return fmt.Errorf("the gateway has no method %s", method)
		}
	}
	if h.Auth == nil {
		return nil // version 3 reports missing scopes with the first request
	}
	for _, scope := range wanted {
		if !slices.Contains(h.Auth.Scopes, scope) {
			return fmt.Errorf("the gateway does not grant %s", scope)
		}
	}
	return nil
}

// handshake answers the challenge of a new connection. The context bounds it.
func (c *Client) handshake(ctx context.Context, conn *Conn) (*Hello, error) {
	nonce, err := awaitChallenge(ctx, conn)
	if err != nil {
		return nil, err
	}
	params, err := c.connectParams(ctx, nonce)
	if err != nil {
		return nil, err
	}
	request, err := encodeRequest("connect", "connect", params)
	if err != nil {
		return nil, err
	}
	sent := time.Now()
	if err := conn.Write(ctx, request); err != nil {
		return nil, err
	}
	response, err := awaitResponse(ctx, conn, "connect")
	if err != nil {
		return nil, err
	}
	if !response.OK {
		return nil, refusalOf(response.Error)
	}
	hello := &Hello{}
	if err := json.Unmarshal(response.Payload, hello); err != nil {
		return nil, fmt.Errorf("the gateway's hello: %w", err)
	}
	uptime := time.Duration(min(max(hello.Snapshot.UptimeMs, 0), int64(100*365*24*time.Hour/time.Millisecond))) * time.Millisecond
	hello.bootedAfter, hello.bootedBefore = sent.Add(-uptime), time.Now().Add(-uptime)
	return hello, hello.check(c.options.Scopes)
}

func (c *Client) connectParams(ctx context.Context, nonce string) (*Connect, error) {
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("the gateway's token: %w", err)
	}
	p := &Connect{
		MinProtocol: V3, MaxProtocol: V4,
		Client: ClientInfo{ID: "gateway-client", DisplayName: c.options.Name, Version: c.options.Version, Platform: "linux", Mode: "backend", InstanceID: c.instance},
		Caps:   []string{"tool-events"}, Role: "operator", Scopes: c.options.Scopes, Auth: &ConnectAuth{Token: token},
	}
	if c.options.Device != nil {
		p.Device = c.options.Device.Prove(p, nonce, time.Now())
	}
	return p, nil
}

// maxEarly bounds the frames before the expected one.
const maxEarly = 64

func awaitChallenge(ctx context.Context, conn *Conn) (string, error) {
	for range maxEarly {
		f, err := readFrame(ctx, conn)
		if err != nil {
			return "", err
		}
		if f.Type != TypeEvent || f.Event != "connect.challenge" {
			continue
		}
		var c Challenge
		if err := json.Unmarshal(f.Payload, &c); err != nil || c.Nonce == "" {
			return "", errors.New("the gateway's challenge has no nonce")
		}
		return c.Nonce, nil
	}
	return "", errors.New("the gateway sends no challenge")
}

func awaitResponse(ctx context.Context, conn *Conn, id string) (*frame, error) {
	for range maxEarly {
		f, err := readFrame(ctx, conn)
		if err != nil {
			return nil, err
		}
		if f.Type == TypeResponse && f.ID == id {
			return f, nil
		}
	}
	return nil, errors.New("the gateway does not answer the first request")
}
