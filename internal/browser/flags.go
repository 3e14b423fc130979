package browser

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/egress"
)

// The size of a page.
const (
	Width  = 1280
	Height = 800
)

// flags are the arguments of the browser. Everything goes through the proxy of egress,
// requests to loopback addresses too, so that no page reaches the control port; what does
// not use a proxy (QUIC, WebRTC over UDP) is off. Chromium does not call its makers.
func flags(s *browserkeys.Browser) []string {
	width, height := s.Size()
	all := []string{
		fmt.Sprintf("--remote-debugging-port=%d", controlPort), "--user-data-dir=" + profileDir,
		fmt.Sprintf("--window-size=%d,%d", width, height), "--window-position=0,0",
		fmt.Sprintf("--proxy-server=http://127.0.0.1:%d", egress.ProxyPort), "--proxy-bypass-list=<-loopback>",
		"--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-domain-reliability", "--disable-client-side-phishing-detection", "--disable-breakpad",
		"--disable-default-apps", "--disable-extensions", "--metrics-recording-only", "--disable-gpu", "--mute-audio", "--password-store=basic",
		"--deny-permission-prompts", "--disable-features=Translate,MediaRouter,OptimizationHints,DnsOverHttps,AsyncDns",
	}
	if s.Windowed() {
		all = append(all, quiet()...)
	} else {
		all = append(all, "--headless")
	}
	if s.NoSandbox {
		all = append(all, "--no-sandbox")
	}
	if s.IgnoreCertificates {
		all = append(all, "--ignore-certificate-errors")
	}
	return append(all, "about:blank")
}

// quiet are the arguments that have Chromium with a window ask nobody: the addresses of its
// makers' services are one at which nothing answers.
func quiet() []string {
	const nowhere = "http://127.0.0.1:1/"
	return []string{
		"--gaia-url=" + nowhere, "--google-apis-url=" + nowhere, "--component-updater=url-source=" + nowhere, "--variations-server-url=" + nowhere,
		"--google-base-url=" + nowhere, "--apps-gallery-update-url=" + nowhere, "--disable-search-engine-choice-screen",
	}
}
