package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that reads no answers is not read any more either.
func TestUnreadAnswersStopReading(t *testing.T) {
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	server := sdk.NewServer(&sdk.Implementation{Name: "x", Version: "1"}, nil)
	ended := make(chan error, 1)
	session, err := server.Connect(t.Context(), &transport{in: toServer, out: fromServer, read: ended}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	go func() {
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i); err != nil {
				return
			}
			sent.Add(1)
		}
	}()
	before := int64(-1)
	for now := sent.Load(); now != before || now == 0; now = sent.Load() {
		before = now
		time.Sleep(50 * time.Millisecond)
	}
	if n := sent.Load(); n > maxWaiting+20 {
		t.Errorf("%d requests were read", n)
	}
	answers := bufio.NewScanner(out)
	for range 3 * maxWaiting { // it goes on when they are read
		if !answers.Scan() || !strings.Contains(answers.Text(), `"result"`) {
			t.Fatalf("%q, %v", answers.Text(), answers.Err())
		}
	}
	_ = in.Close()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the end of the input was not noticed")
	}
	_ = session.Close()
}

// A message that is too long ends the session.
func TestLongMessageEnds(t *testing.T) {
	ended := make(chan error, 1)
	endless := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`), forever{})
	session, err := sdk.NewServer(&sdk.Implementation{Name: "x", Version: "1"}, nil).Connect(context.WithoutCancel(t.Context()), &transport{in: io.NopCloser(endless), out: discard{}, read: ended}, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "maximum line length") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it is read on")
	}
	_ = session.Close()
}

type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
