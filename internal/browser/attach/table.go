package attach

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/browser"
)

// refusedDomains are those of the whole browser and of its machine.
var refusedDomains = map[string]bool{
	"Tracing": true, "SystemInfo": true, "Memory": true, "Tethering": true, "Extensions": true, "PWA": true, "Cast": true,
}

// refusedMethods end the browser, or open ways past this table.
var refusedMethods = map[string]string{
	"Browser.close":                 "the browser is not this program's to end: close the connection",
	"Browser.crash":                 "the browser is not this program's to end",
	"Browser.crashGpuProcess":       "the browser is not this program's to end",
	"Browser.executeBrowserCommand": "it is not served here",
	"Target.exposeDevToolsProtocol": "pages get no way to the protocol",
	"Target.sendMessageToTarget":    "only flat sessions are served: attach with flatten",
	"Target.setRemoteLocations":     "it is not served here",
	"Target.openDevTools":           "it is not served here",
}

// answeredMethods are answered as if they were done: where downloads go is not the
// program's to say.
var answeredMethods = map[string]bool{"Browser.setDownloadBehavior": true, "Page.setDownloadBehavior": true}

// params are the parameters that judgements look at.
type params struct {
	URL              *string  `json:"url"`
	Flatten          bool     `json:"flatten"`
	AutoAttach       bool     `json:"autoAttach"`
	Files            []string `json:"files"`
	BrowserContextID string   `json:"browserContextId"`
	ProxyServer      string   `json:"proxyServer"`
	ProxyBypassList  string   `json:"proxyBypassList"`
	UniversalAccess  []string `json:"originsWithUniversalNetworkAccess"`
	Data             struct {
		Files []string `json:"files"`
	} `json:"data"`
}

// judgements decide about calls by their parameters; an error is a refusal.
var judgements = map[string]func(*Filter, *params) error{
	"Page.navigate":               judgePage,
	"Target.createTarget":         judgePage,
	"Fetch.continueRequest":       judgeRequest,
	"Network.loadNetworkResource": judgeRequest,
	"DOM.setFileInputFiles":       func(f *Filter, p *params) error { return f.judgeFiles(p.Files) },
	"Input.dispatchDragEvent":     func(f *Filter, p *params) error { return f.judgeFiles(p.Data.Files) },
	"Target.createBrowserContext": judgeContext,
	"Target.attachToTarget":       func(_ *Filter, p *params) error { return judgeFlat(p.Flatten) },
	"Target.setAutoAttach":        func(_ *Filter, p *params) error { return judgeFlat(p.Flatten || !p.AutoAttach) },
}

// judge returns why a call is refused; nil if it is passed on.
func (f *Filter) judge(m *message) error {
	domain, _, _ := strings.Cut(m.Method, ".")
	if refusedDomains[domain] {
		return fmt.Errorf("%s is refused: the domain %s is not served here", m.Method, domain)
	}
	if why := refusedMethods[m.Method]; why != "" {
		return fmt.Errorf("%s is refused: %s", m.Method, why)
	}
	named := struct {
		BrowserContextID jsontext.Value `json:"browserContextId"`
	}{}
	judgement := judgements[m.Method]
	if m.Params == nil {
		m.Params = jsontext.Value("{}")
	}
	if err := decode(m.Params, &named); err != nil || named.BrowserContextID == nil && judgement == nil {
		return err
	}
	var p params
	if err := decode(m.Params, &p); err != nil {
		return fmt.Errorf("%s is refused: its params have a wrong form", m.Method)
	}
	if f.contexts.isForeign(p.BrowserContextID, f) {
		return fmt.Errorf("%s is refused: the browser context is another program's", m.Method)
	}
	if judgement == nil {
		return nil
	}
	if err := judgement(f, &p); err != nil {
		return fmt.Errorf("%s is refused: %w", m.Method, err)
	}
	return nil
}

// judgePage refuses addresses that are no page of the web.
func judgePage(_ *Filter, p *params) error {
	if p.URL == nil || *p.URL == "" {
		return nil // Chromium's own default, about:blank, or its error
	}
	return browser.CheckURL(*p.URL)
}

// judgeRequest refuses that a request is made one for something else than the web.
func judgeRequest(_ *Filter, p *params) error {
	if p.URL == nil {
		return nil
	}
	if u, err := url.Parse(*p.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("only addresses with http and https are served")
	}
	return nil
}

// judgeFiles refuses files of the sandbox that were not put there to be uploaded.
func (f *Filter) judgeFiles(files []string) error {
	for _, name := range files {
		if f.staged == nil || !f.staged(name) {
			return errors.New("files are in the browser's sandbox, and this one was not put there to be uploaded; send its bytes instead")
		}
	}
	return nil
}

// judgeContext refuses a browser context with a network of its own: it would reach the
// ports of the sandbox.
func judgeContext(_ *Filter, p *params) error {
	if p.ProxyServer != "" || p.ProxyBypassList != "" || len(p.UniversalAccess) > 0 {
		return errors.New("the browser's only way out is its egress: leave the proxy out")
	}
	return nil
}

func judgeFlat(isFlat bool) error {
	if !isFlat {
		return errors.New("only flat sessions are served: say flatten")
	}
	return nil
}
