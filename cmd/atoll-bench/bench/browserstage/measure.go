package browserstage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
	"github.com/atoll-run/atoll/internal/browser"
)

const (
	startRounds = 8
	clickRounds = 40
	loadRounds  = 20
	crowd       = 10

	startCost  = 1.3  // of the same program on the host
	clickCost  = 1.5  // of Playwright's on the host
	egressCost = 1.05 // of a page without egress
	mostMemory = 200  // MiB of about:blank
)

// run is a measurement under way.
type run struct {
	*stage
	progress io.Writer
	result   egressstage.Result
}

// Measure measures browsers in sandboxes beside the same program on the host.
func Measure(ctx context.Context, progress io.Writer) (_ *egressstage.Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{stage: s, progress: progress}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, part := range []func(context.Context) error{r.starts, r.memory, r.pages, r.crowd} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return &r.result, nil
}

func (r *run) add(name, unit string, samples []float64) float64 {
	r.result.Series = append(r.result.Series, egressstage.Series{Name: name, Unit: unit, Samples: samples})
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

func (r *run) claim(name string, value, limit float64) {
	r.result.Claims = append(r.result.Claims, egressstage.Claim{Name: name, Value: value, Limit: limit})
}

func since(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / 1000 }

// starts measures the time until a browser answers, in a ready sandbox and on the host.
func (r *run) starts(ctx context.Context) error {
	fmt.Fprintln(r.progress, "starts …")
	box, err := r.app.ProvideBrowser(ctx, subject(0))
	if err != nil {
		return err
	}
	defer box.Release()
	var ours, theirs []float64
	for range startRounds {
		start := time.Now()
		b, err := browser.Start(ctx, box.Machine, browser.Options{})
		if err != nil {
			return err
		}
		ours = append(ours, since(start))
		if err := b.Close(); err != nil {
			return err
		}
		start = time.Now()
		other, err := startBare(ctx, r.net.Secure())
		if err != nil {
			return err
		}
		theirs = append(theirs, since(start))
		if err := other.Close(); err != nil {
			return err
		}
	}
	inside, outside := r.add("first answer, in a sandbox, with Chromium's own sandbox", "ms", ours), r.add("first answer, on the host", "ms", theirs)
	r.claim("first answer: sandbox against host, p50", inside/outside, startCost)
	return nil
}

// memory measures what one browser with an empty page needs.
func (r *run) memory(ctx context.Context) error {
	fmt.Fprintln(r.progress, "memory …")
	before := memory()
	b, release, err := r.use(ctx, 0)
	if err != nil {
		return err
	}
	defer release()
	if _, err := b.NewPage(ctx); err != nil {
		return err
	}
	used := memoryBeyond(before)
	r.add("memory of about:blank", "MiB", []float64{used})
	r.claim("memory of about:blank, MiB", used, mostMemory)
	return nil
}

// pages measures clicks and page loads.
func (r *run) pages(ctx context.Context) error {
	other, err := startBare(ctx, r.net.Secure())
	if err != nil {
		return err
	}
	defer other.Close() //nolint:errcheck // it is killed
	b, release, err := r.use(ctx, 0)
	if err != nil {
		return err
	}
	defer release()
	port, err := forward(ctx, b)
	if err != nil {
		return err
	}
	p, err := startPlaywright(ctx, map[string]int{"sandbox": port, "host": other.port})
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // it has ended
	return errors.Join(r.loads(p), r.clicks(ctx, p))
}

// loads measures a page of 20 further requests, with egress and without.
func (r *run) loads(p *playwright) error {
	fmt.Fprintln(r.progress, "pages …")
	samples := map[string][]float64{}
	for round := range loadRounds + 1 {
		for _, where := range []string{"sandbox", "host"} {
			took, err := p.do("load", where)
			if err != nil {
				return err
			}
			if round > 0 {
				samples[where] = append(samples[where], took)
			}
		}
	}
	inside, outside := r.add("page of 21 requests of 20 ms with TLS, through egress", "ms", samples["sandbox"]), r.add("the same page on the host, direct", "ms", samples["host"])
	r.claim("page: egress against direct, p50", inside/outside, egressCost)
	return nil
}

var buttonRef = regexp.MustCompile(`- button [^\n]*\[ref=(e\d+)\]`)

// clicks measures clicks of the tool beside those of Playwright on the host.
func (r *run) clicks(ctx context.Context, p *playwright) error {
	fmt.Fprintln(r.progress, "clicks …")
	box, err := r.app.Agents.Tools(ctx, subject(0), false)
	if err != nil {
		return err
	}
	defer box.Release()
	shown, err := box.Call(ctx, "browser", []byte(`{"action":"open","url":"`+pageAddress+`"}`))
	if err != nil {
		return err
	}
	found := buttonRef.FindStringSubmatch(shown.Text)
	if found == nil {
		return fmt.Errorf("the page has no button: %s", shown.Text)
	}
	var ours, theirs []float64
	for range clickRounds {
		start := time.Now()
		if done, err := box.Call(ctx, "browser", []byte(`{"action":"click","ref":"`+found[1]+`"}`)); err != nil || done.IsError {
			return errors.Join(err, fmt.Errorf("click: %v", done))
		}
		ours = append(ours, since(start))
		took, err := p.do("click", "host")
		if err != nil {
			return err
		}
		theirs = append(theirs, took)
	}
	tool, other := r.add("click by the tool, with what changed", "ms", ours), r.add("click by Playwright on the host", "ms", theirs)
	r.claim("click: tool against Playwright, p50", tool/other, clickCost)
	return nil
}

// crowd measures ten browsers at once, from nothing.
func (r *run) crowd(ctx context.Context) error {
	fmt.Fprintln(r.progress, "ten at once …")
	before, start := memory(), time.Now()
	took, failures := make([]float64, crowd), make([]error, crowd)
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			_, release, err := r.use(ctx, i+1)
			if took[i], failures[i] = since(start), err; err == nil {
				defer release()
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	each := memoryBeyond(before) / crowd
	r.add("ten browsers at once, from nothing to each one's answer", "ms", took)
	r.add("memory of each of ten", "MiB", []float64{each})
	r.claim("memory of each of ten, MiB", each, mostMemory)
	return nil
}
