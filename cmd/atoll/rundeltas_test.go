//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// What the agent of a run says is on the live topic of the run word by word, as the model
// says it, in order and before the answer: from the model, through the proxy, the agent
// inside, its sandbox and the gateway.
func TestRunDeltasLive(t *testing.T) {
	t.Parallel()
	words := []string{"wind ", "over ", "calm ", "blue ", "sea "} // of one length: each is a part of the stream
	pace := make(chan struct{})
	r := newReader(t, nil)
	r.useScript(fakellm.Turn{Text: strings.Join(words, ""), Pieces: len(words), Pace: pace})
	r.startPrivate()
	c, err := client.New(client.Options{Socket: r.path(".atoll/gateway.sock")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun, err := c.Start(t.Context(), &api.RunRequest{GraphID: "sandbox:agent", Message: "Say something."}, "")
	if err != nil {
		t.Fatal(err)
	}
	l := &liveRun{t: t, ws: r.followLive("run:" + begun.ID)}
	pace <- struct{}{} // the beginning of the stream, without words
	for i := range words {
		pace <- struct{}{}
		l.until(func() bool { return l.text == strings.Join(words[:i+1], "") })
		if l.run.Step == "done" || l.run.Text != "" {
			t.Errorf("the model has not ended, and the run is %+v", l.run)
		}
	}
	close(pace)
	l.until(func() bool { return l.run.Step == "done" })
	if said := strings.Join(words, ""); l.text != said || strings.TrimSpace(l.run.Text) != strings.TrimSpace(said) || l.run.Error != nil {
		t.Errorf("%q was told, and the run is %+v", l.text, l.run)
	}
}

// useScript gives the reader a model that says one thing.
func (r *reader) useScript(turn fakellm.Turn) {
	r.t.Helper()
	server, err := litellmtest.Listen(r.t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{
		MasterKey: readersKey, Models: map[string]litellmtest.Model{"words": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{turn}}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = server.Close() })
	r.env = append(r.env, "LITELLM_MASTER_KEY="+readersKey)
	r.mkdir(".atoll")
	r.chmod(".atoll", 0o700)
	r.write(".atoll/atoll.json5", fmt.Sprintf(modelConfig, server.URL()), 0o600)
}

// followLive subscribes to a live topic over the owner's socket.
func (r *reader) followLive(topic string) *websocket.Conn {
	r.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.path(".atoll/gateway.sock"))
	}
	ws, _, err := websocket.Dial(r.t.Context(), "ws://localhost/api/v1/live", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(8 << 20)
	text, err := json.Marshal(&api.LiveRequest{Type: api.LiveSubscribe, Topic: topic})
	if err == nil {
		err = ws.Write(r.t.Context(), websocket.MessageText, text)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return ws
}

// liveRun is a run as its topic tells it.
type liveRun struct {
	t    *testing.T
	ws   *websocket.Conn
	run  api.Run
	text string // of its deltas
	seq  int64
}

// until reads messages until something is so.
func (l *liveRun) until(isSo func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	for !isSo() {
		_, data, err := l.ws.Read(ctx)
		if err != nil {
			l.t.Fatalf("%v after %q, the run is %+v", err, l.text, l.run)
		}
		var m api.LiveMessage
		if err := json.Unmarshal(data, &m); err != nil {
			l.t.Fatal(err)
		}
		l.take(&m)
	}
}

func (l *liveRun) take(m *api.LiveMessage) {
	l.t.Helper()
	for _, row := range m.Rows {
		l.run = api.Run{}
		if err := json.Unmarshal(row, &l.run); err != nil {
			l.t.Fatal(err)
		}
	}
	for i := range m.Events {
		e := &m.Events[i]
		if e.Seq <= l.seq {
			l.t.Errorf("event %d after %d", e.Seq, l.seq)
		}
		if l.seq = e.Seq; e.Type == "text_delta" {
			l.text += e.Text
		}
	}
}
