package inspect_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/egress/inspect"
)

// TestAttack21_LeafForAnotherName asks for certificates that were not judged.
func TestAttack21_LeafForAnotherName(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	for n, name := range []string{"evil.example", "x." + site, ""} {
		config := &tls.Config{ServerName: name, InsecureSkipVerify: true}
		conn, err := tls.Dial("tcp", w.front, config)
		if err == nil {
			t.Errorf("%q: a certificate for %v", name, conn.ConnectionState().PeerCertificates[0].DNSNames)
			_ = conn.Close()
		}
		if r := w.result(n); r == nil || r.Kind != inspect.Protocol {
			t.Errorf("%q: %v", name, r)
		}
	}
	conn, err := tls.Dial("tcp", w.front, w.trust())
	check(t, err)
	defer conn.Close()
	chain := conn.ConnectionState().PeerCertificates
	leaf, ca := chain[0], chain[1]
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != site || leaf.IsCA || len(leaf.IPAddresses) > 0 || !ca.IsCA || !ca.MaxPathLenZero {
		t.Errorf("%v %v", leaf.DNSNames, ca.Subject)
	}
}

// TestAttack21_KeyStaysOnTheHost: the key is a file for its owner, below the state
// directory, and in nothing that a sandbox gets.
func TestAttack21_KeyStaysOnTheHost(t *testing.T) {
	w := newWorld(t, nil)
	info, err := os.Stat(filepath.Join(w.dir, "ca.pem"))
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	files, err := w.inspector.Files("/certificates")
	check(t, err)
	for _, f := range files {
		if bytes.Contains(f.Data, []byte("PRIVATE KEY")) {
			t.Errorf("%s holds a private key", f.Name)
		}
	}
	again, err := inspect.Open(inspect.Options{Dir: w.dir})
	check(t, err)
	same, err := again.Files("/certificates")
	check(t, err)
	if !bytes.Equal(files[0].Data, same[0].Data) {
		t.Error("the CA is another one after it was opened again")
	}
	other := newWorld(t, nil)
	theirs, err := other.inspector.Files("/certificates")
	check(t, err)
	if bytes.Equal(files[0].Data, theirs[0].Data) {
		t.Error("two sandboxes have one CA")
	}
}

// TestAttack21_CAAgainstTheHost has a server with a certificate of a sandbox's CA: the
// host does not accept it.
func TestAttack21_CAAgainstTheHost(t *testing.T) {
	inside := newWorld(t, http.HandlerFunc(echo))
	w := newWorld(t, nil)
	w.change(func() { w.server = inside.front }) // it serves certificates of the other sandbox's CA, for the same name
	status, text, _ := w.do("GET", "/", "")
	if status != 502 || !strings.Contains(text, "this host does not know who signed it") {
		t.Errorf("%d %s", status, text)
	}
	if r := inside.result(0); r == nil || r.Kind != inspect.UntrustedCA {
		t.Errorf("%v", r)
	}
}

// TestAttack21_UpstreamCertificates: servers are verified for the name that was judged.
func TestAttack21_UpstreamCertificates(t *testing.T) {
	w := newWorld(t, nil)
	for name, c := range map[string]struct {
		certificate tls.Certificate
		want        string
	}{
		"another name": {w.roots.sign(t, "evil.example", time.Now().Add(time.Hour)), "it is for another name"},
		"expired":      {w.roots.sign(t, site, time.Now().Add(-time.Minute)), "it has expired"},
		"unknown":      {newRoots(t).sign(t, site, time.Now().Add(time.Hour)), "does not know who signed it"},
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{c.certificate}, MinVersion: tls.VersionTLS12})
		check(t, err)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}
		}()
		w.change(func() { w.server = l.Addr().String() })
		if status, text, _ := w.do("GET", "/", ""); status != 502 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
		check(t, l.Close())
	}
}

// TestAttack21_PinnedClient has a program that trusts other roots: the record of its
// failed handshake says so, and what to do.
func TestAttack21_PinnedClient(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	conn, err := tls.Dial("tcp", w.front, &tls.Config{ServerName: site, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13})
	if err == nil {
		_ = conn.Close()
		t.Error("accepted")
	}
	if r := w.result(0); r == nil || r.Kind != inspect.UntrustedCA || !strings.Contains(r.Hint, "bundle.pem") {
		t.Errorf("%+v", r)
	}
}

// TestAttack21_Clocks: certificates are good for a clock that is a day slow, and are made
// anew before they end.
func TestAttack21_Clocks(t *testing.T) {
	now := time.Now()
	i, err := inspect.Open(inspect.Options{Dir: t.TempDir(), Now: func() time.Time { return now }})
	check(t, err)
	var ends []time.Time
	for range 2 {
		leaf := leafOf(t, i)
		if leaf.NotBefore.After(now.Add(-23*time.Hour)) || leaf.NotAfter.Before(now.Add(24*time.Hour)) {
			t.Errorf("from %v to %v at %v", leaf.NotBefore, leaf.NotAfter, now)
		}
		ends = append(ends, leaf.NotAfter)
		now = now.Add(6*24*time.Hour + time.Hour)
	}
	if !ends[1].After(ends[0]) {
		t.Errorf("%v", ends)
	}
}

// leafOf makes a handshake and returns the certificate.
func leafOf(t *testing.T, i *inspect.Inspector) *x509.Certificate {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() { _ = i.ServeTLS(t.Context(), theirs, &inspect.Target{Name: site, Port: 443}) }()
	conn := tls.Client(ours, &tls.Config{ServerName: site, InsecureSkipVerify: true})
	check(t, conn.Handshake())
	return conn.ConnectionState().PeerCertificates[0]
}
