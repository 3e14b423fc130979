package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// pickSandbox returns the name of the sandbox that word names: by its name, with or
// without the prefix that all have, by its session, with or without the agent in its
// key, or by the beginning of one.
func pickSandbox(ctx context.Context, a *app.App, word string) (string, error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return "", err
	}
	var all []console.Named
	for _, entry := range entries {
		all = append(all, console.Named{Name: entry.ContainerName, Also: []string{withoutPrefix(a, entry), entry.SessionKey, strings.TrimPrefix(entry.SessionKey, "agent:"+entry.AgentID+":")}})
	}
	name, err := console.Pick("sandbox", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		return "", errhint.With(fmt.Errorf("sandbox %q: %w", word, sandbox.ErrNotFound), "`atoll ps` shows what there is")
	}
	return name, err
}

// pickName returns the name of the sandbox that word is the beginning of; word
// itself if there is none: it may be a session that has no sandbox yet.
func pickName(ctx context.Context, a *app.App, word string) (string, error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return "", err
	}
	var all []console.Named
	for _, entry := range entries {
		if entry.SessionKey == word {
			return word, nil
		}
		all = append(all, console.Named{Name: entry.ContainerName})
	}
	name, err := console.Pick("sandbox", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		return word, nil
	}
	return name, err
}

// withoutPrefix is the name of a sandbox without the prefix of its agent's.
func withoutPrefix(a *app.App, entry *sandbox.Entry) string {
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return entry.ContainerName
	}
	return strings.TrimPrefix(entry.ContainerName, agent.Sandbox.Docker.ContainerPrefix)
}
