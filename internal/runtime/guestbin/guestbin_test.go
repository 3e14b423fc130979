package guestbin

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/atoll-run/atoll/internal/errhint"
)

func TestFind(t *testing.T) {
	built := fstest.MapFS{"bin/atoll-guest-linux-amd64": {Data: []byte("program")}, "bin/README": {}}
	program, err := find(built, "amd64")
	if err != nil || string(program) != "program" {
		t.Errorf("%q %v", program, err)
	}
	_, err = find(built, "arm64")
	if !errors.Is(err, ErrMissing) || !strings.Contains(errhint.Of(err), "make build") {
		t.Errorf("not built: %v (%s)", err, errhint.Of(err))
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

// The name of a guest changes with its content, whether or not a linker has
// named it, and does not take reading all of it.
func TestGuestIsNamedByItsContent(t *testing.T) {
	self, err := os.Executable() // Go's linker made it, as it makes guests
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, content := range [][]byte{program, append(program, 0), []byte("a"), []byte("b")} {
		guest, err := New(bytes.NewReader(content), int64(len(content)))
		if err != nil || len(guest.Hash) != 16 || names[guest.Hash] {
			t.Fatalf("%+v, %v after %v", guest, err, names)
		}
		names[guest.Hash] = true
		if got, err := guest.Read(); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d of %d bytes, %v", len(got), len(content), err)
		}
	}
	counted := &counter{ReaderAt: bytes.NewReader(program)}
	if _, err := New(counted, int64(len(program))); err != nil || counted.bytes > len(program)/10 {
		t.Errorf("%d of %d bytes were read, %v", counted.bytes, len(program), err)
	}
}

type counter struct {
	io.ReaderAt
	bytes int
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.bytes += n
	return n, err
}

// The hint about a missing guest names a target of the Makefile that makes it.
func TestHintOfAMissingGuest(t *testing.T) {
	_, target, ok := strings.Cut(errhint.Of(missing("amd64")), "make ")
	if !ok {
		t.Fatalf("the hint is %q", errhint.Of(missing("amd64")))
	}
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*\bguest\b`).Match(text) {
		t.Errorf("make %s does not make the guest", target)
	}
}
