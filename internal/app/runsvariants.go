package app

import (
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/run"
)

// variants is the registry of agents that a run can be given to.
func (a *App) variants(program string) ([]run.Variant, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("our own program: %w", err)
		}
	}
	return []run.Variant{run.Agent(run.AgentOptions{Program: program})}, nil
}
