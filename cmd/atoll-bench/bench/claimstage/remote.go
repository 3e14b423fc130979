package claimstage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/gatewaychild"
	"github.com/atoll-run/atoll/internal/errhint"
)

// remote is a gateway in a process of its own.
type remote struct {
	*gatewaychild.Gateway
	claimed int64 // sandboxes that it had taken out of its pool
}

// agent is whose sandboxes programs make.
const agent = "api"

// openRemote starts the gateway of a program with the configuration of a cluster.
func openRemote(ctx context.Context, o Options) (stage, error) {
	if o.Config == "" {
		return nil, errhint.With(errors.New("no configuration of a cluster was given"), `give --config with sandbox.backend "kubernetes", an image of agent api, and kubernetes.*`)
	}
	text, err := os.ReadFile(o.Config)
	if err != nil {
		return nil, err
	}
	g, err := gatewaychild.Start(ctx, o.Program, string(text), nil, "--private", "--idle", "1h")
	if err != nil {
		return nil, err
	}
	return &remote{Gateway: g}, nil
}

// fill has one sandbox wait, and no other follow it.
func (s *remote) fill(ctx context.Context) error {
	if _, err := s.ResizePool(ctx, agent, api.ResizePool{Size: 1}); err != nil {
		return err
	}
	for {
		p, err := s.pool(ctx)
		switch {
		case err != nil:
			return err
		case p.Ready == 1:
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("the pool is not filled: %s: %w", p.Problem, err)
		}
	}
}

// pool returns what the gateway says of the pool.
func (s *remote) pool(ctx context.Context) (*api.Pool, error) {
	all, err := s.Pools(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all.Pools {
		if all.Pools[i].Agent == agent {
			return &all.Pools[i], nil
		}
	}
	return &api.Pool{}, nil
}

// first measures; when a sandbox came out of the pool, that is emptied for the other side.
func (s *remote) first(ctx context.Context) (time.Duration, bool, error) {
	start := time.Now()
	box, err := s.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return 0, false, err
	}
	_, err = s.Exec(ctx, box.ID, &api.ExecRequest{Argv: []string{truth}})
	took := time.Since(start)
	p, poolErr := s.pool(ctx)
	if err = errors.Join(err, poolErr); err != nil {
		return 0, false, err
	}
	pooled := p.Claimed > s.claimed
	if s.claimed = p.Claimed; pooled {
		err = s.empty(ctx)
	}
	_, removed := s.RemoveSandbox(ctx, box.ID)
	return took, pooled, errors.Join(err, removed)
}

// empty has no sandbox wait.
func (s *remote) empty(ctx context.Context) error {
	if _, err := s.ResizePool(ctx, agent, api.ResizePool{}); err != nil {
		return err
	}
	for {
		p, err := s.pool(ctx)
		if err != nil || p.Ready+p.Making == 0 {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *remote) close() error { return s.End() }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
