// Package guestbin holds the guest programs for the architectures that
// sandboxes run on. They are built by make, before the program that embeds them;
// without them everything builds, and says what is missing when it is needed.
package guestbin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/atoll-run/atoll/internal/errhint"
)

//go:embed bin
var programs embed.FS

// ErrMissing is a guest that this program was built without.
var ErrMissing = errors.New("the guest program is not part of this build")

// For returns the guest for an architecture, by Go's name: "amd64", "arm64".
func For(arch string) ([]byte, error) { return find(programs, arch) }

func find(from fs.FS, arch string) ([]byte, error) {
	if err := known(arch); err != nil {
		return nil, err
	}
	program, err := fs.ReadFile(from, pathFor(arch))
	if err != nil {
		return nil, missing(arch)
	}
	return program, nil
}

func pathFor(arch string) string { return "bin/atoll-guest-linux-" + arch }

func known(arch string) error {
	switch arch {
	case "amd64", "arm64":
		return nil
	}
	return fmt.Errorf("sandbox architecture %q: no guest exists for it", arch)
}

func missing(arch string) error {
	return errhint.With(fmt.Errorf("sandbox architecture %q: %w", arch, ErrMissing), "build Atoll with: make build")
}
