package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/secret"
)

func TestPEM(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	for _, test := range []struct {
		name, content string
		mode          os.FileMode
		err           string
	}{
		{"a key", key, 0o600, ""},
		{"others can read it", key, 0o640, "lets others at it"},
		{"no key", "hello-canary\n", 0o600, "no PEM block"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key.pem")
			if err := os.WriteFile(path, []byte(test.content), test.mode); err != nil {
				t.Fatal(err)
			}
			got, err := secret.PEM{Path: path}.Read(t.Context())
			switch {
			case test.err == "" && (err != nil || got.Reveal() != key):
				t.Errorf("%q, %v", got.Reveal(), err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "canary")):
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}
