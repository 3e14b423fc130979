package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/browserimage"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// attackSite is an installation with a browser that attacks are tried on. It reaches
// shop.example and bank.example, and is used by the tool of an agent.
type attackSite struct {
	*toolSite
	who  provide.Subject
	used *browsers.Session
}

// browserAttacks are the attacks on browsers, by their numbers. Each leaves a browser that
// works to the next.
var browserAttacks = []struct {
	name string
	try  func(*testing.T, *attackSite)
}{
	{"17_CallsHome", attackCallsHome}, {"17_Devices", attackDevices},
	{"01_Renderer", attackRenderer}, {"02_Namespaces", attackNamespaces}, {"03_OtherBoxes", attackOtherBoxes},
	{"05_Around", attackAround}, {"06_Names", attackNames}, {"07_Proxy", attackProxy},
	{"08_Documents", attackDocuments}, {"08_Schemes", attackSchemes}, {"09_Uploads", attackUploads}, {"10_Downloads", attackDownloads}, {"11_Text", attackText},
	{"12_Popups", attackPopups}, {"12_Redirects", attackRedirects}, {"12_Dialogs", attackDialogs}, {"12_Workers", attackWorkers}, {"12_Busy", attackBusy}, {"12_Memory", attackMemory},
	{"13_Cookies", attackCookies}, {"16_Scripts", attackScripts}, {"18_Addresses", attackAddresses},
	{"15_Hung", attackHung}, {"14_LeftProfile", attackLeftProfile}, {"14_Killed", attackKilled}, {"04_Floods", attackFloods},
}

// linuxPlace returns an installation on the Linux runtime with Chromium of this machine.
func linuxPlace(t *testing.T) *site {
	t.Helper()
	need.Time(t, "it starts a browser")
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	s := newSiteOn(t, noEngine)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	return s
}

// dockerPlace returns an installation on Docker with the image of browsers.
func dockerPlace(t *testing.T) *site {
	t.Helper()
	need.Time(t, "it builds an image with Chromium")
	s := newSiteOn(t, enginetest.Docker(t))
	s.useBrowserImage(browserimage.Build(t, s.open()))
	return s
}

// podmanPlace returns an installation on Podman with the image of browsers.
func podmanPlace(t *testing.T) *site {
	t.Helper()
	image := browserimage.OnPodman(t, dockerPlace(t).open())
	s := newSiteOn(t, enginetest.Podman(t))
	s.env["CONTAINER_HOST"], s.env["DOCKER_HOST"] = s.env["DOCKER_HOST"], noEngine
	s.set("agents.defaults.sandbox.backend", "podman")
	s.useBrowserImage(image)
	return s
}

// useBrowserImage has sandboxes of an engine made of the images that tests have.
func (s *site) useBrowserImage(image string) {
	s.set("agents.defaults.sandbox.docker.image", enginetest.Image)
	s.set("agents.defaults.sandbox.browser.image", image)
	s.set("agents.defaults.sandbox.browser.containerPrefix", s.tag+"-browser-")
}

// newAttackSite returns a site at a place.
func newAttackSite(t *testing.T, at *site) *attackSite {
	t.Helper()
	s := &attackSite{who: session("tool")}
	s.toolSite = newToolSiteOn(t, at, func(s *toolSite) {
		s.set("agents.defaults.sandbox.scope", "agent")
		s.set("agents.defaults.sandbox.egress.allow", []any{"bank.example:80", "frames.example:80", "shop.example:80", "shop.example:443"})
		s.set("agents.defaults.sandbox.browser.downloads.maxFiles", 6)
		s.set("agents.defaults.sandbox.browser.downloads.maxBytes", "4k")
		s.set("agents.defaults.sandbox.browser.memory", "768m")
		s.set("agents.defaults.sandbox.browser.dangerouslyIgnoreCertificates", true)
		direct := map[string]any{"mode": "enforce", "allow": []any{ownName(t) + ":443"}}
		s.set("agents.list", []any{
			map[string]any{"id": "main"}, map[string]any{"id": "windowed", "sandbox": map[string]any{"browser": map[string]any{"headless": false}}},
			map[string]any{"id": "direct", "sandbox": map[string]any{"browser": map[string]any{"egress": direct}}},
		})
	})
	s.used = useBrowser(t, s.app, s.who)
	return s
}

