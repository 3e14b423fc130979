package live

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// errNotLoggedIn closes a connection whose first message is no log-in.
var errNotLoggedIn = errors.New("the first message is no log-in")

// identify returns the caller of a request, or nil for a page that came with its cookie
// alone and has to send its half of the log-in first.
func (h *Handler) identify(r *http.Request) (*access.Caller, error) {
	if h.Access.HasCookieOnly(r) {
		if r.Header.Get("Origin") == "" { // browsers send one with every WebSocket
			return nil, access.ErrDenied
		}
		return nil, nil //nolint:nilnil // it is not known yet
	}
	caller, err := h.Access.Identify(r)
	if err != nil {
		return nil, err
	}
	return caller, h.allow(caller)
}

// logIn reads the first message of a page, which has to come soon.
func (h *Handler) logIn(r *http.Request, ws *websocket.Conn) (*access.Caller, error) {
	ctx, cancel := context.WithTimeout(r.Context(), h.LogIn)
	defer cancel()
	kind, data, err := ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	var q api.LiveRequest
	if kind != websocket.MessageText || json.Unmarshal(data, &q) != nil || q.Type != api.LiveLogIn {
		return nil, errNotLoggedIn
	}
	caller, err := h.Access.IdentifyPage(r, q.Page)
	if err != nil {
		return nil, err
	}
	return caller, h.allow(caller)
}

// allow checks the scope and the rate of a caller.
func (h *Handler) allow(c *access.Caller) error {
	if !c.May(access.Read) {
		return access.ErrScope
	}
	return h.Access.Limiter.Admit(c)
}

// refuse answers a request that is not upgraded.
func refuse(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}
