package claimstage

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/gatewaychild"
)

const (
	// wireRounds is how many commands each side carries out over its kept wire.
	wireRounds = 200
	// wireLimit is the most that a command in a pod may take, of one in a local sandbox.
	wireLimit = 5
	// localConfig is the installation whose sandboxes are local.
	localConfig = `{ agents: { defaults: { sandbox: { backend: "linux", docker: { image: "host" } } } } }`
)

// measureWire adds commands in a pod of the gateway, beside those in a Linux sandbox of
// another gateway, each over one wire that is kept.
func measureWire(ctx context.Context, pods *remote, o Options, r *egressstage.Result) (err error) {
	g, err := gatewaychild.Start(ctx, o.Program, localConfig, nil, "--private", "--idle", "1h")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.End()) }()
	inPod, local, err := commands(ctx, pods.Gateway, g)
	if err != nil {
		return err
	}
	r.Series = append(r.Series,
		egressstage.Series{Name: "a command in a pod, over a kept wire", Unit: "ms", Samples: inPod},
		egressstage.Series{Name: "a command in a Linux sandbox, over a kept wire", Unit: "ms", Samples: local})
	r.Claims = append(r.Claims, egressstage.Claim{Name: "a command in a pod against one in a Linux sandbox, p50", Value: middle(inPod) / middle(local), Limit: wireLimit})
	return nil
}

// commands carries out commands in a sandbox of each gateway in turn.
func commands(ctx context.Context, a, b *gatewaychild.Gateway) (inA, inB []float64, err error) {
	first, err := a.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _, e := a.RemoveSandbox(ctx, first.ID); err = errors.Join(err, e) }()
	second, err := b.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return nil, nil, err
	}
	for n := range wireRounds + 1 {
		tookA, errA := command(ctx, a, first.ID)
		tookB, errB := command(ctx, b, second.ID)
		if err := errors.Join(errA, errB); err != nil {
			return nil, nil, err
		}
		if n > 0 { // the first dials
			inA, inB = append(inA, tookA), append(inB, tookB)
		}
	}
	return inA, inB, nil
}

// command returns how long one command takes, in milliseconds.
func command(ctx context.Context, g *gatewaychild.Gateway, id string) (float64, error) {
	start := time.Now()
	_, err := g.Exec(ctx, id, &api.ExecRequest{Argv: []string{truth}})
	return time.Since(start).Seconds() * 1e3, err
}
