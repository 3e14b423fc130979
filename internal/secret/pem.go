package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
)

// PEM is a file that no other user can read, with a private key of several lines.
type PEM struct{ Path string }

// Name names the source.
func (p PEM) Name() string { return "key file " + p.Path }

// Read returns the file's content.
func (p PEM) Read(context.Context) (Value, error) {
	content, err := ReadPrivate(p.Path)
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", p.Name(), err)
	}
	defer clear(content)
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte("-----BEGIN ")) {
		return Value{}, errhint.With(fmt.Errorf("%s: %w", p.Name(), errors.New("it holds no PEM block")), "use the file as it was given out")
	}
	return New(string(content)), nil
}
