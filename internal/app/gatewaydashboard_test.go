package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// webModules returns where scripts/sdks.sh installed what builds and tests the pages.
func webModules(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "dashboard").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "playwright-core")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up dashboard", err))
	}
	return modules
}

// sectionFound is what a section of the test in the browser found.
type sectionFound struct {
	Name     string
	Failures []string
	Ms       int
}

// The pages are shown by a real browser, with real runs and sandboxes behind them:
// full, empty, refused, with errors, slow and of ten thousand rows, with the keyboard
// alone; they withstand pages of other sites and what agents write.
func TestDashboard(t *testing.T) {
	t.Parallel()
	need.Time(t, "it runs a browser and packages of npm")
	grouptest.Need(t)
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	modules := webModules(t)
	d := newDashboardSite(t)
	if dir := os.Getenv("ATOLL_DASHBOARD_SHOTS"); dir != "" { // scripts/dashboard-screenshots.sh
		d.past()
		t.Logf("%s", d.browse(modules, "shots.mjs", "DASHBOARD_SHOTS="+dir))
		return
	}
	d.crowd()
	d.given["restart"] = d.restarts()
	d.sections(modules, "main.mjs", 10)
	d.crowdedLists()
	d.sections(modules, "rows.mjs", 2)
	d.searchFor("admin", "reader", "crowd", "code")
}

// restarts returns the address of a server that restarts the gateway for each request.
func (d *dashboardSite) restarts() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		d.g.signal(syscall.SIGTERM)
		if err := d.g.ended(); err != nil {
			d.t.Errorf("the gateway: %v", err)
		}
		d.g = d.gatewayAt(d.g.address, time.Minute)
	}))
	d.t.Cleanup(server.Close)
	return server.URL
}

// sections runs a program with at least so many sections, and reports what they found.
func (d *dashboardSite) sections(modules, program string, least int) {
	d.t.Helper()
	out := d.browse(modules, program)
	_, found, ok := bytes.Cut(out, []byte("\nDASHBOARD "))
	var sections []sectionFound
	if !ok || json.Unmarshal(found, &sections) != nil || len(sections) < least {
		d.t.Fatalf("%s", out)
	}
	for _, section := range sections {
		d.t.Run(section.Name, func(t *testing.T) {
			t.Logf("%d ms", section.Ms)
			for _, failure := range section.Failures {
				t.Error(failure)
			}
		})
	}
}

// browse logs in with a code and runs a program of testdata/dashboard.
func (d *dashboardSite) browse(modules, program string, env ...string) []byte {
	d.t.Helper()
	code, err := d.g.CreateLogInCode(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.given["code"] = code.Code
	given, err := json.Marshal(d.given)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.runNode(modules, filepath.Join("dashboard", program), append([]string{
		"DASHBOARD_URL=http://" + d.g.address + dashboard.Prefix, "DASHBOARD_GIVEN=" + string(given), "DASHBOARD_CHROMIUM=/usr/lib/chromium/chromium-headless-shell",
	}, env...)...)
}

// runNode runs a program of testdata, beside the others of its directory, with packages of npm.
func (s *site) runNode(modules, program string, env ...string) []byte {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(filepath.Join("testdata", program)))); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), "node", filepath.Base(program))
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("%s: %v", program, err)
	}
	return out
}

// searchFor reports files of the installation that hold what was given under these names.
func (d *dashboardSite) searchFor(names ...string) {
	d.t.Helper()
	for path, data := range d.filesBelow(d.state) {
		for _, name := range names {
			if text, _ := d.given[name].(string); text != "" && bytes.Contains(data, []byte(text)) {
				d.t.Errorf("%s holds the %s", path, name)
			}
		}
	}
}
