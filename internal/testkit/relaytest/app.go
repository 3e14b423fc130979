package relaytest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// App is a GitHub App's part of the API: it gives tokens of installations to who
// can prove to be the app.
type App struct {
	URL string
	Key string // PEM
	// Asked are the repositories that each token was for.
	Asked [][]string
}

// NewApp starts a server that makes tokens which hub accepts.
func NewApp(t *testing.T, hub *GitHub, id string, installation int64) *App {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &App{Key: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))}
	mux := http.NewServeMux()
	mux.HandleFunc(fmt.Sprintf("POST /app/installations/%d/access_tokens", installation), func(w http.ResponseWriter, r *http.Request) {
		if problem := proven(&key.PublicKey, id, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); problem != "" {
			refuse(w, http.StatusUnauthorized, problem)
			return
		}
		var asked struct {
			Repositories []string
			Permissions  map[string]string
		}
		hub.mu.Lock()
		defer hub.mu.Unlock()
		if !hub.read(w, r, &asked) {
			return
		}
		a.Asked = append(a.Asked, asked.Repositories)
		token := fmt.Sprintf("ghs_canary%030d", len(a.Asked))
		hub.Tokens[token] = true
		reply(w, http.StatusCreated, map[string]any{"token": token, "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "permissions": asked.Permissions})
	})
	mux.HandleFunc("DELETE /installation/token", hub.endToken)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a.URL = server.URL
	return a
}

// proven checks a signed claim as GitHub does: who, until when, by which key.
func proven(key *rsa.PublicKey, id, token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "A JSON web token could not be decoded"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil {
		return "A JSON web token could not be decoded"
	}
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Iss != id {
		return "Integration not found"
	}
	now := time.Now().Unix()
	if claims.Iat > now || claims.Exp < now || claims.Exp-now > 600 {
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}
