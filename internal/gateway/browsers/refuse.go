package browsers

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// refusals map errors to statuses and codes.
var refusals = []struct {
	err    error
	status int
	code   string
}{
	{access.ErrDenied, http.StatusUnauthorized, "unauthorized"},
	{access.ErrScope, http.StatusForbidden, "forbidden"},
	{ErrNotFound, http.StatusNotFound, "browser_not_found"},
	{ErrNotRunning, http.StatusConflict, "browser_not_running"},
	{ErrOff, http.StatusForbidden, "browser_cdp_off"},
	{ErrAddress, http.StatusForbidden, "browser_address"},
	{ErrViewOff, http.StatusForbidden, "browser_view_off"},
	{ErrControlOff, http.StatusForbidden, "browser_control_off"},
	{ErrNoWindow, http.StatusConflict, "browser_no_window"},
	{ErrFull, http.StatusServiceUnavailable, "too_many_connections"},
	{browser.ErrNoProgram, http.StatusUnprocessableEntity, "browser_no_program"},
	{browser.ErrNoScreen, http.StatusUnprocessableEntity, "browser_no_screen"},
	{browser.ErrNamespaces, http.StatusUnprocessableEntity, "browser_namespaces"},
	{errTickets, http.StatusTooManyRequests, "too_many_tickets"},
}

// Problem returns the problem that answers an error of this package; nil if it is
// another's.
func Problem(err error) *api.Problem {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return &api.Problem{Type: "about:blank", Title: http.StatusText(r.status), Status: r.status, Code: r.code, Detail: r.err.Error(), Hint: errhint.Of(r.err)}
		}
	}
	return imageProblem(err)
}

// imageProblem returns the problem of an image that no browser can be started from.
func imageProblem(err error) *api.Problem {
	e, ok := errors.AsType[*provide.BrowserImageError](err)
	if !ok {
		return nil
	}
	const status = http.StatusUnprocessableEntity
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: "browser_image", Detail: e.Error(), Hint: errhint.Of(err)}
}

// refuse answers a request for a WebSocket that is not opened. What went wrong inside is
// not told.
func refuse(w http.ResponseWriter, err error) {
	p := Problem(err)
	if p == nil {
		p = &api.Problem{Type: "about:blank", Title: http.StatusText(http.StatusBadGateway), Status: http.StatusBadGateway, Code: "browser_failed", Detail: "the browser does not answer"}
	}
	w.Header().Set("Content-Type", api.ProblemType)
	w.Header().Set("Connection", "close") // what follows, a proxy may take for the WebSocket's
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}
