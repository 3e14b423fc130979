package h1_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/h1"
)

func TestChunksAreGatheredAndReadBack(t *testing.T) {
	var w h1.ChunkWriter
	w.Begin([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
	w.Append([]byte("one "))
	w.Append([]byte("two "))
	out := string(w.Take(false))
	w.Append([]byte("three"))
	out += string(w.Take(true))
	answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(out)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "one two three" {
		t.Fatalf("%q %v", body, err)
	}
	w.Begin(nil)
	if got := string(w.Take(true)); got != h1.LastChunk {
		t.Fatalf("an empty body is %q", got)
	}
}
