// Package claimstage measures sandboxes that come out of a pool, beside those that are made
// when they are asked for.
package claimstage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
)

// How often each side runs, and what is claimed.
const (
	rounds       = 40
	remoteRounds = 20
	claimLimit   = 0.5 // of a start, at most
	podLimit     = 200 // ms until the first result in a pod that waited, at most
	truth        = "/bin/true"
	stepTimeout  = 2 * time.Minute
)

// Options say what is measured.
type Options struct {
	Getenv   func(string) string
	Program  string // the gateway's, for backends that only it has
	Backend  string // "" is linux
	Config   string // of the gateway, where it cannot be made up
	Progress io.Writer
}

// stage makes sandboxes.
type stage interface {
	// fill makes a sandbox wait.
	fill(ctx context.Context) error
	// first makes a sandbox and carries out a command in it, and returns how long that took
	// and whether the sandbox came out of a pool.
	first(ctx context.Context) (took time.Duration, pooled bool, err error)
	close() error
}

// Measure measures both sides in turn.
func Measure(ctx context.Context, o Options) (_ *egressstage.Result, err error) {
	open, n := openLocal, rounds
	if o.Backend == "kubernetes" {
		open, n = openRemote, remoteRounds
	}
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Fprintln(o.Progress, "first results …")
	var claimed, made []float64
	for round := range n + 1 {
		warm, cold, err := both(ctx, s)
		if err != nil {
			return nil, err
		}
		if round > 0 { // the first warms up
			claimed, made = append(claimed, warm.Seconds()*1e3), append(made, cold.Seconds()*1e3)
		}
	}
	r := report(o.Backend, claimed, made)
	if pods, ok := s.(*remote); ok {
		return r, measureWire(ctx, pods, o, r)
	}
	return r, nil
}

// both measures a sandbox that waited and one that did not.
func both(ctx context.Context, s stage) (warm, cold time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if err := s.fill(ctx); err != nil {
		return 0, 0, err
	}
	warm, pooled, err := s.first(ctx)
	if err == nil && !pooled {
		err = errors.New("a sandbox that was to come out of a pool was made")
	}
	if err != nil {
		return 0, 0, err
	}
	cold, pooled, err = s.first(ctx)
	if err == nil && pooled {
		err = errors.New("a sandbox that was to be made came out of a pool")
	}
	return warm, cold, err
}

// report returns the rows and the claims.
func report(backend string, claimed, made []float64) *egressstage.Result {
	r := &egressstage.Result{Series: []egressstage.Series{
		{Name: "a sandbox that waited, to its first result", Unit: "ms", Samples: claimed},
		{Name: "a sandbox that is made, to its first result", Unit: "ms", Samples: made},
	}}
	ratio := egressstage.Claim{Name: "one that waited against one that is made, p50", Value: middle(claimed) / middle(made)}
	if backend == "kubernetes" {
		r.Claims = []egressstage.Claim{{Name: "a pod that waited, to its first result, p50, ms", Value: middle(claimed), Limit: podLimit}, ratio}
		return r
	}
	ratio.Limit = claimLimit
	r.Claims = []egressstage.Claim{ratio}
	return r
}

// middle is the middle sample.
func middle(samples []float64) float64 {
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}
