package leaks_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay/leaks"
)

const host = "canary-of-the-host-0123"

func start(ctx context.Context, t *testing.T) *leaks.Scanner {
	t.Helper()
	s, err := leaks.Start(ctx, []byte(host), []byte("short"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScan(t *testing.T) {
	s := start(t.Context(), t)
	for _, test := range []struct {
		name, text, rule string
		line             int
	}{
		{"nothing", "package main\n\nfunc main() {}\n", "", 0},
		{"empty", "", "", 0},
		{"a service's token", "a\nb = AKIA" + "Z7RTQ2MK3NPLX4VB\n", "aws-access-token", 2},
		{"the host's own", "x\ny\n" + host, leaks.RuleKnown, 3},
		{"the host's own in base64", base64.StdEncoding.EncodeToString([]byte("user:" + host + "\n")), leaks.RuleKnown, 1},
		{"the host's own in hexadecimal", hex.EncodeToString([]byte("x" + host)), leaks.RuleKnown, 1},
		{"what is too short to look for", "a short text", "", 0},
		{"many lines", strings.Repeat("x\n", 1<<18), "", 0},
		{"binary", "\x00\x01\xff\xfe", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := s.Scan([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if test.rule == "" && len(found) > 0 || test.rule != "" && !slices.Contains(found, leaks.Leak{Rule: test.rule, Line: test.line}) {
				t.Errorf("found %v", found)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A text that nobody looked through is not a clean one.
func TestScannerThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := start(ctx, t)
	if _, err := s.Scan([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if found, err := s.Scan([]byte(strings.Repeat("x", 1<<20))); err == nil {
		t.Errorf("found %v", found)
	}
	if err := s.Close(); err == nil {
		t.Error("it ended well")
	}
}
