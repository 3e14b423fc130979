package inspect

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Options are the settings of an Inspector.
type Options struct {
	Dir     string           // of the sandbox, below the state directory: it keeps the CA
	Host    *outbound.Host   // whose roots verify servers; nil: the system's
	Secrets *inject.Set      // of the callers; nil: none
	Now     func() time.Time // nil: time.Now
}

// Inspector serves the connections of one sandbox.
type Inspector struct {
	options   Options
	authority *authority
	leaves    *leaves
}

// Open opens the CA of a sandbox, or makes it.
func Open(o Options) (*Inspector, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	a, err := openAuthority(o.Dir, o.Now())
	if err != nil {
		return nil, err
	}
	l, err := newLeaves(a, o.Now)
	return &Inspector{options: o, authority: a, leaves: l}, err
}

// Target is the server that a connection is for.
type Target struct {
	Name string // canonical, as it was judged
	Port int
	// Decide judges one request by its method and its path with the query; it may wait for
	// a person. It is called before anything of the request is sent.
	Decide func(ctx context.Context, method, target string) rule.Decision
	// Record records a request that is about to be sent, without its query. An error stops
	// it.
	Record func(method, path string, d rule.Decision) error
	// Refused records why the connection or one of its requests is refused, before the
	// program is answered: a program that ends on the answer has its refusal on record.
	Refused func(*Refusal)
	// Dial connects to an address of the server that was checked. It is called again when
	// the server has closed a connection that was kept.
	Dial func(ctx context.Context) (net.Conn, error)
	// PlainUpstream speaks to the server without TLS. No secret is sent then.
	PlainUpstream bool
}

// handshakeTimeout bounds a TLS handshake, on either side.
const handshakeTimeout = 30 * time.Second

// ServeTLS serves a connection that begins with a ClientHello, until either side ends
// it. It does not close it. The error is a *Refusal if the connection was refused.
func (i *Inspector) ServeTLS(ctx context.Context, client net.Conn, t *Target) error {
	inside := tls.Server(client, i.serverConfig(t.Name))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := i.shake(ctx, inside); err != nil {
		return t.refused(err)
	}
	err := i.serve(ctx, inside, t)
	_ = inside.CloseWrite()
	return err
}

// ServePlain serves a connection of plain HTTP.
func (i *Inspector) ServePlain(ctx context.Context, client net.Conn, t *Target) error {
	return i.serve(ctx, client, t)
}
