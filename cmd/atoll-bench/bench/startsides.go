package bench

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// side is one way to get a first command's result.
type side struct {
	name    string
	every   int // rounds between two measurements
	measure func(context.Context) (time.Duration, error)
	samples []float64
}

const milliseconds = 1e3 // in microseconds

// sides measures every way in turn, so that all see the same load.
func (s *startStage) sides(ctx context.Context, r *Report) error {
	all := s.allSides(ctx)
	fmt.Fprintln(s.options.Progress, "first commands …")
	for round := range startRounds {
		for _, x := range all {
			if round%x.every != 0 {
				continue
			}
			step, cancel := context.WithTimeout(ctx, startTimeout)
			took, err := x.measure(step)
			cancel()
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			if round > 0 { // the first warms up
				x.samples = append(x.samples, microseconds(took)/milliseconds)
			}
		}
	}
	p50 := map[string]float64{}
	for _, x := range all {
		line := row(x.name, "ms", x.samples)
		p50[x.name] = line.P50
		r.Rows = append(r.Rows, line)
	}
	r.Ratios = append(r.Ratios, startClaims(p50)...)
	return nil
}

// The names of the sides.
const (
	sideHost      = "create to first result, host's programs, resident process"
	sideImage     = "the same, imported image"
	sideFloor     = "floor: bwrap, guest, one exec"
	sideFull      = "the same with nearly all mounts of a sandbox, and its filter"
	sideBwrap     = "bwrap --unshare-all true"
	sideEngine    = "create to first result, Docker, resident process"
	sideRun       = "atoll run --rm -- true"
	sideDockerRun = "docker run --rm --network none … true, with the same limits"
)

func (s *startStage) allSides(ctx context.Context) []*side {
	all := []*side{
		{name: sideHost, every: 1, measure: func(ctx context.Context) (time.Duration, error) { return s.ours(ctx, "linux", "") }},
		{name: sideFloor, every: 1, measure: func(ctx context.Context) (time.Duration, error) { return s.floor(ctx, nil) }},
		{name: sideFull, every: 1, measure: func(ctx context.Context) (time.Duration, error) { return s.floor(ctx, s.rest) }},
		{name: sideBwrap, every: 1, measure: func(ctx context.Context) (time.Duration, error) {
			return s.command(ctx, append(append([]string{"bwrap"}, bwrapRoot()...), truth)...)
		}},
		{name: sideRun, every: 1, measure: func(ctx context.Context) (time.Duration, error) {
			return s.command(ctx, s.options.Atoll, "run", "--rm", "--", truth)
		}},
	}
	image, ok := s.engineImage(ctx)
	if !ok {
		fmt.Fprintln(s.options.Progress, "no Docker with the sandbox image: its rows are left out")
		return all
	}
	return append(all,
		&side{name: sideImage, every: 1, measure: func(ctx context.Context) (time.Duration, error) { return s.ours(ctx, "linux", image) }},
		&side{name: sideEngine, every: engineEvery, measure: func(ctx context.Context) (time.Duration, error) { return s.ours(ctx, "docker", image) }},
		&side{name: sideDockerRun, every: engineEvery, measure: func(ctx context.Context) (time.Duration, error) {
			return s.command(ctx, "docker", "run", "--rm", "--network", "none", "--memory", strconv.FormatInt(s.limits.Memory, 10),
				"--pids-limit", strconv.FormatInt(s.limits.Pids, 10), image, truth)
		}})
}

// engineImage takes the default image over from Docker, if there is one.
func (s *startStage) engineImage(ctx context.Context) (string, bool) {
	agent, err := s.app.Config.Resolve(s.app.Config.DefaultAgent())
	if err != nil {
		return "", false
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return "", false
	}
	image := agent.Sandbox.Docker.Image
	if _, err = s.app.ImportFromEngine(ctx, "docker", image, rootfs.AddOptions{}); err != nil {
		fmt.Fprintln(s.options.Progress, err)
	}
	return image, err == nil
}

func startClaims(p50 map[string]float64) []Ratio {
	claims := []Ratio{
		atMost("a start against the floor", p50[sideHost]/p50[sideFloor], startFloor),
		atMost("a start against bwrap with nothing in it", p50[sideHost]/p50[sideBwrap], startPeer),
	}
	if p50[sideEngine] == 0 {
		return claims
	}
	return append(claims,
		atMost("a start from an image against one from the host's programs", p50[sideImage]/p50[sideHost], startImage),
		atLeast("a start on Docker against ours", p50[sideEngine]/p50[sideHost], startEngine),
		atLeast("docker run against atoll run", p50[sideDockerRun]/p50[sideRun], runEngine))
}
