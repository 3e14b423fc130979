package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	options Options
	top     string
}

// overlayBench measures work on a directory through an overlay beside work on the
// directory itself, and how the calls of the gate grow with the directory.
func overlayBench(ctx context.Context, o Options) (_ *Report, err error) {
	top, err := os.MkdirTemp("", "atoll-overlay")
	if err != nil {
		return nil, err
	}
	s := &overlayStage{o, top}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.fill(ctx); err != nil {
		return nil, err
	}
	r := &Report{Bench: "overlay"}
	for _, part := range []func(context.Context, *Report) error{s.starts, s.statuses, s.work, s.applies} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// close removes the sandboxes and everything that was made.
func (s *overlayStage) close(ctx context.Context) error {
	_, err := s.atoll(context.WithoutCancel(ctx), "empty", "sandbox", "recreate", "--all", "--force", "--discard")
	return errors.Join(err, os.RemoveAll(s.top))
}

// fill makes the directories: an empty one, a small and a large one, and a second
// large one that is only worked on by the host.
func (s *overlayStage) fill(ctx context.Context) error {
	fmt.Fprintln(s.options.Progress, "making the directories …")
	config := `{ agents: { defaults: { sandbox: { overlay: { kind: "kernel" } } } } }`
	for _, dir := range []string{"empty", "home"} {
		if err := os.Mkdir(s.at(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.at("atoll.json5"), []byte(config), 0o600); err != nil {
		return err
	}
	for dir, files := range map[string]int{"small": overlaySmall, "large": overlayLarge, "host": overlayLarge} {
		if err := fillRepository(ctx, s.at(dir), files); err != nil {
			return err
		}
	}
	return nil
}

// fillRepository makes a repository with so many files, a hundred in a directory.
func fillRepository(ctx context.Context, dir string, files int) error {
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i%100)), []byte("a line\n"), 0o644); err != nil {
			return err
		}
	}
	script := `git init -q . && git add . && git -c user.name=b -c user.email=b@example.org commit -qm files && git status >/dev/null`
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git: %w: %s", err, out)
	}
	return nil
}

func (s *overlayStage) at(name string) string { return filepath.Join(s.top, name) }

// atoll runs the program in a directory and returns its output.
func (s *overlayStage) atoll(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.options.Atoll, args...)
	cmd.Dir = s.at(dir)
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+s.at("state"), "ATOLL_CONFIG="+s.at("atoll.json5"), "HOME="+s.at("home"))
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("atoll %q in %s: %w: %s", args, dir, err, problems.String())
	}
	return string(out), nil
}

// calls times one call in two directories in turn, after a first one in each.
func (s *overlayStage) calls(ctx context.Context, dirs [2]string, args ...string) (samples [2][]float64, err error) {
	for round := range overlayCalls + 1 {
		for i, dir := range dirs {
			start := time.Now()
			if _, err := s.atoll(ctx, dir, args...); err != nil {
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
		if _, err := s.atoll(ctx, dir, "shell", "--", "sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do for f in d$i/f?; do echo more >>$f; done; done"); err != nil {
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
		inside, host, err := s.beside(ctx, task.script)
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

// beside runs a script inside and on the host in turn. The first round is not
// counted. The script's own clock is used, so that calling it costs nothing.
func (s *overlayStage) beside(ctx context.Context, script string) (inside, host []float64, err error) {
	timed := "start=$(date +%s%N); " + script + "; echo $(($(date +%s%N)-start))"
	for round := range overlayRounds + 1 {
		n := strconv.Itoa(round)
		ours, err := s.atoll(ctx, "large", "shell", "--", "sh", "-c", timed, "sh", n)
		if err != nil {
			return nil, nil, err
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", timed, "sh", n)
		cmd.Dir = s.at("host")
		bare, err := cmd.Output()
		if err != nil {
			return nil, nil, err
		}
		one, err1 := strconv.ParseFloat(strings.TrimSpace(ours), 64)
		two, err2 := strconv.ParseFloat(strings.TrimSpace(string(bare)), 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, nil, err
		}
		if round > 0 {
			inside, host = append(inside, one/1e6), append(host, two/1e6)
		}
	}
	return inside, host, nil
}

// applies measures the approval of new files beside copying and syncing them.
func (s *overlayStage) applies(ctx context.Context, r *Report) error {
	fmt.Fprintln(s.options.Progress, "apply …")
	var ours, bare []float64
	for round := range overlayRounds {
		dir := fmt.Sprintf("applied%d", round)
		script := fmt.Sprintf("mkdir %s; i=0; while [ $i -lt %d ]; do echo a line of $i >%s/$i.txt; i=$((i+1)); done", dir, appliedFiles, dir)
		if _, err := s.atoll(ctx, "small", "shell", "--", "sh", "-c", script); err != nil {
			return err
		}
		if _, err := s.atoll(ctx, "small", "sync", "review"); err != nil {
			return err
		}
		start := time.Now()
		if _, err := s.atoll(ctx, "small", "sync", "approve", dir+"/**"); err != nil {
			return err
		}
		ours = append(ours, microseconds(time.Since(start))/milliseconds)
		start = time.Now()
		if err := copySynced(filepath.Join(s.at("small"), dir), s.at(dir)); err != nil {
			return err
		}
		bare = append(bare, microseconds(time.Since(start))/milliseconds)
	}
	approve, plain := row("sync approve of 200 files", "ms", ours), row("copy of 200 files, each synced", "ms", bare)
	r.Rows = append(r.Rows, approve, plain)
	r.Ratios = append(r.Ratios, atMost("apply against copy and fsync, p50", approve.P50/plain.P50, overlayApplyCost))
	return nil
}

// copySynced copies the files of a directory and syncs each.
func copySynced(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) != appliedFiles {
		return fmt.Errorf("%d files were applied, not %d", len(entries), appliedFiles)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(to, e.Name()))
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
