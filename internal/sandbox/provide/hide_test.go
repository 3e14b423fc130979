package provide

import (
	"errors"
	"testing"
)

// Files that hold secrets are told by their names, and some by what is in them.
//
// BASE_SECRETS_HIDDEN
func TestHoldsSecret(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{".env", "", true}, {"web/.env.local", "", true}, {".ENV", "", true}, {".env.example", "", false}, {".env.sample.local", "", false}, {".envrc", "", false}, {"env", "", false},
		{".npmrc", "//registry/:_authToken=x", true}, {".npmrc", "save-exact=true", false}, {".pypirc", "password = x", true}, {".netrc", "", true},
		{"deep/id_ed25519", "", true}, {"id_ed25519.pub", "", false}, {"server.key", "-----BEGIN RSA PRIVATE KEY-----", true}, {"server.key", "translations", false}, {"ca.pem", "-----BEGIN CERTIFICATE-----", false},
		{"store.p12", "\x00", true}, {"terraform.tfstate", "", true}, {"config.json", `{"auths":{}}`, true}, {"config.json", "{}", false}, {"main.go", "password token private key", false},
	} {
		if got := holdsSecret(c.name, int64(len(c.text)), func(int64) ([]byte, error) { return []byte(c.text), nil }); got != c.want {
			t.Errorf("%s with %q: %v", c.name, c.text, got)
		}
	}
	if !holdsSecret("server.key", 1, func(int64) ([]byte, error) { return nil, errors.New("unreadable") }) {
		t.Error("a key that cannot be read is shown")
	}
}
