package rest_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/secret"
)

// tokenList is a store of tokens.
type tokenList []access.Token

func (l *tokenList) List(context.Context) ([]access.Token, error) { return *l, nil }

func (l *tokenList) Create(_ context.Context, spec access.Spec) (secret.Value, *access.Token, error) {
	*l = append(*l, access.Token{ID: "new", Spec: spec})
	return secret.New("the text"), &(*l)[len(*l)-1], nil
}

func (l *tokenList) Revoke(_ context.Context, id string) error {
	*l = slices.DeleteFunc(*l, func(t access.Token) bool { return t.ID == id })
	return nil
}

// deviceList is a store of devices.
type deviceList []access.Device

func (l *deviceList) List(context.Context) ([]access.Device, error) { return *l, nil }

func (l *deviceList) find(id string) int {
	return slices.IndexFunc(*l, func(d access.Device) bool { return d.ID == id })
}

func (l *deviceList) Approve(_ context.Context, id string) error {
	at := l.find(id)
	if at < 0 {
		return access.ErrUnknownDevice
	}
	now := time.Now()
	(*l)[at].Approved = &now
	return nil
}

func (l *deviceList) Remove(_ context.Context, id string) error {
	at := l.find(id)
	if at < 0 {
		return access.ErrUnknownDevice
	}
	*l = slices.Delete(*l, at, at+1)
	return nil
}

// An admin makes and ends tokens; the text of one is in the answer that made it alone.
func TestTokensAreMadeAndEnded(t *testing.T) {
	list := &tokenList{}
	o := newServer(t, func(o *rest.Options) { o.Tokens = list })
	made := into[api.CreatedToken](t, o.ask("root", http.MethodPost, "/api/v1/tokens", &api.CreateToken{Name: "ci", Scope: "run", Account: "alice", Days: 7}), http.StatusOK)
	if made.Text != "the text" || made.Token.Account != "alice" || (*list)[0].Life != 7*24*time.Hour {
		t.Errorf("%+v, %+v", made, list)
	}
	problem(t, o.ask("root", http.MethodPost, "/api/v1/tokens", &api.CreateToken{Scope: "everything"}), http.StatusUnprocessableEntity, "invalid_request")
	problem(t, o.ask("root", http.MethodPost, "/api/v1/tokens", &api.CreateToken{Scope: "read", Days: 5000}), http.StatusUnprocessableEntity, "invalid_request")
	problem(t, o.ask("alice", http.MethodPost, "/api/v1/tokens", &api.CreateToken{Scope: "admin"}), http.StatusForbidden, "forbidden")
	problem(t, o.ask("alice", http.MethodDelete, "/api/v1/tokens/new", nil), http.StatusForbidden, "forbidden")
	problem(t, o.ask("root", http.MethodDelete, "/api/v1/tokens/none", nil), http.StatusNotFound, "token_not_found")
	into[api.Done](t, o.ask("root", http.MethodDelete, "/api/v1/tokens/new", nil), http.StatusOK)
	if len(*list) != 0 {
		t.Errorf("%+v", list)
	}
}

// Devices are paired and ended by an admin who sees all accounts.
func TestDevicesArePairedAndEnded(t *testing.T) {
	list := &deviceList{{ID: "d1", Client: "cli"}}
	o := newServer(t, func(o *rest.Options) { o.Devices = list })
	into[api.Done](t, o.ask("root", http.MethodPost, "/api/v1/devices/d1/pair", nil), http.StatusOK)
	if got := into[api.Devices](t, o.ask("root", http.MethodGet, "/api/v1/devices", nil), http.StatusOK); len(got.Devices) != 1 || !got.Devices[0].Paired {
		t.Errorf("%+v", got)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/devices", nil), http.StatusForbidden, "forbidden")
	problem(t, o.ask("root", http.MethodDelete, "/api/v1/devices/d2", nil), http.StatusNotFound, "device_not_found")
	into[api.Done](t, o.ask("root", http.MethodDelete, "/api/v1/devices/d1", nil), http.StatusOK)
	if len(*list) != 0 {
		t.Errorf("%+v", list)
	}
}
