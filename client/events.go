package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
)

const (
	// maxEvent bounds one line of a stream, which may hold a run's answer.
	maxEvent = 64 << 20
	// firstWait and longestWait bound the time between two attempts to reconnect.
	firstWait, longestWait = 200 * time.Millisecond, 5 * time.Second
	// maxTries is how many attempts in a row may bring nothing new.
	maxTries = 10
)

// errEnded means that the stream was received to its end.
var errEnded = errors.New("the stream has ended")

// Events calls tell with the events of a run after a number, until the run is over,
// and returns the run. A connection that breaks is made again where it ended: every
// event is passed once.
func (c *Client) Events(ctx context.Context, id string, after int64, tell func(api.Event) error) (*api.Run, error) {
	return follow[api.Run](ctx, &follower{client: c, path: pathWith(runs+"/", id, "/events"), first: "run", end: "receipt", after: after, tell: tell})
}

// TaskEvents is Events for a task of a session.
func (c *Client) TaskEvents(ctx context.Context, id string, after int64, tell func(api.Event) error) (*api.Task, error) {
	return follow[api.Task](ctx, &follower{client: c, path: pathWith(tasks, id, "/events"), first: "task", end: "answer", after: after, tell: tell})
}

// follow reads a stream until its last event, which holds an A.
func follow[A any](ctx context.Context, f *follower) (*A, error) {
	wait := firstWait
	for failed := 0; ; {
		before := f.after
		err := f.connect(ctx)
		switch {
		case errors.Is(err, errEnded):
			last := new(A)
			if err := json.Unmarshal(f.last, last); err != nil {
				return nil, fmt.Errorf("the end: %w", err)
			}
			return last, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !f.shouldRetry(err):
			return nil, err
		}
		if f.after > before {
			failed, wait = 0, firstWait
		}
		if failed++; failed > maxTries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, longestWait)
	}
}

// follower reads the events of one run or task.
type follower struct {
	client      *Client
	path        string
	first, end  string // names of the events without a number
	after       int64
	tell        func(api.Event) error
	callbackErr error  // returned by tell
	last        []byte // the data of the end
}

// shouldRetry reports whether reconnecting may help: a gateway that refuses will
// refuse again, unless it is busy.
func (f *follower) shouldRetry(err error) bool {
	if f.callbackErr != nil {
		return false
	}
	var p *api.Problem
	return !errors.As(err, &p) || p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests
}

func (f *follower) connect(ctx context.Context) error {
	response, err := f.client.send(ctx, &request{method: http.MethodGet, path: f.path, header: map[string]string{
		"Accept": "text/event-stream", "Last-Event-ID": strconv.FormatInt(f.after, 10),
	}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return f.read(response.Body)
}

func (f *follower) read(r io.Reader) error { return readEvents(r, f.take) }

// readEvents parses server-sent events: fields of an event a line each, an empty line
// after. It returns the first error of take, or io.ErrUnexpectedEOF at the end.
func readEvents(r io.Reader, take func(name string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var name, data string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = value
		case lines.Text() == "" && data != "":
			if err := take(name, []byte(data)); err != nil {
				return err
			}
			name, data = "", ""
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func (f *follower) take(name string, data []byte) error {
	switch name {
	case f.first:
		return nil
	case f.end:
		f.last = data
		return errEnded
	}
	var e api.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	if e.Seq <= f.after {
		return nil
	}
	f.after = e.Seq
	f.callbackErr = f.tell(e)
	return f.callbackErr
}
