package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

func TestDataRoundTrip(t *testing.T) {
	for _, large := range []bool{false, true} {
		for _, size := range []int{0, 1, 64<<10 - 6, 64<<10 - 5, 64 << 10, 256 << 10, 256<<10 + 1, 1<<20 + 3} {
			content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			var b bytes.Buffer
			w := wire.NewDataWriter(&b)
			if large {
				w.Large()
			}
			n, err := w.Write(content)
			if n != size || err != nil || w.End() != nil {
				t.Fatal(n, err)
			}
			w.Close()
			d := wire.NewReader(&b).Data()
			got, err := io.ReadAll(d)
			if err != nil || !bytes.Equal(got, content) || !d.Ended() {
				t.Errorf("size %d, large %v: %d bytes, %v", size, large, len(got), err)
			}
			if _, err := d.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v", err)
			}
		}
	}
}

func TestDataRefusals(t *testing.T) {
	frame := func(kind byte, length ...byte) []byte { return append([]byte{kind}, length...) }
	data, end := byte(wire.FrameData), byte(wire.FrameDataEnd)
	tests := map[string]struct {
		in   []byte
		want error
	}{
		"nothing":            {nil, io.ErrUnexpectedEOF},
		"half a header":      {[]byte{data, 0}, io.ErrUnexpectedEOF},
		"half a frame":       {append(frame(data, 0, 0, 0, 9), "half"...), io.ErrUnexpectedEOF},
		"empty frame":        {frame(data, 0, 0, 0, 0), wire.ErrProtocol},
		"too large":          {frame(data, 0, 16, 0, 1), wire.ErrProtocol},
		"end with a payload": {frame(end, 0, 0, 0, 1), wire.ErrProtocol},
		"endless other":      {frame(byte(wire.FrameResult), 255, 255, 255, 255), wire.ErrProtocol},
	}
	for name, tt := range tests {
		_, err := io.ReadAll(wire.NewReader(bytes.NewReader(tt.in)).Data())
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	_, err := io.ReadAll(wire.NewReader(bytes.NewReader(append(frame(byte(wire.FrameError), 0, 0, 0, 2), "{}"...))).Data())
	if stop, ok := errors.AsType[*wire.Interrupt](err); !ok || stop.Type != wire.FrameError || string(stop.Payload) != "{}" {
		t.Errorf("interrupt: %v", err)
	}
}

// TestDataGoesOnAfterADeadline cuts every place of two frames with a deadline.
func TestDataGoesOnAfterADeadline(t *testing.T) {
	var b bytes.Buffer
	w := wire.NewDataWriter(&b)
	_, _ = w.Write([]byte("hello"))
	_, _ = w.Write([]byte("world"))
	_ = w.End()
	w.Close()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() {
		for _, c := range b.Bytes() {
			time.Sleep(2 * time.Millisecond)
			_, _ = theirs.Write([]byte{c})
		}
	}()
	d := wire.NewReader(ours).Data()
	var got []byte
	buf := make([]byte, 100)
	deadlines := 0
	for {
		_ = ours.SetReadDeadline(time.Now().Add(time.Millisecond))
		n, err := d.Read(buf)
		got = append(got, buf[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			deadlines++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if string(got) != "helloworld" || deadlines == 0 {
		t.Errorf("%q after %d deadlines", got, deadlines)
	}
}

func FuzzData(f *testing.F) {
	f.Add([]byte("\x20\x00\x00\x00\x02hi\x21\x00\x00\x00\x00"), 3)
	f.Add([]byte("\x20\x00\x00\x00\x00"), 1)
	f.Add([]byte("\x16\x00\x00\x00\x02{}"), 100)
	f.Add([]byte("\x20\xff\xff\xff\xff"), 7)
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		d := wire.NewReader(bytes.NewReader(in)).Data()
		buf := make([]byte, min(max(step, 1), 1000))
		total := 0
		for {
			n, err := d.Read(buf)
			total += n
			if err != nil {
				break
			}
			if n == 0 {
				t.Fatal("no progress")
			}
		}
		if total > len(in) {
			t.Errorf("%d bytes out of %d", total, len(in))
		}
	})
}
