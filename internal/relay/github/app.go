package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
)

// Credential gives a token for one repository, for one operation. Done is
// called when it is over, and ends the token if it was made for it.
type Credential interface {
	Token(ctx context.Context, owner, repo string) (token secret.Value, done func(context.Context) error, err error)
}

// Token is a credential that is there all the time, like GITHUB_TOKEN.
type Token struct{ Source secret.Source }

// Token reads it.
func (t Token) Token(ctx context.Context, _, _ string) (secret.Value, func(context.Context) error, error) {
	value, err := t.Source.Read(ctx)
	return value, func(context.Context) error { return nil }, err
}

// App is an installation of a GitHub App: each operation gets a token for its
// repository alone, with no more rights than it needs, which ends with it.
type App struct {
	Client       *Client
	ID           string // of the app
	Installation int64
	Key          secret.Source // its private key, PEM
	Now          func() time.Time
}

// Token makes a token.
func (a *App) Token(ctx context.Context, owner, repo string) (secret.Value, func(context.Context) error, error) {
	proof, err := a.signedJWT(ctx)
	if err != nil {
		return secret.Value{}, nil, fmt.Errorf("GitHub App %s: %w", a.ID, err)
	}
	body := map[string]any{"repositories": []string{repo}, "permissions": map[string]string{"contents": "write", "pull_requests": "write"}}
	var made struct {
		Token string `json:"token"`
	}
	path := fmt.Sprintf("/app/installations/%d/access_tokens", a.Installation)
	if _, err := a.Client.do(ctx, &call{method: http.MethodPost, path: path, body: body, auth: proof, into: &made}); err != nil {
		return secret.Value{}, nil, fmt.Errorf("GitHub App %s, token for %s/%s: %w", a.ID, owner, repo, err)
	}
	if made.Token == "" {
		return secret.Value{}, nil, fmt.Errorf("GitHub App %s: the server gave no token", a.ID)
	}
	token := secret.New(made.Token)
	return token, func(ctx context.Context) error { return a.revoke(ctx, token) }, nil
}

func (a *App) revoke(ctx context.Context, token secret.Value) error {
	_, err := a.Client.do(ctx, &call{method: http.MethodDelete, path: "/installation/token", auth: token})
	token.Wipe()
	return err
}

// signedJWT is the app's JSON web token, valid for some minutes.
func (a *App) signedJWT(ctx context.Context) (secret.Value, error) {
	pemText, err := a.Key.Read(ctx)
	if err != nil {
		return secret.Value{}, err
	}
	key, err := parseKey([]byte(pemText.Reveal()))
	if err != nil {
		return secret.Value{}, err
	}
	now := time.Now()
	if a.Now != nil {
		now = a.Now()
	}
	head := encode(map[string]any{"alg": "RS256", "typ": "JWT"})
	claims := encode(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": a.ID})
	sum := sha256.Sum256([]byte(head + "." + claims))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return secret.Value{}, errors.New("its private key cannot sign")
	}
	return secret.New(head + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)), nil
}

func encode(v map[string]any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseKey reads both forms that GitHub has given out.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errhint.With(errors.New("its private key is not PEM"), "use the file that GitHub gave when the key was made")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("its private key cannot be read")
	}
	if key, ok := key.(*rsa.PrivateKey); ok {
		return key, nil
	}
	return nil, errors.New("its private key is not an RSA key")
}
