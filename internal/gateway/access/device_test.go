package access_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/clocktest"
)

// testDevice is a device that signs as OpenClaw's clients do.
type testDevice struct {
	key  ed25519.PrivateKey
	text string // of the token that the signature covers
	form string // of what it signs
}

func newGadget(seed byte, token string) *testDevice {
	return &testDevice{ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize))), token, "v3"}
}

// connect is what the device sends after a challenge.
func (g *testDevice) connect(c *clocktest.Clock, from string) *access.Connect {
	public := g.key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // an Ed25519 key has an Ed25519 key
	sum := sha256.Sum256(public)
	p := access.Proof{
		ID: hex.EncodeToString(sum[:]), PublicKey: base64.RawURLEncoding.EncodeToString(public), SignedAt: c.Now().UnixMilli(), Nonce: "nonce-1",
		ClientID: "cli", Mode: "cli", Role: "operator", Scopes: []string{"operator.admin", "operator.read"}, Platform: "Linux", Family: "", Tokens: []string{g.text},
	}
	parts := []string{g.form, p.ID, "cli", "cli", "operator", "operator.admin,operator.read", strconv.FormatInt(p.SignedAt, 10), g.text, "nonce-1"}
	if g.form == "v3" {
		parts = append(parts, "linux", "")
	}
	p.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(g.key, []byte(strings.Join(parts, "|"))))
	return &access.Connect{Proof: p, Nonce: "nonce-1", From: netip.MustParseAddr(from), Token: g.text}
}

func TestADevicePairsOnLoopback(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	text, made, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"v3", "v2"} {
		g := newGadget('a', text.Reveal())
		g.form = form
		caller, own, err := a.ConnectDevice(t.Context(), g.connect(c, "127.0.0.1"))
		if err != nil || caller.Token != made.ID || caller.Account != "acct-1" {
			t.Fatalf("%s: %+v, %v", form, caller, err)
		}
		again := newGadget('a', own.Reveal())
		connect := again.connect(c, "192.0.2.1")
		connect.Token, connect.DeviceToken = "", own.Reveal()
		if caller, _, err := a.ConnectDevice(t.Context(), connect); err != nil || caller.Token != made.ID {
			t.Errorf("with its own token: %+v, %v", caller, err)
		}
		thief := newGadget('b', own.Reveal()).connect(c, "127.0.0.1")
		thief.Token, thief.DeviceToken = "", own.Reveal()
		if _, _, err := a.ConnectDevice(t.Context(), thief); !errors.Is(err, access.ErrDenied) {
			t.Errorf("another device with its token: %v", err)
		}
		if _, err := d.Verify(t.Context(), own.Reveal()); !errors.Is(err, access.ErrDenied) {
			t.Errorf("its token without its key: %v", err)
		}
	}
}

func TestADeviceEndsWithItsToken(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	text, made, err := d.Create(t.Context(), runner)
	if err != nil {
		t.Fatal(err)
	}
	d.SetFixed(map[string]secret.Value{"config": secret.New("hunter2")})
	connected := map[string]*access.Connect{}
	for seed, token := range map[byte]string{'a': text.Reveal(), 'b': "hunter2"} {
		_, own, err := a.ConnectDevice(t.Context(), newGadget(seed, token).connect(c, "::1"))
		if err != nil {
			t.Fatal(err)
		}
		connect := newGadget(seed, own.Reveal()).connect(c, "127.0.0.1")
		connect.Token, connect.DeviceToken = "", own.Reveal()
		if _, _, err := a.ConnectDevice(t.Context(), connect); err != nil {
			t.Fatal(err)
		}
		connected[token] = connect
	}
	if err := d.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	d.SetFixed(map[string]secret.Value{"config": secret.New("hunter3")})
	for token, connect := range connected {
		if _, _, err := a.ConnectDevice(t.Context(), connect); !errors.Is(err, access.ErrDenied) {
			t.Errorf("%.8s: %v", token, err)
		}
	}
}

func TestADeviceFromElsewhereWaits(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	d.SetFixed(map[string]secret.Value{"config": secret.New("hunter2")})
	g := newGadget('a', "hunter2")
	if _, _, err := a.ConnectDevice(t.Context(), g.connect(c, "192.0.2.1")); !errors.Is(err, access.ErrNotPaired) {
		t.Fatal(err)
	}
	list, err := a.Devices.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Approved != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := a.Devices.Approve(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.ConnectDevice(t.Context(), g.connect(c, "192.0.2.1")); err != nil {
		t.Errorf("approved: %v", err)
	}
	if err := a.Devices.Remove(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.ConnectDevice(t.Context(), g.connect(c, "192.0.2.1")); !errors.Is(err, access.ErrNotPaired) {
		t.Errorf("removed: %v", err)
	}
	if err := a.Devices.Approve(t.Context(), "nobody"); !errors.Is(err, access.ErrUnknownDevice) {
		t.Error(err)
	}
}

func TestForgedProofsAreRefused(t *testing.T) {
	d, c, _ := newStore(t)
	a := all(d, c)
	d.SetFixed(map[string]secret.Value{"config": secret.New("hunter2")})
	for name, test := range map[string]struct {
		forge  func(*access.Connect)
		reason string
	}{
		"id of another":      {func(x *access.Connect) { x.Proof.ID = strings.Repeat("0", 64) }, "device-id-mismatch"},
		"key":                {func(x *access.Connect) { x.Proof.PublicKey = "AAAA" }, "device-public-key"},
		"old":                {func(*access.Connect) { c.Move(access.MaxClockSkew + 1e9) }, "device-signature-stale"},
		"of tomorrow":        {func(*access.Connect) { c.Move(-access.MaxClockSkew - 1e9) }, "device-signature-stale"},
		"no nonce":           {func(x *access.Connect) { x.Proof.Nonce = " " }, "device-nonce-missing"},
		"replayed":           {func(x *access.Connect) { x.Nonce = "nonce-2" }, "device-nonce-mismatch"},
		"no challenge":       {func(x *access.Connect) { x.Nonce, x.Proof.Nonce = "", "x" }, "device-nonce-mismatch"},
		"another role":       {func(x *access.Connect) { x.Proof.Role = "node" }, "device-signature"},
		"more scopes":        {func(x *access.Connect) { x.Proof.Scopes = append(x.Proof.Scopes, "operator.write") }, "device-signature"},
		"another platform":   {func(x *access.Connect) { x.Proof.Platform = "ios" }, "device-signature"},
		"another token":      {func(x *access.Connect) { x.Proof.Tokens = []string{"hunter3"} }, "device-signature"},
		"no signature":       {func(x *access.Connect) { x.Proof.Signature = "" }, "device-signature"},
		"parts run together": {func(x *access.Connect) { x.Proof.ClientID, x.Proof.Mode = "cli|cli", "operator" }, "device-identity"},
		"huge":               {func(x *access.Connect) { x.Proof.Platform = strings.Repeat("x", 1<<20) }, "device-identity"},
	} {
		t.Run(name, func(t *testing.T) {
			connect := newGadget('a', "hunter2").connect(c, "127.0.0.1")
			test.forge(connect)
			_, err := access.Prove(&connect.Proof, connect.Nonce, c.Now())
			proof, ok := errors.AsType[*access.ProofError](err)
			if !ok || proof.Reason != test.reason || !errors.Is(err, access.ErrDenied) {
				t.Errorf("%v, want %s", err, test.reason)
			}
			if _, _, err := a.ConnectDevice(t.Context(), connect); err == nil {
				t.Error("let in")
			}
		})
	}
}
