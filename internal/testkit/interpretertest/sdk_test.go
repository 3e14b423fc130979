package interpretertest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/e2b"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// modules returns where scripts/sdks.sh installed the SDKs of E2B.
func modules(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../../scripts/sdks.sh", "dir", "e2b").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(dir, "@e2b", "code-interpreter")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up e2b", err))
	}
	return dir
}

// gateway serves an installation and returns its address.
func gateway(t *testing.T, a *app.App) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g, err := serve.Open(ctx, a.Parts(), serve.Options{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return g.Addresses()[0]
}

// The SDK of E2B for code, as it is published, works with the gateway with nothing but
// its environment changed.
func useSDK(t *testing.T, a *app.App) {
	t.Helper()
	dir, installed := t.TempDir(), modules(t)
	program, err := os.ReadFile("testdata/interpreter.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "interpreter.mjs"), program, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	url := "http://" + gateway(t, a) + e2b.Path
	key, _, err := serve.Tokens(a.Installation).Create(t.Context(), access.Spec{Scope: access.Run, Account: "acme", E2B: true})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(installed, ".bin", "node"), "interpreter.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "E2B_API_URL=" + url, "E2B_SANDBOX_URL=" + url, "E2B_API_KEY=" + key.Reveal()}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(`"failures":0`)) {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
