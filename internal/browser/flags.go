package browser

import (
	"cmp"
	"fmt"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/egress"
)

// The size of a page.
const (
	Width  = 1280
	Height = 800
)

// maxCache is how many bytes of pages the browser keeps on its disk.
const maxCache = 32 << 20

// flags are the arguments of the browser. Everything goes through the proxy of egress,
// requests to loopback addresses too, so that no page reaches the control port; what does
// not use a proxy (QUIC, WebRTC over UDP) is off. Each site has processes of its own, which
// chromium-headless-shell does not do by itself. Chromium does not call its makers. kept
// is the directory of a profile that is kept, "" if it ends with the browser.
func flags(s *browserkeys.Browser, kept string) []string {
	width, height := s.Size()
	all := []string{
		fmt.Sprintf("--remote-debugging-port=%d", controlPort), "--user-data-dir=" + cmp.Or(kept, profileDir), fmt.Sprintf("--disk-cache-size=%d", maxCache),
		fmt.Sprintf("--window-size=%d,%d", width, height), "--window-position=0,0",
		fmt.Sprintf("--proxy-server=http://127.0.0.1:%d", egress.ProxyPort), "--proxy-bypass-list=<-loopback>",
		"--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-domain-reliability", "--disable-client-side-phishing-detection", "--disable-breakpad",
		"--disable-default-apps", "--disable-extensions", "--metrics-recording-only", "--disable-gpu", "--mute-audio", "--password-store=basic",
		"--site-per-process", "--deny-permission-prompts", "--hide-crash-restore-bubble", "--disable-features=Translate,MediaRouter,OptimizationHints,DnsOverHttps,AsyncDns",
	}
	if s.Windowed() {
		all = append(all, quiet()...)
	} else {
		all = append(all, "--headless")
	}
	if kept != "" && s.Shell() {
		all = append(all, writesCookies)
	}
	if s.NoSandbox {
		all = append(all, "--no-sandbox")
	}
	if s.IgnoreCertificates {
		all = append(all, "--ignore-certificate-errors")
	}
	return append(all, "about:blank")
}

// writesCookies has chromium-headless-shell write its cookies when it ends: in a process of
// its own, what loads pages is ended before it has. Neither is in Chromium's own sandbox.
const writesCookies = "--enable-features=NetworkServiceInProcess2"

// quiet returns the arguments that set the addresses of Google's services, which Chromium
// with a window calls by itself, to a port of loopback on which nothing listens.
func quiet() []string {
	const nowhere = "http://127.0.0.1:1/"
	return []string{
		"--gaia-url=" + nowhere, "--google-apis-url=" + nowhere, "--component-updater=url-source=" + nowhere, "--variations-server-url=" + nowhere,
		"--google-base-url=" + nowhere, "--apps-gallery-update-url=" + nowhere, "--disable-search-engine-choice-screen",
	}
}
