package provide

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// No secret of the base is in what a sandbox sees of it; what git tracks is there.
//
// Seen to fail without Hide.
func TestInvariant_BASE_SECRETS_HIDDEN(t *testing.T) {
	const secret = "canary-of-the-base"
	base, state := filepath.Join(t.TempDir(), "base"), t.TempDir()
	script := `git init -q "$1" && cd "$1" && git config user.name p && git config user.email p@localhost && echo public > .env.shared && git add -f .env.shared && git commit -qm one
git config remote.o.url https://u:` + secret + `@h/x && git config http.extraHeader ` + secret + ` && mkdir -p web .git/git-crypt keys vendor/x && git init -q vendor/x && git -C vendor/x config credential.helper ` + secret + `
for f in .env web/.env.local .netrc .git-credentials .git/credentials .git/git-crypt/key keys/id_ed25519; do echo ` + secret + ` > $f; done
echo "//r/:_authToken=` + secret + `" > .npmrc; printf -- '-----BEGIN PRIVATE KEY-----\n` + secret + `\n' > keys/server.pem; echo hello > README`
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", script, "sh", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mount := policy.Mount{Source: base, Target: "/workspace", Kind: policy.MountWorkspace}
	tree, err := overlay.Prepare(t.Context(), overlay.Request{
		State: state, Dir: filepath.Join(state, "overlay", "x", "0"), Base: base, Target: mount.Target, Want: overlay.Copy, Hide: hideFrom(&plan.Plan{}, mount),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(tree.Source(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("a secret is visible in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"README", ".env.shared", ".git/config", ".git/HEAD", "vendor/x/.git/config"} {
		if _, err := os.Stat(filepath.Join(tree.Source(), name)); err != nil {
			t.Errorf("%s is not visible", name)
		}
	}
}

// Files that hold secrets are told by their names, and some by what is in them.
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
