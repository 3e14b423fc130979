package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/secret/tokencache"
)

// Spec describes a token to create.
type Spec struct {
	Name    string        `json:"name,omitempty"` // for people
	Scope   Scope         `json:"scope"`
	Account string        `json:"account,omitempty"`
	Quota   Quota         `json:"quota,omitzero"`
	Life    time.Duration `json:"-"` // 0 is DefaultLife
	E2B     bool          `json:"-"` // its text has the form that E2B's clients want
}

// Token is a stored token, without its text.
type Token struct {
	ID string `json:"id"`
	Spec
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires"`
	Revoked  *time.Time `json:"revoked,omitempty"`
	LastUsed *time.Time `json:"lastUsed,omitempty"`
}

// State returns "active", "expired" or "revoked".
func (t *Token) State(now time.Time) string { return tokencache.State(now, t.Expires, t.Revoked) }

func (t *Token) caller() *Caller {
	return &Caller{Token: t.ID, Name: t.Name, Scope: t.Scope, Account: t.Account, Quota: t.Quota}
}

// The bounds of a token's life.
const (
	DefaultLife = 90 * 24 * time.Hour
	MaxLife     = 2 * 366 * 24 * time.Hour
)

// ErrUnknown is returned for an id that no token has.
var ErrUnknown = errors.New("no gateway token has this id")

var (
	accountForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$`)
	nameForm    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9 ._:@/+-]{0,127}$`)
)

// Check returns why no token can be made of the spec.
func (s *Spec) Check() error {
	switch {
	case s.Scope.Check() != nil:
		return s.Scope.Check()
	case s.Account != "" && !accountForm.MatchString(s.Account):
		return errors.New("an account is 1 to 128 letters, digits and ._@+-, beginning with a letter or digit")
	case s.Name != "" && !nameForm.MatchString(s.Name):
		return errors.New("a token's name is 1 to 128 letters, digits, spaces and ._:@/+-, beginning with a letter or digit")
	case s.Quota.Runs < 0 || s.Quota.Sandboxes < 0 || s.Quota.Requests < 0 || s.Quota.MicroUSD < 0:
		return errors.New("a quota is 0, for none, or more")
	case s.Quota.MicroUSD > 0 && s.Account == "":
		return errhint.With(errors.New("money is counted by account, and this token has none"), "name it with --account")
	case s.Life < 0 || s.Life > MaxLife:
		return fmt.Errorf("a gateway token lives at most %d days", int(MaxLife.Hours()/24))
	}
	return nil
}

const (
	prefix      = "atollgw_"
	idWidth     = 26 // of rand.Text: 130 bits
	secretBytes = 32
	secretWidth = 52 // of base32
	// TokenLength is the length of a token's text.
	TokenLength = len(prefix) + idWidth + 1 + secretWidth
)

// mint generates a token's text: an id for the lookup and 256 random bits.
func mint(prefix string) (id, proof, text string) {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	id, proof = rand.Text(), base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
	return id, proof, prefix + id + "_" + proof
}

// split returns the two parts of a token's text.
func split(prefix, text string) (id, proof string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != idWidth+1+secretWidth || rest[idWidth] != '_' {
		return "", "", false
	}
	id, proof = rest[:idWidth], rest[idWidth+1:]
	return id, proof, isText(id) && isText(proof)
}

// The form of tokens for E2B's clients, which is e2b_ and 64 hexadecimal digits: 128 bits
// of an id for the lookup, which no other token has the length of, and 128 random bits.
const (
	prefixE2B  = "e2b_"
	widthOfE2B = 32 // digits of each half
)

// mintE2B is mint for a token of E2B's form.
func mintE2B() (id, proof, text string) {
	var b [widthOfE2B]byte
	_, _ = rand.Read(b[:]) // never fails
	digits := hex.EncodeToString(b[:])
	return digits[:widthOfE2B], digits[widthOfE2B:], prefixE2B + digits
}

// splitE2B is split for a token of E2B's form.
func splitE2B(text string) (id, proof string, ok bool) {
	digits, ok := strings.CutPrefix(text, prefixE2B)
	if !ok || len(digits) != 2*widthOfE2B || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", "", false
	}
	return digits[:widthOfE2B], digits[widthOfE2B:], true
}

// isE2B reports whether the token of an id has E2B's form.
func isE2B(id string) bool { return len(id) == widthOfE2B }

func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

func hash(id, proof string) [sha256.Size]byte { return sha256.Sum256([]byte(id + ":" + proof)) }
