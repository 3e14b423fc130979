package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// processPath returns the path of a process of a sandbox, and what follows it.
func processPath(id, process, after string) string {
	return pathWith(sandboxes+"/", id, "/processes/") + pathWith("", process, after)
}

// StartProcess starts a command in the background of a sandbox.
func (c *Client) StartProcess(ctx context.Context, id string, q *api.StartProcess) (*api.Process, error) {
	return do[api.Process](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/processes"), q)
}

// Processes lists the commands in the background of a sandbox.
func (c *Client) Processes(ctx context.Context, id string) (*api.Processes, error) {
	return get[api.Processes](ctx, c, pathWith(sandboxes+"/", id, "/processes"), nil)
}

// Process returns a process at once, or when it has ended or so many seconds are over.
func (c *Client) Process(ctx context.Context, id, process string, waitSeconds int) (*api.Process, error) {
	return get[api.Process](ctx, c, processPath(id, process, ""), api.ProcessQuery{WaitSeconds: waitSeconds})
}

// ProcessOutput returns what is kept of a process's output.
func (c *Client) ProcessOutput(ctx context.Context, id, process string, q api.OutputQuery) (*api.ProcessOutput, error) {
	return get[api.ProcessOutput](ctx, c, processPath(id, process, "/output"), q)
}

// FollowProcess writes what a process prints to the writers until it ends. A writer that is slow holds the process up; ending ctx does not end it.
func (c *Client) FollowProcess(ctx context.Context, id, process string, out Output) (*api.ExecResult, error) {
	response, err := c.send(ctx, &request{method: http.MethodGet, path: processPath(id, process, "/output"), query: out.From, header: map[string]string{"Accept": "text/event-stream"}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	f := out.follower()
	if err := readEvents(response.Body, f.take); !errors.Is(err, errEnded) {
		return nil, fmt.Errorf("the process's stream: %w", err)
	}
	return f.result, nil
}

// WriteProcess writes to the standard input of a process, and closes it if end is set.
func (c *Client) WriteProcess(ctx context.Context, id, process string, data []byte, end bool) error {
	_, err := do[api.ProcessChanged](ctx, c, http.MethodPost, processPath(id, process, "/input"), &api.ProcessInput{Data: data, End: end})
	return err
}

// SignalProcess sends a process a signal, such as SIGINT.
func (c *Client) SignalProcess(ctx context.Context, id, process string, q api.ProcessSignal) error {
	_, err := do[api.ProcessChanged](ctx, c, http.MethodPost, processPath(id, process, "/signal"), &q)
	return err
}

// ResizeProcess sets the size of a process's terminal.
func (c *Client) ResizeProcess(ctx context.Context, id, process string, size api.TerminalSize) error {
	_, err := do[api.ProcessChanged](ctx, c, http.MethodPost, processPath(id, process, "/resize"), &size)
	return err
}

// EndProcess ends a process with its descendants and forgets it.
func (c *Client) EndProcess(ctx context.Context, id, process string) (*api.Process, error) {
	return do[api.Process](ctx, c, http.MethodDelete, processPath(id, process, ""), nil)
}
