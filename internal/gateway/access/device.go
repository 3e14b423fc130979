package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Proof is what a device sends when it connects: its public key, and its signature
// over its description and the nonce of the connection.
type Proof struct {
	ID        string // SHA-256 of the public key, in hex
	PublicKey string // 32 bytes, base64url
	Signature string // base64url
	SignedAt  int64  // milliseconds
	Nonce     string

	ClientID, Mode, Role string
	Scopes               []string // as they were sent
	Platform, Family     string
	// Tokens are the token texts that the signature may cover; "" is none.
	Tokens []string
}

// ProofError is why a device's proof was refused. Reason is the protocol's word for
// it.
type ProofError struct{ Reason, Message string }

func (e *ProofError) Error() string { return e.Message }

// Is makes every ProofError an ErrDenied.
func (e *ProofError) Is(target error) bool { return target == ErrDenied }

// ErrNotPaired is returned for a device that proved its key and is not approved
// yet.
var ErrNotPaired = errors.New("the device is not paired")

const (
	// MaxClockSkew is how far a device's clock may differ from the gateway's.
	MaxClockSkew = 2 * time.Minute
	// maxField bounds each field of a device's description.
	maxField  = 512
	maxScopes = 64
)

// check verifies a proof against the nonce of its connection.
func (p *Proof) check(nonce string, now time.Time) (ed25519.PublicKey, error) {
	key, err := decode(p.PublicKey)
	switch id := sha256.Sum256(key); {
	case p.oversized():
		return nil, &ProofError{"device-identity", "device identity too long"}
	case err != nil || len(key) != ed25519.PublicKeySize:
		return nil, &ProofError{"device-public-key", "device public key invalid"}
	case p.ID != hex.EncodeToString(id[:]):
		return nil, &ProofError{"device-id-mismatch", "device identity mismatch"}
	case now.Sub(time.UnixMilli(p.SignedAt)).Abs() > MaxClockSkew:
		return nil, &ProofError{"device-signature-stale", "device signature expired"}
	case strings.TrimSpace(p.Nonce) == "":
		return nil, &ProofError{"device-nonce-missing", "device nonce required"}
	case nonce == "" || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(p.Nonce)), []byte(nonce)) != 1:
		return nil, &ProofError{"device-nonce-mismatch", "device nonce mismatch"}
	case !p.signed(key):
		return nil, &ProofError{"device-signature", "device signature invalid"}
	}
	return key, nil
}

func (p *Proof) oversized() bool {
	for _, text := range append([]string{p.ID, p.PublicKey, p.Signature, p.Nonce, p.ClientID, p.Mode, p.Role, p.Platform, p.Family}, p.Scopes...) {
		if len(text) > maxField || strings.Contains(text, "|") { // the parts of what is signed must not run together
			return true
		}
	}
	return len(p.Scopes) > maxScopes
}

// signed reports whether the key signed one of the known payload forms.
func (p *Proof) signed(key ed25519.PublicKey) bool {
	signature, err := decode(p.Signature)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return false
	}
	tokens := p.Tokens
	if len(tokens) == 0 {
		tokens = []string{""}
	}
	for _, token := range tokens {
		for _, version := range []string{"v3", "v2"} {
			if ed25519.Verify(key, []byte(p.payload(version, token)), signature) {
				return true
			}
		}
	}
	return false
}

func (p *Proof) payload(version, token string) string {
	parts := []string{version, p.ID, p.ClientID, p.Mode, p.Role, strings.Join(p.Scopes, ","), strconv.FormatInt(p.SignedAt, 10), token, strings.TrimSpace(p.Nonce)}
	if version == "v3" {
		parts = append(parts, normalize(p.Platform), normalize(p.Family))
	}
	return strings.Join(parts, "|")
}

// normalize returns a description as it is signed: trimmed, ASCII letters in lower
// case.
func normalize(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(text))
}

// decode decodes base64 of either alphabet, padded or not.
func decode(text string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	return base64.RawURLEncoding.DecodeString(text)
}
