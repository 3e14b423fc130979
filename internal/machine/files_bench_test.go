package machine_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// rawPeer, if set, makes the test program the peer that transfers are compared
// with: it moves files over the socket of that name, without any protocol.
const rawPeer = "ATOLL_TEST_RAW_PEER"

// TestRawPeer is that peer, when it is started as one, and no test otherwise.
func TestRawPeer(t *testing.T) {
	socket := os.Getenv(rawPeer)
	if socket == "" {
		return
	}
	l, err := net.Listen("unix", socket)
	check(t, err)
	for {
		conn, err := l.Accept()
		check(t, err)
		go func() {
			defer conn.Close()
			for rawTransfer(conn) == nil {
			}
		}()
	}
}

// rawTransfer reads a direction and a length, and moves that much from or to a
// file.
func rawTransfer(conn net.Conn) error {
	var header [9]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint64(header[1:]))
	buf := make([]byte, 256<<10)
	path := os.Getenv(rawPeer) + ".data"
	if header[0] == 'r' {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(struct{ io.Writer }{conn}, io.LimitReader(f, size), buf)
		return err
	}
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(conn, size), buf); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	_, err = conn.Write([]byte{1})
	return err
}

// newRawPeer starts the peer, in another process as the guest is.
func newRawPeer(b *testing.B, dir string) net.Conn {
	b.Helper()
	socket := filepath.Join(dir, "raw.sock")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRawPeer$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), rawPeer+"="+socket)
	check(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for {
		if conn, err := net.Dial("unix", socket); err == nil {
			b.Cleanup(func() { conn.Close() })
			return conn
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	g := machinetest.Start(b, nil)
	m := g.Machine(b, nil)
	files, err := guestfs.New(m, []guestfs.Root{{Path: g.Dir}})
	check(b, err)
	ctx := b.Context()
	path := g.Dir + "/f"
	for _, size := range []int{4 << 10, 1 << 20, 16 << 20} {
		data := randomBytes(size)
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("write/%d/sync=%v", size, sync), func(b *testing.B) {
				b.SetBytes(int64(size))
				for b.Loop() {
					_, err := files.Write(ctx, path, data, &guestfs.WriteOptions{Sync: sync})
					check(b, err)
				}
			})
		}
		b.Run(fmt.Sprintf("read/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				_, err := files.Read(ctx, path, nil)
				check(b, err)
			}
		})
		b.Run(fmt.Sprintf("open/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			buf := make([]byte, 256<<10)
			for b.Loop() {
				r, err := files.Open(ctx, path, nil)
				check(b, err)
				_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, buf)
				check(b, err)
				_ = r.Close()
			}
		})
	}
	raw := newRawPeer(b, g.Dir)
	for _, size := range []int{4 << 10, 1 << 20, 16 << 20} {
		data, buf := randomBytes(size), make([]byte, size)
		header := func(kind byte) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, uint64(size)) }
		b.Run(fmt.Sprintf("raw-write/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				_, err := raw.Write(header('w'))
				check(b, err)
				_, err = raw.Write(data)
				check(b, err)
				_, err = io.ReadFull(raw, buf[:1])
				check(b, err)
			}
		})
		b.Run(fmt.Sprintf("raw-read/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				_, err := raw.Write(header('r'))
				check(b, err)
				_, err = io.ReadFull(raw, buf)
				check(b, err)
			}
		})
	}
}

// BenchmarkFilesAgainstRaw copies a large file in turns over the wire and
// without it, and reports how the medians compare.
func BenchmarkFilesAgainstRaw(b *testing.B) {
	const size = 16 << 20
	g := machinetest.Start(b, nil)
	files, err := guestfs.New(g.Machine(b, nil), []guestfs.Root{{Path: g.Dir}})
	check(b, err)
	raw := newRawPeer(b, g.Dir)
	data, buf := randomBytes(size), make([]byte, size)
	header := func(kind byte) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, size) }
	sides := []func(){
		func() { _, err := files.Write(b.Context(), g.Dir+"/f", data, nil); check(b, err) },
		func() {
			_, err := raw.Write(append(header('w'), data[:0]...))
			check(b, err)
			_, err = raw.Write(data)
			check(b, err)
			_, err = io.ReadFull(raw, buf[:1])
			check(b, err)
		},
		func() {
			r, err := files.Open(b.Context(), g.Dir+"/f", nil)
			check(b, err)
			defer r.Close()
			_, err = io.ReadFull(r, buf)
			check(b, err)
			_, err = r.Read(buf)
			wantErr(b, err, io.EOF)
		},
		func() {
			_, err := raw.Write(header('r'))
			check(b, err)
			_, err = io.ReadFull(raw, buf)
			check(b, err)
		},
		func() { _, err := files.Read(b.Context(), g.Dir+"/f", nil); check(b, err) },
	}
	times := make([][]time.Duration, len(sides))
	for b.Loop() {
		for i, side := range sides {
			begin := time.Now()
			side()
			times[i] = append(times[i], time.Since(begin))
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return times[i][len(times[i])/2].Seconds()
	}
	for i, name := range []string{"write", "raw-write", "open", "raw-read", "read"} {
		b.ReportMetric(size/1e6/median(i), name+"-MB/s")
	}
	b.ReportMetric(median(1)/median(0), "write/raw")
	b.ReportMetric(median(3)/median(2), "open/raw")
}
