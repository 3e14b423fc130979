package egress_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
)

// A DNS tunnel: data in labels, in types that carry much, in the longest names.
// Nothing of it is sent on.
func TestAttack01_DNSTunnel(t *testing.T) {
	w := open(t, allow(t, "api.example.com"))
	long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." + strings.Repeat("d", 57) + ".net"
	if len(long) != 253 {
		t.Fatalf("the name has %d bytes", len(long))
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeTXT, 10, dnsmessage.TypeALL, dnsmessage.TypeMX, dnsmessage.TypeSRV, 65, 65535} {
		for _, name := range []string{"c2VjcmV0.tunnel.example.net", "x.api.example.com", long} {
			m := w.box.ask(t, name, kind)
			if kind != dnsmessage.TypeA && len(m.Answers) != 0 {
				t.Errorf("%s, type %v: %+v", name, kind, m.Answers)
			}
		}
	}
	for i := range 10_000 {
		name := fmt.Sprintf("d%d.tunnel.example.net", i)
		if a := w.box.lookup(t, name); a.As4()[2] != 255 {
			t.Fatalf("%s has the address %v", name, a)
		}
	}
	if got := w.net.queries(); got != "" {
		t.Errorf("the host asked for %.200s", got)
	}
	if n := w.box.mostListeners(); n > 7 {
		t.Errorf("%d listeners for refused names", n)
	}
}

// Many names under an allowed wildcard take the addresses of those that were not
// used for longest, and no more.
func TestAttack01_ManyAllowedNames(t *testing.T) {
	w := open(t, allow(t, "*.example.com"))
	first := w.box.lookup(t, "first.example.com")
	for i := range 3 * egress.MaxNames {
		w.box.lookup(t, fmt.Sprintf("n%d.example.com", i))
	}
	if limit := 2*(egress.MaxNames+8) + 6; w.box.mostListeners() > limit {
		t.Errorf("%d listeners, at most %d were to be open", w.box.mostListeners(), limit)
	}
	eventually(t, "the first name loses its address", func() bool {
		m := w.box.ask(t, reverse(first.String()), dnsmessage.TypePTR)
		return len(m.Answers) == 0
	})
	if got := w.net.queries(); got != "" {
		t.Errorf("the host asked for %.200s", got)
	}
}

// A sandbox that has no room for more listeners, because others share it, still
// gives every name an address.
func TestAttack01_NoRoomForListeners(t *testing.T) {
	w := open(t, allow(t, "*.example.com"))
	w.box.mu.Lock()
	w.box.room = 10
	w.box.mu.Unlock()
	for i := range 20 {
		w.box.lookup(t, fmt.Sprintf("n%d.example.com", i))
	}
	if n := w.box.mostListeners(); n > 10 {
		t.Errorf("%d listeners", n)
	}
}

// Resolvers by HTTPS, TLS and QUIC are refused even where every public name is
// allowed, and under a wildcard.
func TestAttack02_OtherResolvers(t *testing.T) {
	w := open(t, policy(t, func(e *config.Egress) { e.Mode = config.EgressPublic }, "*.quad9.net"))
	for _, name := range []string{"dns.google", "cloudflare-dns.com", "mozilla.cloudflare-dns.com", "dns.quad9.net", "dns11.quad9.net", "abc.dns.nextdns.io"} {
		if _, err := w.net.secure(w.box.dial(t, name, 443), name); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.box.connect(w.box.lookup(t, name), 853); err == nil {
			t.Errorf("%s: port 853 is open", name)
		}
	}
	if got := w.net.queries(); got != "" {
		t.Errorf("the host asked for %s", got)
	}
}
