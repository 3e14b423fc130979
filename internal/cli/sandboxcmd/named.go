package sandboxcmd

import (
	"context"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Named makes the sandbox ready that word names, as atoll exec does.
func Named(ctx context.Context, c *console.Env, word string) (*provide.ReadySandbox, error) {
	name, err := NameOf(ctx, c, word)
	if err != nil {
		return nil, err
	}
	return (&env{c}).sessionNamed(ctx, console.SubjectFlags{}, name)
}

// NameOf returns the name of the sandbox that word names.
func NameOf(ctx context.Context, c *console.Env, word string) (string, error) {
	a, err := c.Open(ctx)
	if err != nil {
		return "", err
	}
	return pickSandbox(ctx, a, word)
}

// NameHere returns the name of the sandbox of the working directory, or of the default
// session, if it runs.
func NameHere(ctx context.Context, c *console.Env) (string, error) {
	handles, err := (&env{c}).attachHere(ctx, console.SubjectFlags{})
	if err != nil {
		return "", err
	}
	defer releaseAll(handles)
	if len(handles) == 0 {
		return "", sandbox.ErrNotRunning
	}
	return handles[0].Name, nil
}

// Started says under which grant a command is started and with which variables beside
// those of the sandbox: "NAME=VALUE" of the caller, which are checked, and the grant's.
type Started struct {
	Env      []string
	Grant    string
	GrantEnv map[string]string
}

// CommandOf returns a command for a sandbox with the environment of the sandbox.
func CommandOf(c *console.Env, s *provide.ReadySandbox, how *Started, argv []string) (*machine.Command, error) {
	return (&env{c}).command(s, commandOptions{env: how.Env, grant: how.Grant, grantEnv: how.GrantEnv, noStdin: true}, argv)
}
