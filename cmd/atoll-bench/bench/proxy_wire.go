package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/machine"
)

const (
	// modelPort is where callers in a sandbox find the proxy.
	modelPort = 8080
	// wireCallers and wireStreams stay below what one sandbox may have open.
	wireCallers = 50
	wireStreams = 128
	wireRounds  = 5

	addedOnWire = 30 // µs CPU of an event, at most
)

// wireStage is a sandbox whose port is served by a proxy in a process of its
// own, which also has a socket for callers outside.
type wireStage struct {
	*stage
	proxy   *peer
	relay   *peer // a bare relay on the host's loopback, before the proxy's socket
	guest   int   // its process
	engines []int // processes of the engine that stand between
}

// overWire measures what it costs that callers are in a sandbox without a
// network: the same streams, once from inside, over the sandbox's loopback, the
// guest and the wire, and once from outside, on the proxy's own socket.
func (p *proxyRun) overWire() (err error) {
	fmt.Fprintln(p.options.Progress, "over the wire of a sandbox …")
	s, err := newStage(p.ctx, p.options)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.floorProgram(); err != nil {
		return err
	}
	w := &wireStage{stage: s}
	if err := w.start(p.ctx, p.upstream); err != nil {
		return err
	}
	defer w.proxy.stop()
	if w.relay, err = startRelay(p.ctx, p.options, "127.0.0.1:0", w.proxy.socket); err != nil {
		return err
	}
	defer w.relay.stop()
	if err := w.events(p.ctx, p.report); err != nil {
		return err
	}
	return w.held(p.ctx, p.report)
}

// start starts the proxy and finds the processes that take part.
func (w *wireStage) start(ctx context.Context, upstream string) (err error) {
	if w.guest, err = w.guestProcess(ctx); err != nil {
		return err
	}
	if w.engines, err = w.engineProcesses(ctx); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(w.state, "wire", "*", "guest.sock"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d sockets of guests in %s, want one", len(found), w.state)
	}
	dir := filepath.Join(w.state, "bench")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	w.proxy, err = startChild(ctx, w.options, dir, upstream, found[0])
	return err
}

// engineProcesses are the engine itself and the parent that it gave the guest.
func (w *wireStage) engineProcesses(ctx context.Context) ([]int, error) {
	path, _ := strings.CutPrefix(w.options.Getenv("DOCKER_HOST"), "unix://")
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var who *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { who, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.guest))
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(string(text), ") ")
	parent, err := strconv.Atoi(strings.Fields(after)[1])
	return []int{int(who.Pid), parent}, err
}

// wireParts are the processes whose time an event takes, in the order of cpu.
var wireParts = []string{"all", "the proxy", "the guest", "the engine", "the bare relay"}

// cpu is what they have used, all together first.
func (w *wireStage) cpu() []time.Duration {
	parts := []time.Duration{0, w.proxy.cpu(), processCPU(w.guest), 0, w.relay.cpu()}
	for _, pid := range w.engines {
		parts[3] += processCPU(pid)
	}
	for _, part := range parts[1:] {
		parts[0] += part
	}
	return parts
}

// wireSide is a way that the same streams take.
type wireSide struct {
	name    string
	load    func() error
	samples [][]float64 // by part
}

// events streams paced events each way, in turn.
func (w *wireStage) events(ctx context.Context, r *Report) error {
	outside := func(address string) func() error {
		return func() error { return flood(ctx, address, wireCallers, 1, question(1500, true, "paced")) }
	}
	sides := []*wireSide{
		{name: "over the wire of a sandbox", load: func() error { return w.callInside(ctx, wireCallers, "paced", nil, io.Discard) }},
		{name: "on the proxy's socket", load: outside(w.proxy.socket)},
		{name: "through a bare relay on loopback", load: outside(w.relay.socket)},
	}
	for round := range wireRounds + 1 {
		for _, side := range sides {
			if err := w.turn(side, round > 0); err != nil { // the first is for warming up
				return fmt.Errorf("streams %s: %w", side.name, err)
			}
		}
	}
	var medians []float64
	for _, side := range sides {
		medians = append(medians, side.report(r))
	}
	r.Ratios = append(r.Ratios, atMost("added by the wire, guest and engine included: µs CPU of an event", medians[0]-medians[1], addedOnWire))
	return nil
}

// turn has a side take its turn.
func (w *wireStage) turn(side *wireSide, counts bool) error {
	before := w.cpu()
	err := side.load()
	if err != nil || !counts {
		return err
	}
	if side.samples == nil {
		side.samples = make([][]float64, len(before))
	}
	for i, used := range w.cpu() {
		side.samples[i] = append(side.samples[i], microseconds(used-before[i])/(wireCallers*pacedEvents))
	}
	return nil
}

// report adds the rows of a side, without parts that have none, and returns what
// an event takes of all.
func (s *wireSide) report(r *Report) float64 {
	var all float64
	for i, part := range wireParts {
		line := row("50 streams, an event every 5 ms, "+s.name+", "+part, "µs CPU an event", s.samples[i])
		if i == 0 {
			all = line.P50
		}
		if line.P50 >= 0.1 {
			r.Rows = append(r.Rows, line)
		}
	}
	return all
}

// callInside runs callers in the sandbox: see ProxyCallers.
func (w *wireStage) callInside(ctx context.Context, callers int, how string, in io.Reader, out io.Writer) error {
	var errs bytes.Buffer
	result, err := w.session.Machine.Exec(ctx, &machine.Command{
		Argv:  []string{w.session.Plan.Spec.Workdir + "/atoll", "proxy-caller", fmt.Sprintf("127.0.0.1:%d", modelPort), strconv.Itoa(callers), how},
		Stdin: in, Stdout: out, Stderr: &errs,
	})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("the callers inside failed: %s", strings.TrimSpace(errs.String()))
	}
	return err
}

// held opens streams from inside whose readers are slow, and looks at the memory
// of both ends of the wire.
func (w *wireStage) held(ctx context.Context, r *Report) error {
	before, err := w.memory()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input, end := io.Pipe()
	output, open := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := w.callInside(ctx, wireStreams, "held", input, open)
		_ = open.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
		done <- err
	}()
	if _, err := io.ReadFull(output, make([]byte, len(allOpen))); err != nil {
		return err
	}
	during, err := w.memory()
	if err = errors.Join(err, end.Close(), <-done); err != nil {
		return err
	}
	r.Ratios = append(r.Ratios, atMost("128 open streams over a wire: memory of a stream at both ends, KB", float64(during-before)/wireStreams/1e3, 100))
	return nil
}

// memory is what the proxy and the guest hold.
func (w *wireStage) memory() (int64, error) {
	s, err := w.proxy.status()
	return s.Memory + residentBytes(w.guest), err
}

// allOpen is what callers that hold their streams say when all are open.
const allOpen = "open\n"

// ProxyCallers are a process in a sandbox that calls a model through the proxy.
type ProxyCallers struct {
	Address string
	Count   int    // each has one stream
	How     string // they are answered; with "held" they stop reading after the first piece
}

// Call calls. Callers that hold their streams do so until the end of the input.
func (c *ProxyCallers) Call(ctx context.Context, in io.Reader, out io.Writer) error {
	request := question(1500, true, c.How)
	if c.How != "held" {
		return flood(ctx, c.Address, c.Count, 1, request)
	}
	conns, err := hold(ctx, c.Address, c.Count, request)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	if _, err = io.WriteString(out, allOpen); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
