package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Outside is egress for programs that are in no sandbox of ours, such as a gateway in a
// container of its own: they connect to this host under the names of servers.
type Outside struct {
	Name   string // of who uses it, in records, and of the directory of its CA and placeholders
	Config *config.Egress
}

// The files of Outside: variables, and certificates in a directory.
const (
	OutsideEnv   = "egress.env"
	OutsideTrust = "trust"
)

// HasSecrets reports whether a rule of an egress names a secret.
func HasSecrets(e *config.Egress) bool {
	return slices.ContainsFunc(e.Allow, func(r config.EgressRule) bool { return r.Secret != "" })
}

// WriteOutside writes the variables with the placeholders of secrets, and the certificates
// of the CA, for programs that see the directory of certificates at a path of theirs.
// No value of a secret is in them.
func (s *Service) WriteOutside(ctx context.Context, o *Outside, dir, seenAt string) error {
	inspector, secrets, err := s.outsideParts(ctx, o)
	if err != nil {
		return err
	}
	files, err := inspector.Files(seenAt)
	if err != nil {
		return err
	}
	trust := filepath.Join(dir, OutsideTrust)
	if err := os.MkdirAll(trust, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(trust, f.Name)
		if err := errors.Join(provide.ReplaceFile(path, f.Data), os.Chmod(path, 0o644)); err != nil { // for another user's programs
			return err
		}
	}
	variables := inspect.Environment(seenAt)
	maps.Copy(variables, secrets.Environment())
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&text, "%s=%s\n", name, variables[name])
	}
	return provide.ReplaceFile(filepath.Join(dir, OutsideEnv), text.Bytes())
}

// ServeOutside serves connections of TLS until the context ends.
func (s *Service) ServeOutside(ctx context.Context, o *Outside, l net.Listener) error {
	if o.Config.Mode == config.EgressOff || o.Config.Mode == "" {
		return errhint.With(errors.New("no egress is configured"), `set sandbox.egress.mode to "enforce" and name hosts in sandbox.egress.allow`)
	}
	inspector, _, err := s.outsideParts(ctx, o)
	if err != nil {
		return err
	}
	rules, err := Compile(ctx, o.Config)
	if err != nil {
		return err
	}
	host, err := s.Outbound()
	if err != nil {
		return err
	}
	log, err := s.models.AuditLog()
	if err != nil {
		return err
	}
	server, err := egress.Open(ctx, egress.Options{
		Rules: egress.Rules{Policy: rules, Inspect: inspector}, Inside: nowhere{}, Outbound: host, Sandbox: o.Name, Logger: s.Logger,
		Audit: func(event *audit.EgressEvent) error { return log.Append(event) },
	})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	server.ServeByName(l, outsidePort)
	return server.Close()
}

// outsidePort is the port of the servers that programs outside of sandboxes reach.
const outsidePort = 443

// outsideParts opens the CA and the placeholders.
func (s *Service) outsideParts(ctx context.Context, o *Outside) (*inspect.Inspector, *inject.Set, error) {
	named, err := s.namedSecrets(o.Config)
	if err != nil {
		return nil, nil, err
	}
	secrets, err := s.readSecrets(ctx, o.Name, named)
	if err != nil {
		return nil, nil, err
	}
	host, err := s.Outbound()
	if err != nil {
		return nil, nil, err
	}
	inspector, err := inspect.Open(inspect.Options{Dir: s.EgressDir(o.Name), Host: host, Secrets: secrets})
	return inspector, secrets, err
}

// nowhere is the sandbox of programs that are in none: nothing connects from it.
type nowhere struct{}

// Listen implements egress.Inside.
func (nowhere) Listen(context.Context, netip.Addr, int) (net.Listener, netip.Addr, error) {
	return newSilence(), netip.Addr{}, nil
}

// ListenDatagrams implements egress.Inside.
func (nowhere) ListenDatagrams(context.Context, int) (egress.Datagrams, error) {
	return newSilence(), nil
}

// silence is a listener that nothing comes to.
type silence struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func newSilence() *silence {
	s := &silence{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Accept implements net.Listener.
func (s *silence) Accept() (net.Conn, error) {
	<-s.ctx.Done()
	return nil, net.ErrClosed
}

// Receive implements egress.Datagrams.
func (s *silence) Receive(ctx context.Context) (egress.Datagram, error) {
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	return egress.Datagram{}, net.ErrClosed
}

// Send implements egress.Datagrams.
func (s *silence) Send(egress.Datagram) error { return net.ErrClosed }

// Addr implements net.Listener.
func (s *silence) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements net.Listener.
func (s *silence) Close() error {
	s.cancel()
	return nil
}
