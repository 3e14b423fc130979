package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Device is an identity that a gateway can pair with: an Ed25519 key.
type Device struct{ key ed25519.PrivateKey }

// NewDevice returns the identity of a seed of 32 random bytes.
func NewDevice(seed []byte) (*Device, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, errors.New("the seed of a device has 32 bytes")
	}
	return &Device{ed25519.NewKeyFromSeed(seed)}, nil
}

// DeviceProof is a device's signature of a connect request.
type DeviceProof struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

func (d *Device) public() ed25519.PublicKey { return d.key.Public().(ed25519.PublicKey) } //nolint:forcetypeassert // It is what Public returns.

// ID returns the id under which a gateway lists the device: the hash of its public
// key.
func (d *Device) ID() string {
	sum := sha256.Sum256(d.public())
	return hex.EncodeToString(sum[:])
}

// Prove signs a connect request, in the form that both versions accept.
func (d *Device) Prove(c *Connect, nonce string, now time.Time) *DeviceProof {
	at := now.UnixMilli()
	token := ""
	if c.Auth != nil {
		token = c.Auth.Token
	}
	text := strings.Join([]string{
		"v2", d.ID(), c.Client.ID, c.Client.Mode, c.Role, strings.Join(c.Scopes, ","), strconv.FormatInt(at, 10), token, nonce,
	}, "|")
	return &DeviceProof{
		ID: d.ID(), PublicKey: base64.RawURLEncoding.EncodeToString(d.public()),
		Signature: base64.RawURLEncoding.EncodeToString(ed25519.Sign(d.key, []byte(text))), SignedAt: at, Nonce: nonce,
	}
}
