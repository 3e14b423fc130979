package apistage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// How often each side runs.
const (
	createRounds   = 30
	callRounds     = 40
	callBurst      = 25 // of each side in every round
	downloadRounds = 15
	large          = 64 << 20
	crowd          = 200
	atOnce         = 16
	truth          = "/bin/true"
)

// What is claimed.
const (
	createLimit   = 2       // times atoll run, at most
	callLimit     = 3       // times the wire, at most
	downloadLimit = 1 / 0.7 // of the wire's rate against the download's, at most
	none          = 0.5     // of what is counted, at most
)

// result is what was measured.
type result struct {
	Create, Run    []float64 // ms
	Call, Wire     []float64 // µs
	Download, Read []float64 // MiB/s
	Crowd          float64   // s
	Errors, Left   int
}

// report returns the rows and the claims.
func (r *result) report() *egressstage.Result {
	all := []egressstage.Series{
		{Name: "create to first result over HTTP", Unit: "ms", Samples: r.Create}, {Name: "atoll run --rm -- true", Unit: "ms", Samples: r.Run},
		{Name: "one command over a kept connection", Unit: "µs", Samples: r.Call}, {Name: "one command over the wire", Unit: "µs", Samples: r.Wire},
		{Name: "64 MiB download", Unit: "MiB/s", Samples: r.Download}, {Name: "64 MiB read over the wire", Unit: "MiB/s", Samples: r.Read},
		{Name: "200 made and ended, 16 at a time", Unit: "s", Samples: []float64{r.Crowd}},
	}
	return &egressstage.Result{Series: all, Claims: []egressstage.Claim{
		{Name: "create to first result against atoll run, p50", Value: middle(r.Create) / middle(r.Run), Limit: createLimit},
		{Name: "one command against the wire, p50", Value: middle(r.Call) / middle(r.Wire), Limit: callLimit},
		{Name: "read over the wire against the download, p50", Value: middle(r.Read) / middle(r.Download), Limit: downloadLimit},
		{Name: "errors among 200 sandboxes", Value: float64(r.Errors), Limit: none},
		{Name: "left of 200 sandboxes", Value: float64(r.Left), Limit: none},
	}}
}

// middle is the middle sample.
func middle(samples []float64) float64 {
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// Measure measures a program's API.
func Measure(ctx context.Context, program string, progress io.Writer) (_ *egressstage.Result, err error) {
	s, err := newStage(ctx, program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := &result{}
	for _, part := range []struct {
		name string
		do   func(context.Context, *result) error
	}{{"first results", s.creates}, {"one command at a time", s.calls}, {"downloads", s.downloads}, {"many sandboxes", s.crowd}} {
		fmt.Fprintln(progress, part.name, "…")
		if err := part.do(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.report(), nil
}

// call runs the command over HTTP.
func (s *stage) call(ctx context.Context, id string) error {
	result, err := s.Exec(ctx, id, &api.ExecRequest{Argv: []string{truth}})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d", truth, result.ExitCode)
	}
	return err
}

// creates measures from nothing to a first command's result, in turn with atoll run.
func (s *stage) creates(ctx context.Context, r *result) error {
	for round := range createRounds + 1 {
		start := time.Now()
		box, err := s.CreateSandbox(ctx, &api.CreateSandbox{})
		if err != nil {
			return err
		}
		if err := s.call(ctx, box.ID); err != nil {
			return err
		}
		made := time.Since(start)
		if _, err := s.RemoveSandbox(ctx, box.ID); err != nil {
			return err
		}
		start = time.Now()
		if out, err := s.Command(ctx, "run", "--rm", "--", truth).CombinedOutput(); err != nil {
			return fmt.Errorf("atoll run: %w: %s", err, out)
		}
		if ran := time.Since(start); round > 0 { // the first warms up
			r.Create, r.Run = append(r.Create, made.Seconds()*1e3), append(r.Run, ran.Seconds()*1e3)
		}
	}
	return nil
}

// calls measures one command over HTTP in turn with one over a wire of this process.
func (s *stage) calls(ctx context.Context, r *result) error {
	box, err := s.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return err
	}
	h, err := s.app.Manager.Attach(ctx, box.ContainerName)
	if err != nil {
		return err
	}
	defer func() { h.Release(); _, _ = s.RemoveSandbox(ctx, box.ID) }() // what is left is counted at the end
	for range callRounds {
		for range callBurst {
			start := time.Now()
			if err := s.call(ctx, box.ID); err != nil {
				return err
			}
			r.Call = append(r.Call, time.Since(start).Seconds()*1e6)
		}
		for range callBurst {
			var out bytes.Buffer
			start := time.Now()
			if _, err := h.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}, Stdout: &out, Stderr: &out, EndTree: true}); err != nil {
				return err
			}
			r.Wire = append(r.Wire, time.Since(start).Seconds()*1e6)
		}
	}
	return nil
}

// downloads measures a large file over HTTP in turn with one over the wire.
func (s *stage) downloads(ctx context.Context, r *result) error {
	box, err := s.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return err
	}
	content := make([]byte, large)
	_, _ = rand.Read(content)
	if _, err := s.WriteFile(ctx, box.ID, api.WriteFileQuery{Path: "large"}, bytes.NewReader(content)); err != nil {
		return err
	}
	h, err := s.app.Manager.Attach(ctx, box.ContainerName)
	if err != nil {
		return err
	}
	defer func() { h.Release(); _, _ = s.RemoveSandbox(ctx, box.ID) }() // as above
	files, err := guestfs.New(h.Machine, []guestfs.Root{{Path: box.Workdir}})
	if err != nil {
		return err
	}
	path := box.Workdir + "/large"
	for round := range downloadRounds + 1 {
		over, err := rate(func() (io.ReadCloser, error) { return s.ReadFile(ctx, box.ID, path) })
		if err != nil {
			return err
		}
		wire, err := rate(func() (io.ReadCloser, error) { return files.Open(ctx, path, nil) })
		if err != nil {
			return err
		}
		if round > 0 {
			r.Download, r.Read = append(r.Download, over), append(r.Read, wire)
		}
	}
	return nil
}

// rate reads a large file, and returns MiB a second.
func rate(open func() (io.ReadCloser, error)) (float64, error) {
	start := time.Now()
	file, err := open()
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, file)
	if err = errors.Join(err, file.Close()); err == nil && n != large {
		err = fmt.Errorf("%d bytes came", n)
	}
	return large / (1 << 20) / time.Since(start).Seconds(), err
}

// crowd makes, uses and ends many sandboxes, some at a time, and looks for what is left.
func (s *stage) crowd(ctx context.Context, r *result) error {
	var failed atomic.Int64
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	start := time.Now()
	for range crowd {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := s.one(ctx); err != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	r.Crowd, r.Errors = time.Since(start).Seconds(), int(failed.Load())
	list, err := s.Sandboxes(ctx, api.SandboxQuery{Made: true})
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(s.State(), "*", "*agent-api-*"))
	r.Left = max(list.Total, len(left))
	return err
}

// one makes a sandbox, runs a command in it and ends it.
func (s *stage) one(ctx context.Context) error {
	box, err := s.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		return err
	}
	called := s.call(ctx, box.ID)
	_, err = s.RemoveSandbox(ctx, box.ID)
	return errors.Join(called, err)
}
