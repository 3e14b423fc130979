package browsertest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// modules returns where scripts/sdks.sh installed the programs that drive browsers.
func modules(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../../scripts/sdks.sh", "dir", "browsers").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(dir, "playwright-core")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up browsers", err))
	}
	return dir
}

// testClients runs Playwright, Puppeteer, chrome-remote-interface and Playwright's MCP
// server, as they are published, against the gateway.
func (s *site) testClients(t *testing.T) {
	need.Time(t, "it runs packages that npm has installed")
	installed, dir := modules(t), t.TempDir()
	program, err := os.ReadFile("testdata/clients.mjs")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "clients.mjs"), program, 0o600), os.Symlink(installed, filepath.Join(dir, "node_modules")))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(installed, ".bin", "node"), "clients.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GATEWAY=http://" + s.address, "TOKEN=" + s.tokens["operator"], "BROWSER=" + s.name, "SHOP=http://shop.example/"}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("all clients work")) {
		t.Errorf("%v\n%s", err, out)
	}
}
