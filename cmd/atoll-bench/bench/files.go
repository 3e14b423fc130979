package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

const (
	smallFile, largeFile                            = 4 << 10, 16 << 20
	writeRounds, peerRounds, copyRounds, pingRounds = 300, 5, 20, 400

	peerWriteFactor = 100 // at least so many times quicker than the peer's write
	rawCopyShare    = 0.8 // of a raw copy over the same transport
	pingGrowth      = 3   // p99 beside two bulk reads against idle
)

// filesBench measures reading and writing files over the wire: a small one
// beside the way OpenClaw takes, a large one beside a raw copy.
func filesBench(ctx context.Context, o Options) (*Report, error) {
	s, err := newStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	f := &filesStage{stage: s}
	if f.files, err = guestfs.New(s.session.Machine, rootsOf(s)); err != nil {
		return nil, err
	}
	r := &Report{Bench: "files"}
	for _, part := range []func(context.Context, *Report) error{f.smallWrites, f.largeCopies, f.pings} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

type filesStage struct {
	*stage
	files *guestfs.Files
}

func rootsOf(s *stage) []guestfs.Root {
	var roots []guestfs.Root
	for _, m := range s.session.Plan.Spec.Mounts {
		roots = append(roots, guestfs.Root{Path: m.Target, ReadOnly: m.ReadOnly})
	}
	return roots
}

func (f *filesStage) inside(name string) string { return f.session.Plan.Spec.Workdir + "/" + name }

func (f *filesStage) onHost(name string) string {
	return filepath.Join(f.session.Plan.Layout.WorkspaceDir, name)
}

func (f *filesStage) smallWrites(ctx context.Context, r *Report) error {
	fmt.Fprintln(f.options.Progress, "small writes …")
	content := make([]byte, smallFile)
	_, _ = rand.Read(content)
	var plain, synced, peer []float64
	for i := range writeRounds {
		for _, side := range []struct {
			samples *[]float64
			sync    bool
		}{{&plain, false}, {&synced, true}} {
			start := time.Now()
			if _, err := f.files.Write(ctx, f.inside("notes/a.txt"), content, &guestfs.WriteOptions{MkdirAll: true, Sync: side.sync}); err != nil {
				return err
			}
			*side.samples = append(*side.samples, microseconds(time.Since(start)))
		}
		if i%(writeRounds/peerRounds) == 0 {
			took, err := f.peerWrite(ctx, content)
			if err != nil {
				return err
			}
			peer = append(peer, took)
		}
	}
	ours, safe, theirs := row("4 KiB write over the wire", "µs", plain), row("4 KiB write over the wire, synced to disk", "µs", synced),
		row("4 KiB write as OpenClaw does it: 20 docker exec", "µs", peer)
	r.Rows = append(r.Rows, ours, safe, theirs)
	r.Ratios = append(r.Ratios,
		atLeast("OpenClaw's write against the wire's, p50", theirs.P50/ours.P50, peerWriteFactor),
		atLeast("OpenClaw's write against the wire's, synced, p50", theirs.P50/safe.P50, peerWriteFactor))
	return nil
}

// peerCalls are the calls that OpenClaw 2026.9.6 was seen to make for one write
// of a file in a new directory: c resolves a path (a script of 840 bytes), s
// looks at a file, m makes a directory and w writes the file (a Python program
// of 24,530 bytes each).
const peerCalls = "ccccsccmccccccwcccsc"

func (f *filesStage) peerWrite(ctx context.Context, content []byte) (float64, error) {
	start := time.Now()
	for _, call := range peerCalls {
		if err := f.peerCall(ctx, call, content); err != nil {
			return 0, err
		}
	}
	return microseconds(time.Since(start)), nil
}

func (f *filesStage) peerCall(ctx context.Context, call rune, content []byte) error {
	python := "import os,sys\nd=" + fmt.Sprintf("%q", f.inside("notes")) + "\nos.makedirs(d,exist_ok=True)\n"
	var script string
	switch call {
	case 'c':
		script = pad("readlink -f -- "+f.inside("notes")+" >/dev/null || true\n", 840)
	case 's':
		script = "stat -c '%F|%s|%y' -- " + f.inside("notes/a.txt") + " 2>/dev/null || true"
	case 'm':
		script = "python3 - <<'END'\n" + pad(python, 24_530) + "\nEND"
	case 'w':
		python += "t=d+'/.tmp'\nwith open(t,'wb') as f:\n f.write(open(0,'rb').read()); f.flush(); os.fsync(f.fileno())\nos.replace(t,d+'/a.txt')\n"
		script = "python3 -c " + shellWord(pad(python, 24_530))
	}
	cmd := exec.CommandContext(ctx, "docker", "-H", f.options.Getenv("DOCKER_HOST"), "exec", "-i", f.session.Name, "sh", "-c", script)
	cmd.Stdin = bytes.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker exec: %w: %s", err, out)
	}
	return nil
}

// pad brings a script to its recorded length with a comment.
func pad(script string, length int) string {
	return script + "#" + strings.Repeat("-", max(0, length-len(script)-1))
}

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// pings shows that a large transfer does not hold up a small request.
func (f *filesStage) pings(ctx context.Context, r *Report) error {
	fmt.Fprintln(f.options.Progress, "pings beside bulk reads …")
	idle, err := f.pingTimes(ctx)
	if err != nil {
		return err
	}
	busy, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for busy.Err() == nil {
				_ = readLarge(busy, f.files, f.inside("large"))
			}
		})
	}
	beside, err := f.pingTimes(ctx)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	quiet, loaded := row("ping, idle", "µs", idle), row("ping beside two bulk reads", "µs", beside)
	r.Rows = append(r.Rows, quiet, loaded)
	r.Ratios = append(r.Ratios, atMost("ping p99 beside two bulk reads against idle", loaded.P99/quiet.P99, pingGrowth))
	return nil
}

func (f *filesStage) pingTimes(ctx context.Context) ([]float64, error) {
	var times []float64
	for range pingRounds {
		start := time.Now()
		if err := f.session.Machine.Ping(ctx); err != nil {
			return nil, err
		}
		times = append(times, microseconds(time.Since(start)))
	}
	return times, nil
}
