package token

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/secret/tokencache"
)

// Identity is the subject of a token's calls.
type Identity struct {
	Account string   `json:"account"`
	Agent   string   `json:"agent"`
	Session string   `json:"session"`
	Run     string   `json:"run"`
	Attempt string   `json:"attempt,omitempty"`
	Graph   string   `json:"graph,omitempty"`
	Trace   string   `json:"trace,omitempty"`
	Models  []string `json:"models,omitempty"` // names or patterns; none: those of the agent
}

// Token is a token without its text.
type Token struct {
	ID string `json:"id"`
	Identity
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// State returns the state of a token at a time: "active", "expired" or "revoked".
func (t *Token) State(now time.Time) string { return tokencache.State(now, t.Expires, t.Revoked) }

// The bounds of a token's life.
const (
	DefaultLife = time.Hour
	MaxLife     = 7 * 24 * time.Hour
)

// The reasons to refuse a token. Callers get ErrInvalid for all of them.
var (
	ErrInvalid = errors.New("the session token is not valid")
	ErrExpired = fmt.Errorf("%w: it has expired", ErrInvalid)
	ErrRevoked = fmt.Errorf("%w: it was revoked", ErrInvalid)
	ErrUnknown = errors.New("no token has this id")
)

const (
	prefix    = "atoll_"
	partWidth = 26 // of rand.Text: 130 bits
	// Width is how long a token's text is.
	Width = len(prefix) + partWidth + 1 + partWidth
)

// nameForm is the form of a part of an identity, which goes into headers and rows.
var nameForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,255}$`)

func (i *Identity) check() error {
	for name, value := range map[string]string{"account": i.Account, "agent": i.Agent, "session": i.Session, "run": i.Run,
		"attempt": i.Attempt, "graph": i.Graph, "trace": i.Trace} {
		if value != "" && !nameForm.MatchString(value) {
			return fmt.Errorf("the %s of a session token must be 1 to 256 letters, digits and ._:@/+-, beginning with a letter or digit", name)
		}
	}
	if i.Session == "" {
		return errors.New("a session token needs a session")
	}
	for _, model := range i.Models {
		if len(model) > 256 || strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("a model's name must be visible ASCII characters")
		}
	}
	return nil
}

// mint makes a token's text: an id to find it by and a secret to prove it.
func mint() (id, secret, text string) {
	id, secret = rand.Text(), rand.Text()
	return id, secret, prefix + id + "_" + secret
}

// split takes a token's text apart.
func split(text string) (id, secret string, ok bool) {
	if len(text) != Width || !strings.HasPrefix(text, prefix) || text[len(prefix)+partWidth] != '_' {
		return "", "", false
	}
	id, secret = text[len(prefix):len(prefix)+partWidth], text[len(prefix)+partWidth+1:]
	return id, secret, isText(id) && isText(secret)
}

func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

func hash(id, secret string) [sha256.Size]byte { return sha256.Sum256([]byte(id + ":" + secret)) }
