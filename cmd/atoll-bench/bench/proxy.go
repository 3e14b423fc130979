package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"
)

// proxyBench measures the proxy beside nginx, which rewrites the same headers and
// writes a line a request, and decides and counts nothing. Both are processes of
// their own behind unix sockets, before the same upstream; the load comes from
// here. What counts is the processor time that each uses.
func proxyBench(ctx context.Context, o Options) (*Report, error) {
	return proxySteps(ctx, o, func(p *proxyRun) []func() error {
		return []func() error{p.small, p.large, p.streams, p.paced, p.first, p.truncation, p.held, p.overWire}
	})
}

// proxyFirst is the part about the first byte.
func proxyFirst(ctx context.Context, o Options) (*Report, error) {
	return proxySteps(ctx, o, func(p *proxyRun) []func() error { return []func() error{p.first} })
}

// proxyWire is the part about the wire.
func proxyWire(ctx context.Context, o Options) (*Report, error) {
	return proxySteps(ctx, o, func(p *proxyRun) []func() error { return []func() error{p.overWire} })
}

func proxySteps(ctx context.Context, o Options, steps func(*proxyRun) []func() error) (*Report, error) {
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nothing of it is needed
	up, err := startUpstream(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer up.close()
	fmt.Fprintln(o.Progress, "starting nginx and the proxy …")
	peers, err := startPeers(ctx, o, dir, up.address)
	if err != nil {
		return nil, err
	}
	defer peers.close()
	p := &proxyRun{ctx: ctx, options: o, dir: dir, peers: peers, upstream: up.address, report: &Report{Bench: "proxy"}}
	for _, step := range steps(p) {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.report, nil
}

// proxyRun is a benchmark under way.
type proxyRun struct {
	ctx      context.Context
	options  Options
	dir      string
	peers    *peers
	upstream string
	report   *Report
}

// rounds is how often the peers take turns.
const rounds = 7

// compare has the peers take turns at a load of n units each and returns the
// processor time for a unit, nginx first.
func (p *proxyRun) compare(name, unit string, n int, load func(socket string) error) ([2]float64, error) {
	fmt.Fprintln(p.options.Progress, name, "…")
	var samples [2][]float64
	for round := range rounds + 1 {
		for i, peer := range p.peers.all() {
			before := peer.cpu()
			if err := load(peer.socket); err != nil {
				return [2]float64{}, fmt.Errorf("%s, %s: %w", name, peer.name, err)
			}
			if round > 0 { // the first is for warming up
				samples[i] = append(samples[i], microseconds(peer.cpu()-before)/float64(n))
			}
		}
	}
	var medians [2]float64
	for i, peer := range p.peers.all() {
		r := row(name+", "+peer.name, "µs CPU "+unit, samples[i])
		p.report.Rows = append(p.report.Rows, r)
		medians[i] = r.P50
	}
	return medians, nil
}

// claim claims a ratio of the two.
func (p *proxyRun) claim(name string, m [2]float64, most float64) {
	p.report.Ratios = append(p.report.Ratios, atMost(name, m[1]/math.Max(m[0], 1e-9), most))
}

func (p *proxyRun) small() error {
	const callers, each = 16, 150
	body := question(1500, false)
	m, err := p.compare("small JSON, 16 callers", "a request", callers*each, func(socket string) error {
		return flood(p.ctx, socket, callers, each, body)
	})
	p.claim("small JSON: CPU of a request, as a multiple of nginx's", m, 5.5)
	return err
}

func (p *proxyRun) large() error {
	const callers, each = 8, 40
	body := question(256<<10, false)
	m, err := p.compare("256 KB request, 8 callers", "a request", callers*each, func(socket string) error {
		return flood(p.ctx, socket, callers, each, body)
	})
	p.claim("256 KB request: CPU of a request, as a multiple of nginx's", m, 3)
	return err
}

func (p *proxyRun) streams() error {
	const callers, each = 16, 12
	body := question(1500, true)
	m, err := p.compare("stream of 200 chunks, 16 callers", "a stream", callers*each, func(socket string) error {
		return flood(p.ctx, socket, callers, each, body)
	})
	p.claim("unpaced stream: CPU of a stream, as a multiple of nginx's", m, 2)
	return err
}

func (p *proxyRun) paced() error {
	const callers = 50
	body := question(1500, true, "paced")
	m, err := p.compare("50 streams, an event every 5 ms", "an event", callers*pacedEvents, func(socket string) error {
		return flood(p.ctx, socket, callers, 1, body)
	})
	p.claim("paced stream: CPU of an event, as a multiple of nginx's", m, 2)
	return err
}

// truncation streams 5,000 answers while processors are scarce.
func (p *proxyRun) truncation() error {
	fmt.Fprintln(p.options.Progress, "5,000 streams under contention …")
	stop := contend(p.ctx)
	defer stop()
	err := flood(p.ctx, p.peers.atoll.socket, 32, 157, question(500, true, "short"))
	if err != nil {
		return fmt.Errorf("a stream was truncated: %w", err)
	}
	p.report.Ratios = append(p.report.Ratios, exactly("truncated streams of 5,024", 0, 0))
	return nil
}

// held opens a thousand streams whose readers are slow.
func (p *proxyRun) held() error {
	const streams = 1000
	fmt.Fprintln(p.options.Progress, "1,000 open streams …")
	child := p.peers.atoll
	before, err := child.status()
	if err != nil {
		return err
	}
	conns, err := hold(p.ctx, child.socket, streams, question(1500, true, "held"))
	if err != nil {
		return err
	}
	during, err := child.status()
	for _, c := range conns {
		c.Close()
	}
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	after, err := child.status()
	p.report.Ratios = append(p.report.Ratios,
		atMost("1,000 open streams: memory of a stream, KB", float64(during.Memory-before.Memory)/streams/1e3, 100),
		atMost("goroutines left one second after all callers vanished", float64(after.Goroutines-before.Goroutines), 0))
	return err
}
