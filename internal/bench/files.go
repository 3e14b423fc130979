package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

const (
	smallFile   = 4 << 10
	largeFile   = 16 << 20
	writeRounds = 300
	peerRounds  = 5
	copyRounds  = 20
	pingRounds  = 400

	peerWriteFactor = 100 // at least so many times quicker than the peer's write
	rawCopyShare    = 0.8 // of a raw copy over the same socket
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
	if f.files, err = s.session.Machine.Files(rootsOf(s)); err != nil {
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
	files *machine.Files
}

func rootsOf(s *stage) []machine.Root {
	var roots []machine.Root
	for _, m := range s.session.Plan.Spec.Mounts {
		roots = append(roots, machine.Root{Path: m.Target, ReadOnly: m.ReadOnly})
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
			if _, err := f.files.Write(ctx, f.inside("notes/a.txt"), content, &machine.WriteOptions{MkdirAll: true, Sync: side.sync}); err != nil {
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

func (f *filesStage) largeCopies(ctx context.Context, r *Report) error {
	fmt.Fprintln(f.options.Progress, "large copies …")
	content := make([]byte, largeFile)
	_, _ = rand.Read(content)
	if err := os.WriteFile(f.onHost("large"), content, 0o644); err != nil {
		return err
	}
	raw, err := f.startRawCopy(ctx)
	if err != nil {
		return err
	}
	sides := []struct {
		name    string
		run     func(context.Context, []byte) error
		samples []float64
	}{
		{"16 MiB read over the wire", f.readLarge, nil},
		{"16 MiB read by a raw copy over the same kind of socket", raw.read, nil},
		{"16 MiB write over the wire", f.writeLarge, nil},
		{"16 MiB write by a raw copy over the same kind of socket", raw.write, nil},
	}
	for range copyRounds {
		for i := range sides {
			start := time.Now()
			if err := sides[i].run(ctx, content); err != nil {
				return err
			}
			sides[i].samples = append(sides[i].samples, float64(largeFile)/1e6/time.Since(start).Seconds())
		}
	}
	rows := make([]Row, len(sides))
	for i, side := range sides {
		rows[i] = row(side.name, "MB/s", side.samples)
	}
	r.Rows = append(r.Rows, rows...)
	r.Ratios = append(r.Ratios,
		atLeast("16 MiB read: the wire against a raw copy, p50", rows[0].P50/rows[1].P50, rawCopyShare),
		atLeast("16 MiB write: the wire against a raw copy, p50", rows[2].P50/rows[3].P50, rawCopyShare))
	return nil
}

func (f *filesStage) readLarge(ctx context.Context, _ []byte) error {
	reader, err := f.files.Open(ctx, f.inside("large"), nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, reader)
	if err == nil && n != largeFile {
		err = fmt.Errorf("%d bytes came", n)
	}
	return errors.Join(err, reader.Close())
}

func (f *filesStage) writeLarge(ctx context.Context, content []byte) error {
	_, err := f.files.WriteFrom(ctx, f.inside("written"), bytes.NewReader(content), nil)
	return err
}

// rawCopy talks to a bare program inside that copies between a file and a unix
// socket in the workspace: no frames, no checks, the least a copy can cost.
type rawCopy struct{ socket string }

// rawProgram serves "r" (send the file) and "w" (take a file, then one byte).
const rawProgram = `
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("raw.sock"); os.chmod("raw.sock", 0o666); s.listen(1)
while True:
    c, _ = s.accept()
    if c.recv(1) == b"r":
        with open("large", "rb", buffering=0) as f:
            while True:
                b = f.read(262144)
                if not b: break
                c.sendall(b)
    else:
        with open("raw.tmp", "wb", buffering=0) as f:
            left = 16 << 20
            while left:
                b = c.recv(min(left, 262144))
                f.write(b); left -= len(b)
        os.replace("raw.tmp", "raw"); c.sendall(b".")
    c.close()
`

func (f *filesStage) startRawCopy(ctx context.Context) (*rawCopy, error) {
	_, err := f.session.Machine.Start(ctx, &machine.Command{Argv: []string{"python3", "-c", rawProgram}, Dir: f.session.Plan.Spec.Workdir})
	if err != nil {
		return nil, err
	}
	raw := &rawCopy{socket: f.onHost("raw.sock")}
	for range 500 {
		if _, err := os.Stat(raw.socket); err == nil {
			return raw, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.New("the raw copy inside did not start")
}

func (c *rawCopy) talk(ctx context.Context, verb string, then func(net.Conn) error) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, verb); err != nil {
		return err
	}
	return then(conn)
}

func (c *rawCopy) read(ctx context.Context, _ []byte) error {
	return c.talk(ctx, "r", func(conn net.Conn) error {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
		if err == nil && n != largeFile {
			err = fmt.Errorf("%d bytes came", n)
		}
		return err
	})
}

func (c *rawCopy) write(ctx context.Context, content []byte) error {
	return c.talk(ctx, "w", func(conn net.Conn) error {
		if _, err := conn.Write(content); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	})
}

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
				_ = f.readLarge(busy, nil)
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
