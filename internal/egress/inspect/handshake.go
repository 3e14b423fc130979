package inspect

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
)

// http11 is the one protocol that is offered, to programs and to servers.
const http11 = "http/1.1"

// serverConfig is the TLS of the side of the program, for one name.
func (i *Inspector) serverConfig(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{http11},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if r := checkHello(hello, name); r != nil {
				return nil, r
			}
			return i.leaves.For(name)
		},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if r := checkHello(hello, name); r != nil {
				return nil, r
			}
			return nil, nil
		},
	}
}

// checkHello refuses a handshake for another name, and one without HTTP/1.1.
func checkHello(hello *tls.ClientHelloInfo, name string) *Refusal {
	if !strings.EqualFold(hello.ServerName, name) {
		return refuse(Protocol, 421, "the TLS handshake names another host")
	}
	if len(hello.SupportedProtos) > 0 && !slices.Contains(hello.SupportedProtos, http11) {
		r := refuse(HTTP2Only, 421, "the program offers "+protocols(hello.SupportedProtos)+" and not http/1.1, which is all that can be inspected")
		r.Hint = "let the program use HTTP/1.1, or write a rule for this host without methods, paths and secrets"
		return r
	}
	return nil
}

// protocols is a short list of names that come from inside.
func protocols(offered []string) string {
	known := slices.DeleteFunc(slices.Clone(offered), func(p string) bool { return p != "h2" && p != "h3" && p != "http/1.0" && p != "spdy/3.1" })
	if len(known) == 0 {
		return "other protocols"
	}
	return strings.Join(known, ", ")
}

// shake makes the handshake with the program.
func (i *Inspector) shake(ctx context.Context, inside *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	err := inside.HandshakeContext(ctx)
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if isAboutCertificate(err) {
		r := refuse(UntrustedCA, 0, "the program does not accept the certificate of the sandbox's CA")
		r.Hint = "let it read " + bundleFile + ", or write a rule for this host without methods, paths and secrets if it pins certificates"
		return r
	}
	return refuse(Protocol, 0, "the TLS handshake with the program failed")
}

// isAboutCertificate reports whether the program ended the handshake with an alert
// about our certificate.
func isAboutCertificate(err error) bool {
	alert, ok := errors.AsType[tls.AlertError](err)
	text := err.Error()
	if ok {
		text = alert.Error()
	}
	return strings.Contains(text, "certificate")
}
