package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
)

func (o *testServer) clientOf(url, token string) *client.Client {
	o.t.Helper()
	c, err := client.New(client.Options{URL: url, Token: token})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(c.Close)
	return c
}

// cuttingListener ends every connection after some bytes, as bad networks do.
type cuttingListener struct {
	http.Handler
	cuts atomic.Int64
}

type shortWriter struct {
	http.ResponseWriter
	left int
}

func (w *shortWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		_, _ = w.ResponseWriter.Write(b[:max(0, len(b)+w.left)])
		w.Flush()
		panic(http.ErrAbortHandler)
	}
	return w.ResponseWriter.Write(b)
}

func (w *shortWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (c *cuttingListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if broken := recover(); broken != nil {
			c.cuts.Add(1)
			panic(broken)
		}
	}()
	c.Handler.ServeHTTP(&shortWriter{w, 2500}, r)
}

// A client that loses its connection again and again receives every event once.
func TestClientReconnects(t *testing.T) {
	o := newServer(t, nil)
	cut := &cuttingListener{Handler: o.rest}
	server := httptest.NewServer(cut)
	defer server.Close()
	run := o.start("alice", `i=0; while [ $i -lt 40 ]; do echo "say word $i" >&2; i=$((i+1)); sleep 0.02; done; echo end`)
	var got []int64
	last, err := o.clientOf(server.URL, "alice").Events(t.Context(), run.ID, 0, func(e api.Event) error { got = append(got, e.Seq); return nil })
	if err != nil || last.Text != "end" || cut.cuts.Load() == 0 {
		t.Fatalf("%+v, %v, %d cuts", last, err, cut.cuts.Load())
	}
	want := make([]int64, len(got))
	for i := range want {
		want[i] = int64(i + 1)
	}
	if !slices.Equal(got, want) || len(got) < 48 {
		t.Errorf("%v", got)
	}
}

func TestClient(t *testing.T) {
	o := newServer(t, nil)
	c := o.clientOf(o.url, "alice")
	ctx := t.Context()
	agents, err := c.Agents(ctx)
	if err != nil || len(agents.Agents) != 1 {
		t.Fatalf("%+v, %v", agents, err)
	}
	first, err := c.Start(ctx, &api.RunRequest{Message: "echo hi"}, "key")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Start(ctx, &api.RunRequest{Message: "echo hi"}, "key"); err != nil || again.ID != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if last, err := c.Events(ctx, first.ID, 0, func(api.Event) error { return nil }); err != nil || last.Text != "hi" {
		t.Errorf("%+v, %v", last, err)
	}
	enough := errors.New("enough")
	if _, err := c.Events(ctx, first.ID, 0, func(api.Event) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if page, err := c.Runs(ctx, api.RunQuery{Limit: 1}); err != nil || len(page.Runs) != 1 || page.Next != first.ID {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err := c.EventPage(ctx, first.ID, 2); err != nil || page.Events[0].Seq != 3 {
		t.Errorf("%+v, %v", page, err)
	}
	_, err = o.clientOf(o.url, "bob").Run(ctx, first.ID)
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != "run_not_found" || p.RequestID == "" {
		t.Error(err)
	}
	if _, err := o.clientOf(o.url, "nobody").Agents(ctx); err == nil {
		t.Error("a wrong token is let in")
	}
	if said, err := c.Send(ctx, "agent:main:alice:x/y", &api.SendRequest{Message: "hi"}, ""); err != nil || said.Text != "you said hi" {
		t.Errorf("%+v, %v", said, err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Events(over, first.ID, 0, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, o := range []client.Options{{}, {URL: "ftp://x"}, {URL: "http://u:p@x"}, {URL: "http://x", Socket: "y"}} {
		if _, err := client.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
