package secret

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// The attributes of the entries of a keyring that belong to atoll.
const (
	keyringProgram = "secret-tool"
	keyringService = "atoll"
)

// Keyring is an entry of the desktop's keyring, which libsecret's secret-tool reads:
// service=atoll, name=Entry.
type Keyring struct{ Entry string }

// Name names the source.
func (k Keyring) Name() string { return "keyring entry " + k.Entry }

// Read returns the entry. It is absent on a computer without the program.
func (k Keyring) Read(ctx context.Context) (Value, error) {
	program, err := exec.LookPath(keyringProgram)
	if err != nil {
		return Value{}, absent(k.Name(), "cannot be read: there is no "+keyringProgram)
	}
	value, err := Command{Argv: []string{program, "lookup", "service", keyringService, "name", k.Entry}}.Read(ctx)
	switch exit, failed := errors.AsType[*exec.ExitError](err); {
	case failed && exit.ExitCode() == 1, errors.Is(err, errEmpty):
		return Value{}, absent(k.Name(), "does not exist")
	case err != nil:
		return Value{}, fmt.Errorf("%s: %w", k.Name(), err)
	}
	return value, nil
}
