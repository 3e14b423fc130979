// Package fetch gets one page of the web over a network that is not its own:
// that of a sandbox. It speaks HTTP and TLS itself and lets the network only
// look names up and connect, so that package outbound can check every address,
// also after redirects, and connect to exactly the address that it checked.
//
// Package readable turns a page into text.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// The limits of one page.
const (
	MaxBytes     = 4 << 20 // of a page, after decompression
	MaxRedirects = 5
	MaxURL       = 4 << 10
	Timeout      = 30 * time.Second // for all of it
)

// Fetcher gets pages.
type Fetcher struct {
	Network   outbound.Network  // that pages are fetched through
	Host      *outbound.Host    // its proxies, if UseProxy, and its certificates; nil: those of the system
	UseProxy  bool              // pages that the host has a proxy for are asked of the proxy, by the host
	Transport http.RoundTripper // judges and sends requests; nil: all public addresses are reached
	Permit    []netip.Prefix    // addresses that may be reached although they are not public
	UserAgent string
}

// Page is an answer with any status.
type Page struct {
	URL       *url.URL // after redirects
	Status    int
	MediaType string // "text/html"; "" if the server does not say
	Charset   string
	Body      []byte
	Truncated bool // there was more than MaxBytes
}

// Get fetches a page.
func (f *Fetcher) Get(ctx context.Context, address string) (*Page, error) {
	target, err := parse(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("no answer within %v", Timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", f.UserAgent)
	request.Header.Set("Accept", "text/html, text/plain, text/markdown, application/json;q=0.9, */*;q=0.5")
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, blame(ctx, err)
	}
	defer response.Body.Close()
	return read(ctx, response)
}

// blame returns the reason without the address that net/http puts around it.
func blame(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func read(ctx context.Context, response *http.Response) (*Page, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBytes+1))
	if err != nil {
		return nil, blame(ctx, err)
	}
	page := &Page{URL: response.Request.URL, Status: response.StatusCode, Body: body, Truncated: len(body) > MaxBytes}
	page.Body = body[:min(len(body), MaxBytes)]
	kind, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil {
		page.MediaType, page.Charset = kind, parameters["charset"]
	}
	return page, nil
}

// parse accepts the addresses of web pages and nothing else.
func parse(address string) (*url.URL, error) {
	if len(address) > MaxURL {
		return nil, fmt.Errorf("address is longer than %d bytes", MaxURL)
	}
	target, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("address is not a URL")
	}
	return target, check(target)
}

// check refuses what is not the address of a web page. It holds for redirects
// too.
func check(u *url.URL) error {
	port, portErr := strconv.Atoi(u.Port())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errhint.With(fmt.Errorf("address begins with %q", u.Scheme+":"), "only http:// and https:// can be fetched")
	case u.Hostname() == "":
		return errors.New("address names no host")
	case u.User != nil:
		return errors.New("address holds a user name or password")
	case u.Port() != "" && (portErr != nil || port < 1 || port > 65535):
		return fmt.Errorf("port %q is not a port", u.Port())
	case u.Port() != "" && port < 1024 && port != 80 && port != 443:
		return fmt.Errorf("port %d is not one of web servers", port)
	}
	return nil
}

// client returns a client whose requests are judged, or whose connections pass the rule
// of public addresses.
func (f *Fetcher) client() (*http.Client, error) {
	if f.Transport != nil {
		return &http.Client{Transport: f.Transport, CheckRedirect: redirect}, nil
	}
	host := f.Host
	if host == nil {
		var err error
		if host, err = outbound.NewHost(outbound.Options{}); err != nil {
			return nil, err
		}
	}
	return &http.Client{Transport: host.Guarded(f.Network, outbound.Public(f.Permit...), f.UseProxy), CheckRedirect: redirect}, nil
}

// redirect follows up to MaxRedirects and sends no Referer.
func redirect(next *http.Request, before []*http.Request) error {
	if len(before) > MaxRedirects {
		return fmt.Errorf("more than %d redirects", MaxRedirects)
	}
	next.Header.Del("Referer")
	if err := check(next.URL); err != nil {
		return fmt.Errorf("redirect: %w", err)
	}
	return nil
}
