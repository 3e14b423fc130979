package guestbin

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/atoll-run/atoll/internal/advice"
)

func TestFind(t *testing.T) {
	built := fstest.MapFS{"bin/atoll-guest-linux-amd64": {Data: []byte("program")}, "bin/README": {}}
	program, err := find(built, "amd64")
	if err != nil || string(program) != "program" {
		t.Errorf("%q %v", program, err)
	}
	_, err = find(built, "arm64")
	if !errors.Is(err, ErrMissing) || !strings.Contains(advice.Of(err), "make build") {
		t.Errorf("not built: %v (%s)", err, advice.Of(err))
	}
	for _, arch := range []string{"", "mips", "../../etc/passwd"} {
		if _, err := find(built, arch); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%q: %v", arch, err)
		}
	}
}

func TestHash(t *testing.T) {
	if a, b := Hash([]byte("a")), Hash([]byte("b")); a == b || len(a) != 16 || a != "ca978112ca1bbdca" {
		t.Errorf("%s %s", a, b)
	}
}
