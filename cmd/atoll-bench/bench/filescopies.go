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
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// largeCopies measures large files beside a raw copy over the same transport,
// for each transport.
func (f *filesStage) largeCopies(ctx context.Context, r *Report) error {
	content := make([]byte, largeFile)
	_, _ = rand.Read(content)
	if err := os.WriteFile(f.onHost("large"), content, 0o644); err != nil {
		return err
	}
	attached := machine.New(f.overAttach, nil)
	defer attached.Close()
	throughAttach, err := guestfs.New(attached, rootsOf(f.stage))
	if err != nil {
		return err
	}
	for _, t := range []transport{{"socket", f.files, f.rawOverSocket}, {"attach", throughAttach, f.rawOverAttach}} {
		fmt.Fprintf(f.options.Progress, "large copies (%s) …\n", t.name)
		if err := f.copyBeside(ctx, r, t, content); err != nil {
			return err
		}
	}
	return nil
}

// transport is a way to the files inside, and a raw copy that takes the same.
type transport struct {
	name  string
	files *guestfs.Files
	raw   func(context.Context) (*rawCopy, error)
}

// copyBeside measures one transport.
func (f *filesStage) copyBeside(ctx context.Context, r *Report, t transport, content []byte) error {
	raw, err := t.raw(ctx)
	if err != nil {
		return err
	}
	defer raw.Close()
	write := func(sync bool) error {
		_, err := t.files.WriteFrom(ctx, f.inside("written"), bytes.NewReader(content), &guestfs.WriteOptions{Sync: sync})
		return err
	}
	sides := []struct {
		name    string
		run     func() error
		samples []float64
	}{
		{"read over the wire", func() error { return readLarge(ctx, t.files, f.inside("large")) }, nil},
		{"read by a raw copy", raw.read, nil},
		{"write over the wire", func() error { return write(false) }, nil},
		{"write by a raw copy", func() error { return raw.write(rawWrite, content) }, nil},
		{"write over the wire, synced to disk", func() error { return write(true) }, nil},
		{"write by a raw copy, synced to disk", func() error { return raw.write(rawSync, content) }, nil},
	}
	for range copyRounds {
		for i := range sides {
			start := time.Now()
			if err := sides[i].run(); err != nil {
				return fmt.Errorf("%s: %w", sides[i].name, err)
			}
			sides[i].samples = append(sides[i].samples, float64(largeFile)/1e6/time.Since(start).Seconds())
		}
	}
	rows := make([]Row, len(sides))
	for i, side := range sides {
		rows[i] = row("16 MiB "+side.name+" ("+t.name+")", "MB/s", side.samples)
	}
	r.Rows = append(r.Rows, rows...)
	r.Ratios = append(r.Ratios,
		atLeast("16 MiB read: the wire against a raw copy, p50 ("+t.name+")", rows[0].P50/rows[1].P50, rawCopyShare),
		atLeast("16 MiB write: the wire against a raw copy, p50 ("+t.name+")", rows[2].P50/rows[3].P50, rawCopyShare))
	return nil
}

func readLarge(ctx context.Context, files *guestfs.Files, name string) error {
	reader, err := files.Open(ctx, name, nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, reader)
	if err == nil && n != largeFile {
		err = fmt.Errorf("%d bytes came", n)
	}
	return errors.Join(err, reader.Close())
}

// rawCopy talks to a bare program inside that copies between a file and a
// connection: no frames, no checks, the least a copy can cost.
type rawCopy struct{ net.Conn }

// What a rawCopy asks for.
const (
	rawRead  = "r" // the file's content
	rawWrite = "w" // to be a file, and one byte when it is
	rawSync  = "s" // the same, on disk
)

// rawProgram serves a connection to a socket that it makes, or its standard
// input and output.
const rawProgram = `
import os, socket, sys
size = 16 << 20
def serve(get, put):
    while True:
        verb = get(1)
        if not verb: return
        if verb == b"r":
            with open("large", "rb", buffering=0) as f:
                while b := f.read(262144): put(b)
            continue
        with open("raw.tmp", "wb", buffering=0) as f:
            left = size
            while left:
                b = get(min(left, 262144))
                if not b: return
                f.write(b); left -= len(b)
            if verb == b"s": os.fsync(f.fileno())
        os.replace("raw.tmp", "raw"); put(b".")
def putAll(b):
    while b: b = b[os.write(1, b):]
if len(sys.argv) == 1:
    serve(lambda n: os.read(0, n), putAll)
else:
    s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o666); s.listen(1)
    c, _ = s.accept()
    serve(c.recv, c.sendall)
`

// rawOverSocket connects to a raw copy on a unix socket in the workspace.
func (f *filesStage) rawOverSocket(ctx context.Context) (*rawCopy, error) {
	_, err := f.session.Machine.Start(ctx, &machine.Command{Argv: []string{"python3", "-c", rawProgram, "raw.sock"}, Dir: f.session.Plan.Spec.Workdir})
	if err != nil {
		return nil, err
	}
	for range 500 {
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", f.onHost("raw.sock")); err == nil {
			return &rawCopy{conn}, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.New("the raw copy inside did not start")
}

// rawOverAttach connects to a raw copy through an exec of the engine.
func (f *filesStage) rawOverAttach(ctx context.Context) (*rawCopy, error) {
	conn, err := f.attach(ctx, f.session.Plan.Spec.Workdir, "python3", "-c", rawProgram)
	if err != nil {
		return nil, err
	}
	return &rawCopy{conn}, nil
}

func (c *rawCopy) read() error {
	if _, err := io.WriteString(c, rawRead); err != nil {
		return err
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(c, largeFile), make([]byte, 256<<10))
	return err
}

func (c *rawCopy) write(verb string, content []byte) error {
	if _, err := io.WriteString(c, verb); err != nil {
		return err
	}
	if _, err := c.Write(content); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}
