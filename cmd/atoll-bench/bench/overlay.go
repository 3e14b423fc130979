package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/overlaystage"
)

const (
	overlaySmall, overlayLarge = 1_000, 100_000 // files
	overlayCalls               = 20
	overlayRounds              = 5
	appliedFiles               = 200

	overlayGrowth     = 1.5 // of a call on a large tree against one on a small tree
	overlayWriteShare = 0.9 // of a bare sequential write
	overlayApplyCost  = 3   // of copying and syncing the same files
)

// overlayStage has directories that agents work on through overlays of the kernel.
type overlayStage struct {
	*overlaystage.Stage
	options Options
}

// overlayBench measures work on a directory through an overlay beside work on the
// directory itself, and how the calls of the gate grow with the directory.
func overlayBench(ctx context.Context, o Options) (_ *Report, err error) {
	fmt.Fprintln(o.Progress, "making the directories …")
	made, err := overlaystage.New(ctx, o.Atoll, map[string]int{"empty": 0, "small": overlaySmall, "large": overlayLarge, "host": overlayLarge})
	if err != nil {
		return nil, err
	}
	s := &overlayStage{made, o}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	r := &Report{Bench: "overlay"}
	for _, part := range []func(context.Context, *Report) error{s.starts, s.statuses, s.work, s.applies} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// calls times one call in two directories in turn, after a first one in each.
func (s *overlayStage) calls(ctx context.Context, dirs [2]string, args ...string) (samples [2][]float64, err error) {
	for round := range overlayCalls + 1 {
		for i, dir := range dirs {
			start := time.Now()
			if _, err := s.Atoll(ctx, dir, args...); err != nil {
				return samples, err
			}
			if round > 0 {
				samples[i] = append(samples[i], microseconds(time.Since(start))/milliseconds)
			}
		}
	}
	return samples, nil
}

func (s *overlayStage) starts(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "calls …")
	samples, err := s.calls(ctx, [2]string{"empty", "large"}, "shell", "--", "true")
	if err != nil {
		return err
	}
	empty, large := row("atoll shell -- true, empty directory", "ms", samples[0]), row("atoll shell -- true, 100,000 files", "ms", samples[1])
	r.Rows = append(r.Rows, empty, large)
	r.Ratios = append(r.Ratios, atMost("atoll shell -- true: 100,000 files against none, p50", large.P50/empty.P50, overlayGrowth))
	return nil
}

func (s *overlayStage) statuses(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "sync status …")
	for _, dir := range []string{"small", "large"} {
		if _, err := s.Atoll(ctx, dir, "shell", "--", "sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do for f in d$i/f?; do echo more >>$f; done; done"); err != nil {
			return err
		}
	}
	samples, err := s.calls(ctx, [2]string{"small", "large"}, "sync", "status")
	if err != nil {
		return err
	}
	small, large := row("sync status, 100 changes in 1,000 files", "ms", samples[0]), row("sync status, 100 changes in 100,000 files", "ms", samples[1])
	r.Rows = append(r.Rows, small, large)
	r.Ratios = append(r.Ratios, atMost("sync status: 100,000 files against 1,000, p50", large.P50/small.P50, overlayGrowth))
	return nil
}

// overlayTasks are done inside and on the host in turn; $1 differs by round.
var overlayTasks = []struct{ name, script string }{
	{"write 256 MiB", "dd if=/dev/zero of=big$1 bs=1M count=256 2>/dev/null"},
	{"create 2,000 files", "mkdir new$1; i=0; while [ $i -lt 2000 ]; do echo x >new$1/$i; i=$((i+1)); done"},
	{"first change of 300 files", "for f in d$((20+$1))/f* d$((30+$1))/f* d$((40+$1))/f*; do echo more >>$f; done"},
	{"git status", "git -c safe.directory='*' status >/dev/null"},
}

func (s *overlayStage) work(ctx context.Context, r *Report) error {
	for _, task := range overlayTasks {
		fmt.Fprintln(s.options.Progress, task.name, "…")
		inside, host, err := s.Beside(ctx, "large", "host", overlayRounds, task.script)
		if err != nil {
			return err
		}
		ours, bare := row(task.name+", inside", "ms", inside), row(task.name+", on the host", "ms", host)
		r.Rows = append(r.Rows, ours, bare)
		switch task.name {
		case "write 256 MiB":
			r.Ratios = append(r.Ratios, atLeast("sequential write: inside against the host, p50", bare.P50/ours.P50, overlayWriteShare))
		case "git status":
			r.Ratios = append(r.Ratios, atMost("git status, second time: inside against the host, p50", ours.P50/bare.P50, overlayGrowth))
		default:
			r.Ratios = append(r.Ratios, shown(task.name+": inside against the host, p50", ours.P50/bare.P50))
		}
	}
	return nil
}

// applies measures the approval of new files beside copying and syncing them.
func (s *overlayStage) applies(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "apply …")
	var ours, bare []float64
	for round := range overlayRounds {
		dir := fmt.Sprintf("applied%d", round)
		script := fmt.Sprintf("mkdir %s; i=0; while [ $i -lt %d ]; do echo a line of $i >%s/$i.txt; i=$((i+1)); done", dir, appliedFiles, dir)
		if _, err := s.Atoll(ctx, "small", "shell", "--", "sh", "-c", script); err != nil {
			return err
		}
		if _, err := s.Atoll(ctx, "small", "sync", "review"); err != nil {
			return err
		}
		start := time.Now()
		if _, err := s.Atoll(ctx, "small", "sync", "approve", dir+"/**"); err != nil {
			return err
		}
		ours = append(ours, microseconds(time.Since(start))/milliseconds)
		start = time.Now()
		if err := overlaystage.CopySynced(filepath.Join(s.At("small"), dir), s.At(dir), appliedFiles); err != nil {
			return err
		}
		bare = append(bare, microseconds(time.Since(start))/milliseconds)
	}
	approve, plain := row("sync approve of 200 files", "ms", ours), row("copy of 200 files, each synced", "ms", bare)
	r.Rows = append(r.Rows, approve, plain)
	r.Ratios = append(r.Ratios, atMost("apply against copy and fsync, p50", approve.P50/plain.P50, overlayApplyCost))
	return nil
}
