package provide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/contentpolicy/leaks"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/testkit/need"
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
		State: state, Dir: filepath.Join(state, "overlay", "x", "0"), Base: base, Target: mount.Target, Want: overlay.Copy, Hide: hideFrom(&plan.Plan{}, mount, nil),
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

// awsKey looks like a key and opens nothing.
const awsKey = "AKIA" + "Z7RTQ2MK3NPLX4VB"

// Small files that git does not track are scanned, whatever their names.
func TestScannedSecretsAreHidden(t *testing.T) {
	base, state := filepath.Join(t.TempDir(), "base"), t.TempDir()
	line := "key = " + awsKey + "\n"
	files := map[string]string{
		"notes.txt": line, "deep/er/config.py": "import os\n" + line, "plain.txt": "hello\n", "tracked.txt": line, "empty": "",
		"node_modules/x/test.js": line, "large.bin": line + strings.Repeat("x", maxSecret),
	}
	for name, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Join(base, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(base, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", `cd "$1"; git init -q .; git add tracked.txt`, "sh", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mount := policy.Mount{Source: base, Target: "/workspace", Kind: policy.MountWorkspace}
	tree, err := overlay.Prepare(t.Context(), overlay.Request{
		State: state, Dir: filepath.Join(state, "overlay", "x", "0"), Base: base, Target: mount.Target, Want: overlay.Copy, Hide: hideFrom(&plan.Plan{}, mount, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		_, err := os.Stat(filepath.Join(tree.Source(), name))
		if hidden := name == "notes.txt" || name == "deep/er/config.py"; errors.Is(err, fs.ErrNotExist) != hidden {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// More secrets than one scanner reports are all hidden.
func TestManyScannedSecretsAreHidden(t *testing.T) {
	need.Time(t, "it hides hundreds of files")
	base, state := filepath.Join(t.TempDir(), "base"), t.TempDir()
	const many = leaks.MaxFound + 50
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if err := os.WriteFile(filepath.Join(base, fmt.Sprint(i)), []byte("key = "+awsKey+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mount := policy.Mount{Source: base, Target: "/workspace", Kind: policy.MountWorkspace}
	tree, err := overlay.Prepare(t.Context(), overlay.Request{
		State: state, Dir: filepath.Join(state, "overlay", "x", "0"), Base: base, Target: mount.Target, Want: overlay.Copy, Hide: hideFrom(&plan.Plan{}, mount, nil),
	})
	if err != nil || len(tree.Hidden) != many {
		t.Errorf("%d of %d are hidden: %v", len(tree.Hidden), many, err)
	}
}

// Without a scanner there is no overlay, and beyond the bounds files are counted.
func TestScanOfSecretsIsBounded(t *testing.T) {
	broken := newSecretScan(t.Context())
	broken.start = func(context.Context) (*leaks.Scanner, error) { return nil, leaks.ErrMissing }
	broken.err = broken.scan("x", []byte("x"))
	if _, err := broken.finish(); !errors.Is(err, leaks.ErrMissing) {
		t.Errorf("a scanner that does not start: %v", err)
	}
	for _, full := range []*secretScan{{files: maxScannedFiles}, {bytes: maxScannedBytes}} {
		var log bytes.Buffer
		full.add(overlay.Candidate{Path: "x", Size: 1})
		full.warn(slog.New(slog.NewTextHandler(&log, nil)), "/base")
		if full.skipped != 1 || !strings.Contains(log.String(), `"not looked at"=1`) {
			t.Errorf("%d are skipped, the log has %s", full.skipped, &log)
		}
	}
}
