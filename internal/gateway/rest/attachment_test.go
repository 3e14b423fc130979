package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
)

// Files that are not base64, or for which there is no spool, are refused with the
// reason.
func TestAttachmentsAreChecked(t *testing.T) {
	o := newServer(t, nil)
	path := "/api/v1/sessions/main/messages"
	p := problem(t, o.ask("alice", http.MethodPost, path, map[string]any{"message": "x", "attachments": []any{map[string]any{"name": "a", "content": "!"}}}), http.StatusUnprocessableEntity, "invalid_request")
	if len(p.Errors) != 1 || p.Errors[0].Detail != "must be a string in base64" {
		t.Errorf("%+v", p)
	}
	problem(t, o.ask("alice", http.MethodPost, path, &api.SendRequest{Attachments: []api.Attachment{{Name: "a", Content: []byte("x")}}}), http.StatusUnprocessableEntity, "invalid_request")
	large := &api.SendRequest{Message: "x", System: strings.Repeat("x", 6<<20)}
	problem(t, o.ask("alice", http.MethodPost, path, large), http.StatusUnprocessableEntity, "invalid_request") // its body is taken
	// Little more than the limit: the server reads the rest before it closes, so that
	// the answer is not lost in a reset.
	problem(t, o.ask("alice", http.MethodPost, runsPath, task(strings.Repeat("x", 5<<20))), http.StatusRequestEntityTooLarge, "body_too_large")
}
