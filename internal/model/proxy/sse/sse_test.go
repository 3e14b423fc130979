package sse_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/sse"
)

// events splits a stream that comes in pieces of n bytes.
func events(stream string, n int) (out []string, rest string, err error) {
	var s sse.Splitter
	for err == nil && stream != "" {
		piece := stream[:min(n, len(stream))]
		stream = stream[len(piece):]
		err = s.Write([]byte(piece), func(e []byte) error { out = append(out, string(e)); return nil })
	}
	return out, string(s.Rest()), err
}

func TestEventsAreFoundInAnyPieces(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		one := "event: a" + end + "data: 1" + end + end
		two := ": comment" + end + end
		three := "data: x" + end + "data:y" + end + end
		stream := one + two + three + "data: cut"
		for n := 1; n <= len(stream); n++ {
			got, rest, err := events(stream, n)
			if err != nil || strings.Join(got, "|") != one+"|"+two+"|"+three || rest != "data: cut" {
				t.Fatalf("line ends %q, pieces of %d: %q, rest %q, %v", end, n, got, rest, err)
			}
		}
	}
}

func TestData(t *testing.T) {
	for event, want := range map[string]string{
		"data: x\n\n": "x", "data:x\r\n\r\n": "x", "event: e\ndata: {\"a\":1}\n\n": `{"a":1}`, ": c\n\n": "", "data\n\n": "",
		"data: a\ndata: b\n\n": "a\nb", "data:  a\r\r": " a", "database: x\n\n": "", "data: 1\ndata: 2\ndata: 3\n\n": "1\n2\n3",
	} {
		if got := string(sse.Data(nil, []byte(event))); got != want {
			t.Errorf("%q: %q, want %q", event, got, want)
		}
	}
}

func TestAnEventIsBounded(t *testing.T) {
	line := strings.Repeat("x", 1<<20)
	if _, _, err := events(strings.Repeat(line, 6), 1<<16); !errors.Is(err, sse.ErrTooLarge) {
		t.Fatal(err)
	}
}

func TestSplittingAllocatesNothing(t *testing.T) {
	stream := []byte(strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", 20) + "data: part")
	rest := []byte("ial\n\n")
	var s sse.Splitter
	each := func([]byte) error { return nil }
	if n := testing.AllocsPerRun(100, func() {
		if err := errors.Join(s.Write(stream, each), s.Write(rest, each)); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%.0f allocations", n)
	}
}

// FuzzSplitter looks for streams that are split differently depending on the
// pieces they come in, and for bytes that get lost.
func FuzzSplitter(f *testing.F) {
	f.Add("data: a\n\ndata: b\r\n\r\n: c\r\rx", byte(1))
	f.Add("\r\n\n\r\r\n\r\n", byte(2))
	f.Fuzz(func(t *testing.T, stream string, n byte) {
		one, rest, _ := events(stream, int(n)+1)
		all, rest2, _ := events(stream, len(stream)+1)
		if strings.Join(one, "|")+rest != strings.Join(all, "|")+rest2 || strings.Join(one, "")+rest != stream {
			t.Fatalf("%q: %q %q in pieces of %d, %q %q in one", stream, one, rest, int(n)+1, all, rest2)
		}
		for _, event := range one {
			sse.Data(nil, []byte(event))
		}
	})
}
