package modelcmd

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/gateway/serve"
)

// pickToken returns the id of the token or device that word names; word itself if
// there is none, for the verb to refuse.
func pickToken(ctx context.Context, a *app.App, word string) (string, error) {
	all, err := TokenNames(ctx, a)
	if err != nil {
		return "", err
	}
	id, err := console.Pick("token", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		return word, nil
	}
	return id, err
}

// TokenNames are the ids of all tokens and devices.
func TokenNames(ctx context.Context, a *app.App) (all []console.Named, err error) {
	tokens, err := a.Models.Tokens().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tokens {
		all = append(all, console.Named{Name: tokens[i].ID})
	}
	gateway, err := serve.Tokens(a.Installation).List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gateway {
		all = append(all, console.Named{Name: gateway[i].ID})
	}
	devices, err := serve.Devices(a.Installation).List(ctx)
	for i := range devices {
		all = append(all, console.Named{Name: devices[i].ID})
	}
	return all, err
}
