package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const sandboxes = "/api/v1/sandboxes"

// CreateSandbox makes a sandbox and starts it.
func (c *Client) CreateSandbox(ctx context.Context, q *api.CreateSandbox) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodPost, sandboxes, q)
}

// Sandbox returns a sandbox by its id, or by its name.
func (c *Client) Sandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return get[api.Sandbox](ctx, c, pathWith(sandboxes+"/", id, ""), nil)
}

// SandboxMetrics returns what a sandbox uses.
func (c *Client) SandboxMetrics(ctx context.Context, id string) (*api.SandboxMetrics, error) {
	return get[api.SandboxMetrics](ctx, c, pathWith(sandboxes+"/", id, "/metrics"), nil)
}

// ExtendSandbox moves the deadline of a sandbox to so many seconds from now.
func (c *Client) ExtendSandbox(ctx context.Context, id string, seconds int64) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/extend"), &api.ExtendSandbox{TimeoutSeconds: seconds})
}

// StopSandbox stops a sandbox and all its commands; its files stay.
func (c *Client) StopSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/stop"), nil)
}

// StartSandbox starts a stopped sandbox.
func (c *Client) StartSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/start"), nil)
}

// RemoveSandbox ends a sandbox, whatever is done in it, and removes it with its files.
func (c *Client) RemoveSandbox(ctx context.Context, id string) (*api.Sandbox, error) {
	return do[api.Sandbox](ctx, c, http.MethodDelete, pathWith(sandboxes+"/", id, ""), nil)
}

// Exec runs a command in a sandbox and waits for its end.
func (c *Client) Exec(ctx context.Context, id string, q *api.ExecRequest) (*api.ExecResult, error) {
	return do[api.ExecResult](ctx, c, http.MethodPost, pathWith(sandboxes+"/", id, "/exec"), q)
}

// Output is where what a command prints is written as it comes; nil discards.
type Output struct {
	Stdout, Stderr io.Writer
	From           api.OutputQuery // offsets to begin at, in the output of a process
}

func (o *Output) follower() *execFollower {
	return &execFollower{writers: map[string]io.Writer{api.ExecStdout: o.Stdout, api.ExecStderr: o.Stderr}}
}

// ExecStream runs a command and writes what it prints to the writers as it comes. A
// writer that is slow holds the command up. Ending ctx ends the command.
func (c *Client) ExecStream(ctx context.Context, id string, q *api.ExecRequest, out Output) (*api.ExecResult, error) {
	response, err := c.send(ctx, &request{method: http.MethodPost, path: pathWith(sandboxes+"/", id, "/exec"), body: q, header: map[string]string{"Accept": "text/event-stream"}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	f := out.follower()
	if err := readEvents(response.Body, f.take); !errors.Is(err, errEnded) {
		return nil, fmt.Errorf("the command's stream: %w", err)
	}
	return f.result, nil
}

// execFollower takes the events of one command.
type execFollower struct {
	writers map[string]io.Writer
	result  *api.ExecResult
}

func (f *execFollower) take(name string, data []byte) error {
	switch name {
	case api.ExecStdout, api.ExecStderr:
		var output api.ExecOutput
		if err := json.Unmarshal(data, &output); err != nil || f.writers[name] == nil {
			return err
		}
		_, err := f.writers[name].Write(output.Data)
		return err
	case api.ExecEnded:
		f.result = &api.ExecResult{}
		if err := json.Unmarshal(data, f.result); err != nil {
			return err
		}
		return errEnded
	case api.ExecProblem:
		p := &api.Problem{}
		return errors.Join(json.Unmarshal(data, p), p)
	}
	return nil
}
