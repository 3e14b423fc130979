// Package apistage measures sandboxes that a program makes through a gateway's API,
// beside the same without a gateway.
package apistage

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/gatewaychild"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// stage is a private gateway in a process of its own, and its installation as another
// process sees it.
type stage struct {
	*gatewaychild.Gateway
	app *app.App
}

// config keeps sandboxes of the machine's own programs.
const config = `{ agents: { defaults: { sandbox: { backend: "linux", docker: { image: "host" } } } } }`

// newStage starts the gateway of a program.
func newStage(ctx context.Context, program string) (*stage, error) {
	g, err := gatewaychild.Start(ctx, program, config, nil, "--private", "--idle", "1h")
	if err != nil {
		return nil, err
	}
	a, err := app.Open(ctx, provide.LoadOptions{Getenv: g.Getenv, ConfigPath: g.ConfigPath})
	if err != nil {
		return nil, errors.Join(err, g.End())
	}
	return &stage{g, a}, nil
}

// close ends the gateway and removes the installation.
func (s *stage) close() error {
	s.app.Close()
	return s.End()
}
