package service

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// fetcher sends requests of tools that work on the host, by the rules of a sandbox.
type fetcher struct {
	server    *egress.Server
	host      *outbound.Host
	log       func(*audit.EgressEvent) error
	subject   audit.Subject
	sandbox   string
	transport *http.Transport
}

// Transport returns what sends requests for a sandbox from the host: each is judged by the
// rules and recorded as one of a program inside would be. It is nil if there are only
// services.
func (e *Egress) Transport() http.RoundTripper {
	if e == nil || e.fetch == nil {
		return nil
	}
	return e.fetch
}

func (f *fetcher) open() {
	f.transport = f.host.Transport()
	f.transport.Proxy, f.transport.DialContext, f.transport.DisableKeepAlives = nil, f.dial, true
}

// RoundTrip implements http.RoundTripper.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	name, port := r.URL.Hostname(), 443
	if r.URL.Scheme == "http" {
		port = 80
	}
	if r.URL.Port() != "" {
		port, _ = strconv.Atoi(r.URL.Port()) // 0 is refused by the rules
	}
	rules := f.server.Policy()
	d := rules.Connect(name, port)
	if d.Allow && (d.Action == rule.Inspect || d.Action == rule.HTTP) {
		d = rules.Request(name, port, r.Method, r.URL.RequestURI())
	}
	event := &audit.EgressEvent{
		Time: time.Now(), Subject: f.subject, Sandbox: f.sandbox, Event: audit.EgressOpened, Name: name, Port: port, Mode: string(d.Action), Method: r.Method, Rule: d.Rule,
	}
	if !d.Allow {
		event.Event, event.Reason = audit.EgressDenied, d.Reason
	}
	if err := f.log(event); err != nil {
		return nil, err
	}
	if !d.Allow {
		return nil, errors.New(DenialText(egress.Denial{Name: name, Port: port, Reason: d.Reason, Hint: d.Hint}))
	}
	return f.transport.RoundTrip(r)
}

// dial connects to a name that was judged.
func (f *fetcher) dial(ctx context.Context, _, address string) (net.Conn, error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	rules := f.server.Policy()
	dialer := &outbound.NameDialer{Host: f.host, Rule: outbound.Public(rules.Connect(name, port).Private...), Proxy: cmp.Or(rules.Via(name), rules.Upstream())}
	conn, _, err := dialer.Dial(ctx, name, port)
	return conn, err
}
