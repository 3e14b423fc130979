package hostname_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/hostname"
)

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"example.com":                  "example.com",
		"EXAMPLE.Com.":                 "example.com",
		"r3---sn-4g5.example.net":      "r3---sn-4g5.example.net",
		"my_bucket.example.com":        "my_bucket.example.com",
		"xn--bcher-kva.example":        "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":        "xn--bcher-kva.example",
		"localhost":                    "localhost",
		"1password.com":                "1password.com",
		strings.Repeat("a", 63) + ".b": strings.Repeat("a", 63) + ".b",
	} {
		if got, err := hostname.Canonical(text); got != want || err != nil {
			t.Errorf("Canonical(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// TestAddressesAreNoNames has the spellings of addresses that programs and
// resolvers accept.
func TestAddressesAreNoNames(t *testing.T) {
	for _, text := range []string{
		"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "0X7F.1", "0x", "a.0x", "1.2.3.4.5",
		"[::1]", "::1", "[::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1%eth0", "[example.com]", "example.com:80",
		"169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "example.1", "0", "256.256.256.256",
	} {
		if got, err := hostname.Canonical(text); !errors.Is(err, hostname.ErrAddress) {
			t.Errorf("Canonical(%q) = %q, %v; want ErrAddress", text, got, err)
		}
	}
}

func TestOddNamesAreRefused(t *testing.T) {
	for _, text := range []string{
		"", ".", "..", "a..b", ".a", "example.com..", "evil\x00.example.com", "a\x00", "exa mple.com", "example.com/", "user@example.com",
		"_", "__.example.com", "_dmarc.example.com", "-a.example.com", "a-.example.com", "exa%6dple.com", "a,b.com", "a\n.com", "a\\b.com",
		"bücher.example", "xn--.example", "xn--a.example", "xn--bcher-kva8.example", "xn--abc-.example", "xn--example.com-", "а.example",
		strings.Repeat("a", 64) + ".com", strings.Repeat("abcdefg.", 32) + "com",
		"1.1.1.1%00.example.com", "*.example.com", "fe80::1%25eth0",
	} {
		if got, err := hostname.Canonical(text); err == nil {
			t.Errorf("Canonical(%q) = %q, want an error", text, got)
		}
	}
}

func TestPatternsThatOpenTooMuch(t *testing.T) {
	for _, text := range []string{
		"*", "*.", "**", "*.*", "*.com", "*.co.uk", "*.github.io", "*.r2.dev", "*.internal", "com", "co.uk",
		"a.*.com", "*a.com", "**.example.com", "*.*.example.com", "*.1.2.3.4", "10.0.0.1", "*.bücher.de", "*..com", "",
	} {
		if p, err := hostname.ParsePattern(text); err == nil {
			t.Errorf("ParsePattern(%q) = %v, want an error", text, p)
		}
	}
	for _, text := range []string{"*.com", "*.r2.dev", "*.ts.net", "com"} {
		if _, err := hostname.ParseWidePattern(text); err != nil {
			t.Errorf("ParseWidePattern(%q): %v", text, err)
		}
	}
}

func TestWildcards(t *testing.T) {
	p, err := hostname.ParsePattern("*.Example.com.")
	if err != nil || p.String() != "*.example.com" {
		t.Fatalf("ParsePattern = %v, %v", p, err)
	}
	for name, want := range map[string]bool{
		"a.example.com": true, "a.b.example.com": true,
		"example.com": false, "evil-example.com": false, "evilexample.com": false, "example.com.evil.net": false, ".example.com": false, "com": false,
	} {
		if p.Match(name) != want {
			t.Errorf("%s matches %s: %v", p, name, !want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		wide, narrow string
		want         bool
	}{
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "*.example.com", true},
		{"*.example.com", "*.a.example.com", true},
		{"*.a.example.com", "*.example.com", false},
		{"*.example.com", "example.com", false},
		{"a.example.com", "*.example.com", false},
		{"a.example.com", "a.example.com", true},
	} {
		wide, _ := hostname.ParsePattern(c.wide)
		narrow, _ := hostname.ParsePattern(c.narrow)
		if wide.Covers(narrow) != c.want {
			t.Errorf("%s covers %s: %v", wide, narrow, !c.want)
		}
	}
}

func TestAbove(t *testing.T) {
	if got := slices.Collect(hostname.Above("a.b.example.com")); !slices.Equal(got, []string{"b.example.com", "example.com", "com"}) {
		t.Errorf("Above = %q", got)
	}
	if got := slices.Collect(hostname.Above("localhost")); got != nil {
		t.Errorf("Above = %q", got)
	}
}

func TestSplitPort(t *testing.T) {
	if host, port, err := hostname.SplitPort("github.com:22"); host != "github.com" || port != 22 || err != nil {
		t.Errorf("SplitPort = %q, %d, %v", host, port, err)
	}
	for _, text := range []string{"a:0", "a:65536", "a:022", "a:+22", "a:", "a:b", "::1", "[::1]:80", "a:1:2"} {
		if host, port, err := hostname.SplitPort(text); err == nil {
			t.Errorf("SplitPort(%q) = %q, %d", text, host, port)
		}
	}
}

func TestUnicode(t *testing.T) {
	if got := hostname.Unicode("xn--bcher-kva.example"); got != "bücher.example" {
		t.Errorf("Unicode = %q", got)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"example.com", "EXAMPLE.com.", "127.1", "xn--bcher-kva.de", "a\x00.b", "0x7f.1", "[::1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := hostname.Canonical(text)
		if err != nil {
			return
		}
		if again, err := hostname.Canonical(name); again != name || err != nil {
			t.Errorf("%q became %q, then %q, %v", text, name, again, err)
		}
		if strings.ToLower(strings.TrimSuffix(text, ".")) != name {
			t.Errorf("%q became %q", text, name)
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(":/@[]%*\\?#", r) }) {
			t.Errorf("%q has bytes of no name", name)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("*.example.com", "a.example.com")
	f.Add("example.com", "example.com.evil.net")
	f.Add("*.co.uk", "a.co.uk")
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := hostname.ParsePattern(text)
		if err != nil {
			return
		}
		if again, err := hostname.ParsePattern(p.String()); again != p || err != nil {
			t.Errorf("%q became %v, then %v, %v", text, p, again, err)
		}
		if p.Match(name) && name != p.Name && !strings.HasSuffix(name, "."+p.Name) {
			t.Errorf("%v matches %q", p, name)
		}
		if p.Match(p.Name) == p.Wildcard {
			t.Errorf("%v and its apex", p)
		}
	})
}
