package leaks_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/contentpolicy/leaks"
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

// Each text is answered for itself, however many are given before the first is
// answered.
func TestScan(t *testing.T) {
	s := start(t.Context(), t)
	defer s.Stop()
	tests := []struct {
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
	}
	const rounds = 50
	for range rounds {
		for _, test := range tests {
			if err := s.Scan([]byte(test.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	got := map[int][]leaks.Leak{}
	for _, f := range found {
		got[f.Text] = append(got[f.Text], f.Leaks...)
	}
	for i := range rounds * len(tests) {
		test := tests[i%len(tests)]
		if test.rule == "" && len(got[i]) > 0 || test.rule != "" && !slices.Contains(got[i], leaks.Leak{Rule: test.rule, Line: test.line}) {
			t.Errorf("text %d, %s: found %v", i, test.name, got[i])
		}
	}
}

// A text that was not scanned is no clean one.
func TestScannerThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := start(ctx, t)
	if err := s.Scan([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	err := s.Scan([]byte(strings.Repeat("x", 1<<20)))
	found, finished := s.Finish()
	if err == nil && finished == nil {
		t.Errorf("it ended well, and found %v", found)
	}
	s.Stop()
}

// Who gives up on the way leaves nothing behind.
func TestStop(t *testing.T) {
	s := start(t.Context(), t)
	if err := s.Scan([]byte(strings.Repeat("key = abcdefghij0123456789\n", 1<<15))); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
	if found, err := s.Finish(); err == nil {
		t.Errorf("found %v", found)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
