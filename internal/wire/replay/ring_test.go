package replay_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/atoll-run/atoll/internal/wire/replay"
)

// pattern is a stream whose every byte tells its offset, as far as a byte can.
func pattern(from, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		at := from + int64(i)
		b[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return b
}

func TestRingReplaysWhatAWireLost(t *testing.T) {
	var r replay.Ring
	random := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 1<<16)
	var written, taken int64
	var received int64 // at least this much has arrived
	for range 2000 {
		if n := random.Int64N(100_000); random.IntN(2) == 0 {
			written += int64(r.Put(pattern(written, n)))
		}
		if random.IntN(10) == 0 { // the wire broke: go back as far as it may have lost
			received = max(received, taken-replay.Keep)
			taken = received + random.Int64N(taken-received+1)
			received = taken
			r.Rewind(taken)
		}
		n, gap := r.Take(buf[:random.IntN(len(buf))])
		if gap != 0 {
			t.Fatalf("at %d: %d bytes are lost", taken, gap)
		}
		if !bytes.Equal(buf[:n], pattern(taken, int64(n))) {
			t.Fatalf("at %d: wrong bytes", taken)
		}
		taken += int64(n)
	}
	if written < 10<<20 {
		t.Fatalf("only %d bytes were written: the test tests little", written)
	}
}

func TestRingMakesAWriterWait(t *testing.T) {
	var r replay.Ring
	total := 0
	for {
		n := r.Put(make([]byte, 50_000))
		total += n
		if n == 0 {
			break
		}
	}
	if total != replay.Keep+replay.Room {
		t.Errorf("held %d bytes, want %d", total, replay.Keep+replay.Room)
	}
	if n, _ := r.Take(make([]byte, 1000)); n != 1000 {
		t.Fatalf("took %d", n)
	}
	if n := r.Put([]byte("x")); n != 0 {
		t.Error("what was sent a moment ago may still be lost, and was overwritten")
	}
}

func TestRingLooseDropsTheOldest(t *testing.T) {
	r := replay.Ring{Loose: true}
	const total = 3 << 20
	for at := int64(0); at < total; at += 1 << 15 {
		if n := r.Put(pattern(at, 1<<15)); n != 1<<15 {
			t.Fatalf("put %d", n)
		}
	}
	buf := make([]byte, 1<<20)
	n, gap := r.Take(buf)
	if gap+int64(n) != total || n != replay.Keep+replay.Room {
		t.Fatalf("gap %d and %d bytes", gap, n)
	}
	if !bytes.Equal(buf[:n], pattern(gap, int64(n))) {
		t.Error("wrong bytes")
	}
}

func TestRingCap(t *testing.T) {
	tests := []struct {
		name              string
		total, head, tail int64
		wantGap           int64
	}{
		{"shorter than the head", 50, 100, 10, 0},
		{"just fits", 110, 100, 10, 0},
		{"one too long", 111, 100, 10, 1},
		{"much too long", 5 << 20, 1000, 500, 5<<20 - 1500},
		{"no head", 1000, 0, 10, 990},
		{"no tail", 1000, 10, 0, 990},
	}
	for _, tt := range tests {
		for _, prompt := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, prompt reader %v", tt.name, prompt), func(t *testing.T) {
				var r replay.Ring
				r.Cap(tt.head, tt.tail)
				var got []byte
				var gaps int64
				drain := func() {
					buf := make([]byte, 700)
					for r.Pending() {
						n, gap := r.Take(buf)
						gaps += gap
						got = append(got, buf[:n]...)
						if n == 0 {
							return
						}
					}
				}
				for at := int64(0); at < tt.total; {
					n := r.Put(pattern(at, min(4096, tt.total-at)))
					at += int64(n)
					if prompt || n == 0 {
						drain()
					}
				}
				if int64(len(got)) > tt.head {
					t.Fatalf("%d bytes came before the end, over the head", len(got))
				}
				r.Close()
				drain()
				want := pattern(0, tt.total)
				if tt.wantGap > 0 {
					want = append(pattern(0, tt.head), pattern(tt.total-tt.tail, tt.tail)...)
				}
				if gaps != tt.wantGap || !bytes.Equal(got, want) {
					t.Errorf("gap %d, %d bytes; want gap %d, %d bytes", gaps, len(got), tt.wantGap, len(want))
				}
			})
		}
	}
}

// TestRingCapForgetsTheHead attaches again when the head is gone.
func TestRingCapForgetsTheHead(t *testing.T) {
	var r replay.Ring
	r.Cap(1000, 500)
	buf := make([]byte, 2000)
	r.Put(pattern(0, 1000))
	if n, _ := r.Take(buf); n != 1000 {
		t.Fatalf("took %d", n)
	}
	for at := int64(1000); at < 1<<20; {
		at += int64(r.Put(pattern(at, 4096)))
	}
	r.Rewind(300) // the wire broke, and the rest of the head with it
	if r.Pending() {
		t.Error("there is nothing to take before the end")
	}
	r.Close()
	n, gap := r.Take(buf)
	if n != 500 || 300+gap+500 != r.End() || r.Pending() {
		t.Errorf("%d bytes after a gap of %d", n, gap)
	}
}
