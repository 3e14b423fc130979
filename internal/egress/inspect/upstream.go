package inspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"github.com/atoll-run/atoll/internal/outbound"
)

// transport returns what requests of one connection are sent with: HTTP/1.1 to one
// server, on one connection at a time.
func (i *Inspector) transport(t *Target) *http.Transport {
	return &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return t.Dial(ctx) },
		DialTLSContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return i.dialTLS(ctx, t) },
		DisableCompression: true, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1,
		MaxResponseHeaderBytes: outbound.MaxResponseHeader, ResponseHeaderTimeout: answerWait,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // never HTTP/2
	}
}

// dialTLS connects and verifies the server's certificate for the name that was judged.
func (i *Inspector) dialTLS(ctx context.Context, t *Target) (net.Conn, error) {
	conn, err := t.Dial(ctx)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if i.options.Host != nil {
		config = i.options.Host.TLS()
	}
	config.ServerName, config.NextProtos = t.Name, []string{http11}
	secure := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// upstreamFailure is the refusal for a server that gave no answer.
func upstreamFailure(name string, err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return refuse(Upstream, 502, "the certificate of "+name+" is not valid: "+certificateProblem(err))
	}
	return refuse(Upstream, 502, "no answer from "+name+": "+err.Error())
}

// certificateProblem is what is wrong with a certificate, in few words.
func certificateProblem(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "this host does not know who signed it"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "it is for another name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "it has expired, or is not valid yet"
	}
	return "it cannot be verified"
}
