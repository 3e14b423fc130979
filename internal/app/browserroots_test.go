package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
)

// testCompanyCA: pages with certificates that outbound.caFile signs are opened by both
// programs, and are refused without it.
func testCompanyCA(t *testing.T, s *browserSite) {
	s.set("agents.defaults.sandbox.browser.egress.upstream", s.net.Proxy)
	s.set("agents.defaults.sandbox.browser.egress.mode", "enforce")
	s.set("agents.defaults.sandbox.browser.egress.allow", []any{"shop.example:443"})
	if _, err := openSecure(t, s); err == nil || !strings.Contains(err.Error(), "ERR_CERT_AUTHORITY_INVALID") {
		t.Errorf("without outbound.caFile: %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, append([]byte("# of the company\n"), s.net.CA...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.set("outbound.caFile", file)
	for _, headless := range []bool{true, false} {
		s.set("agents.defaults.sandbox.browser.headless", headless)
		if state, err := openSecure(t, s); err != nil || state.Title != "Shop" {
			t.Errorf("headless %v: %+v, %v", headless, state, err)
		}
	}
}

// openSecure opens the shop over TLS in a browser of a new process.
func openSecure(t *testing.T, s *browserSite) (*browser.State, error) {
	t.Helper()
	a := s.open()
	removeAfter(t, a)
	used, err := a.Browsers.Use(session("secure"))
	if err != nil {
		t.Fatal(err)
	}
	defer used.Release()
	page, err := startBrowser(t, used).NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := used.Stop(); err != nil {
			t.Error(err)
		}
	}()
	return page.Navigate(t.Context(), "https://shop.example/")
}

// TestBrowserNoCertutil: where certutil is missing, a browser that must trust certificates
// of a company does not start, and one that may do without says so.
func TestBrowserNoCertutil(t *testing.T) {
	s := newSite(t)
	box := s.provide(s.open(), session("roots"))
	o := browser.Options{Roots: [][]byte{{1}}}
	if _, err := browser.Start(t.Context(), box.Machine, o); !errors.Is(err, browser.ErrNoCertutil) || !strings.Contains(errhint.Of(err), "libnss3-tools") {
		t.Error(err)
	}
	var told error
	o.Warn = func(err error) { told = err }
	if _, err := browser.Start(t.Context(), box.Machine, o); !errors.Is(err, browser.ErrNoProgram) || !errors.Is(told, browser.ErrNoCertutil) {
		t.Errorf("%v, told %v", err, told)
	}
}
