package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
)

// What is claimed of the guest.
const (
	guestBinary  = 6 << 20 // bytes
	guestMemory  = 4 << 20 // bytes, when it rests
	guestReady   = 10_000  // µs after Dial, p50
	readyRounds  = 30
	restedAfter  = 10 * time.Second // of rest, after the first commands and after much work
	guestTraffic = 1 << 30          // bytes of work
)

// guestCost measures what the guest itself costs: its file, its memory when it
// is fresh and after much work, and the time until it answers.
func (s *stage) guestCost(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "the guest itself …")
	program, err := guestbin.For(runtime.GOARCH)
	if err != nil {
		return err
	}
	ready, err := s.untilReady(ctx)
	if err != nil {
		return err
	}
	fresh, err := s.restingMemory(ctx, restedAfter)
	if err != nil {
		return err
	}
	if err := s.moveMuch(ctx); err != nil {
		return err
	}
	rested, err := s.restingMemory(ctx, restedAfter)
	if err != nil {
		return err
	}
	times := row("guest, ready after Dial", "µs", ready)
	r.Rows = append(r.Rows, times,
		row("guest, binary", "bytes", []float64{float64(len(program))}),
		row("guest, memory, fresh", "bytes", []float64{fresh}),
		row("guest, memory, 10 s after 1 GiB", "bytes", []float64{rested}))
	r.Ratios = append(r.Ratios,
		atMost("guest, ready after Dial, p50 µs", times.P50, guestReady),
		atMost("guest, binary, bytes", float64(len(program)), guestBinary),
		atMost("guest, memory, fresh, bytes", fresh, guestMemory),
		atMost("guest, memory, 10 s after 1 GiB, bytes", rested, guestMemory))
	return nil
}

// restingMemory is the guest's resident memory after a rest. It is not asked
// itself: that would wake it.
func (s *stage) restingMemory(ctx context.Context, rest time.Duration) (float64, error) {
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	pid, err := s.guestProcess(ctx)
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kilobytes * 1024, err
		}
	}
	return 0, errors.New("the kernel does not tell the guest's memory")
}

// guestProcess is the guest's process, as the host sees it.
func (s *stage) guestProcess(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, "docker", "-H", s.options.Getenv("DOCKER_HOST"), "inspect", "-f", "{{.State.Pid}}", s.session.Name).Output()
	if err != nil {
		return 0, fmt.Errorf("docker inspect: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

func (s *stage) moveMuch(ctx context.Context) error {
	result, err := s.session.Machine.Exec(ctx, &machine.Command{
		Argv: []string{"head", "-c", fmt.Sprint(guestTraffic), "/dev/zero"}, Stdout: io.Discard,
	})
	if err == nil && result.Stdout.Total != guestTraffic {
		err = fmt.Errorf("%d bytes came of %d", result.Stdout.Total, guestTraffic)
	}
	return err
}

// untilReady is how long guests take from the end of a dial to their first
// answer.
func (s *stage) untilReady(ctx context.Context) ([]float64, error) {
	var times []float64
	for range readyRounds {
		var dialled time.Time
		m := machine.New(func(ctx context.Context) (net.Conn, error) {
			conn, err := s.overSocket(ctx)
			dialled = time.Now()
			return conn, err
		}, nil)
		err := m.Ping(ctx)
		times = append(times, microseconds(time.Since(dialled)))
		_ = m.Close()
		if err != nil {
			return nil, err
		}
	}
	return times, nil
}