// windowed returns the site with the browser of another agent, which has a window.
func (s *attackSite) windowed(t *testing.T) *attackSite {
	t.Helper()
	other := *s.toolSite
	w := &attackSite{toolSite: &other, who: provide.Subject{SessionKey: "agent:windowed:tool"}}
	var err error
	if w.box, err = s.app.Agents.Tools(t.Context(), w.who, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.box.Release)
	w.used = useBrowser(t, s.app, w.who)
	return w
}

// started returns the running browser.
func (s *attackSite) started(t *testing.T) *browsers.Started {
	t.Helper()
	return startBrowser(t, s.used)
}

// opened opens a page in a tab of its own, which is closed with the test.
func (s *attackSite) opened(t *testing.T, url string) *browser.Page {
	t.Helper()
	b := s.started(t)
	page, err := b.NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		page.Leave()
		_ = b.CloseTab(t.Context(), page.ID) // the browser may have ended
	})
	if _, err := page.Navigate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	return page
}

// evaluated returns what a script says in a page.
func (s *attackSite) evaluated(t *testing.T, url, script string) string {
	t.Helper()
	said, err := s.opened(t, url).Evaluate(t.Context(), script, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// try tries the attacks whose names begin with one of the numbers; without any, all.
func (s *attackSite) try(t *testing.T, numbers ...string) {
	t.Helper()
	for _, a := range browserAttacks {
		wanted := len(numbers) == 0
		for _, n := range numbers {
			wanted = wanted || strings.HasPrefix(a.name, n)
		}
		if wanted {
			t.Run(a.name, func(t *testing.T) {
				defer s.closeTabs(t)
				a.try(t, s)
				s.closeTabs(t)
				s.works(t)
			})
		}
	}
}

// closeTabs closes all tabs but one, with which a browser with a window would end. It waits
// until few are left, as a tab that is closed counts until its page has ended; pages that hang
// may stay longer.
func (s *attackSite) closeTabs(t *testing.T) {
	t.Helper()
	b := s.started(t)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		tabs, err := b.Tabs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range tabs[min(1, len(tabs)):] {
			_ = b.CloseTab(t.Context(), tab.ID) // it may be gone
		}
		if len(tabs) <= browser.MaxTabs/2 {
			return
		}
	}
}

// TestAttackBrowser tries all attacks on the Linux runtime.
func TestAttackBrowser(t *testing.T) { newAttackSite(t, linuxPlace(t)).try(t) }

// TestAttackBrowserOnDocker tries all attacks on Docker, and on Chromium with a window
// those that differ there.
func TestAttackBrowserOnDocker(t *testing.T) {
	t.Parallel()
	s := newAttackSite(t, dockerPlace(t))
	s.try(t)
	t.Run("windowed", func(t *testing.T) { s.windowed(t).try(t, "01", "05", "08", "16", "17") })
}

// TestAttackBrowserOnPodman tries the attacks on Podman that its filter, its namespaces, its
// limits and its network have a part in.
func TestAttackBrowserOnPodman(t *testing.T) {
	t.Parallel()
	newAttackSite(t, podmanPlace(t)).try(t, "01", "02", "03", "05", "06", "07", "08_D", "12", "14", "15", "17")
}

// TestAttackBrowserAsUser tries the attacks as an ordinary user.
func TestAttackBrowserAsUser(t *testing.T) {
	t.Parallel()
	need.Time(t, "it starts browsers as another user")
	out, err := otheruser.Rerun(t, "^(TestAttackBrowser|TestAttackBrowser1[34]_.*|TestBrowserProfile)$")
	if err != nil || strings.Count(out, "--- PASS: TestAttackBrowser") != len(browserAttacks)+3 {
		t.Errorf("%v\n%s", err, out)
	}
}
