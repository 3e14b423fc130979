// Package guestbin holds the guest programs for the architectures that
// sandboxes run on. They are built by make, before the program that embeds them;
// without them everything builds, and says what is missing when it is needed.
package guestbin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/atoll-run/atoll/internal/advice"
)

//go:embed bin
var programs embed.FS

// ErrMissing is a guest that this program was built without.
var ErrMissing = errors.New("the guest program is not part of this build")

// For returns the guest for an architecture, by Go's name: "amd64", "arm64".
func For(arch string) ([]byte, error) { return find(programs, arch) }

func find(from fs.FS, arch string) ([]byte, error) {
	switch arch {
	case "amd64", "arm64":
	default:
		return nil, fmt.Errorf("sandbox architecture %q: no guest exists for it", arch)
	}
	program, err := fs.ReadFile(from, "bin/atoll-guest-linux-"+arch)
	if err != nil {
		return nil, advice.With(fmt.Errorf("sandbox architecture %q: %w", arch, ErrMissing), "build Atoll with: make build")
	}
	return program, nil
}

// Hash names a guest by its content: the first 16 hexadecimal digits of its
// SHA-256.
func Hash(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:8])
}
