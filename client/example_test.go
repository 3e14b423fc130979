//go:build linux

package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

// gateway starts a gateway whose agent runs its task as a shell script, and
// returns a client of it.
func gateway(ctx context.Context) (c *client.Client, stop func()) {
	g, err := gatewaytest.Start(ctx)
	if err != nil {
		panic(err)
	}
	if c, err = client.New(client.Options{URL: g.URL, Token: g.Token}); err != nil {
		panic(err)
	}
	return c, func() { c.Close(); g.Close() }
}

// Start a run, follow its events until it is over, and print the answer.
func ExampleClient_Events() {
	ctx := context.Background()
	c, stop := gateway(ctx)
	defer stop()

	run, err := c.Start(ctx, &api.RunRequest{Message: "echo 'say working' >&2; echo done"}, "an-idempotency-key")
	if err != nil {
		panic(err)
	}
	run, err = c.Events(ctx, run.ID, 0, func(e api.Event) error {
		if e.Type == "text_delta" {
			fmt.Println("event:", e.Text)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("answer:", run.Text)
	// Output:
	// event: working
	// answer: done
}

// Starting twice with one idempotency key starts one run.
func ExampleClient_Start() {
	ctx := context.Background()
	c, stop := gateway(ctx)
	defer stop()

	request := &api.RunRequest{Message: "echo once"}
	first, err := c.Start(ctx, request, "the-same-key")
	if err != nil {
		panic(err)
	}
	second, err := c.Start(ctx, request, "the-same-key")
	if err != nil {
		panic(err)
	}
	runs, err := c.Runs(ctx, api.RunQuery{})
	if err != nil {
		panic(err)
	}
	fmt.Println(first.ID == second.ID, len(runs.Runs))
	// Output: true 1
}

// Send a message to a session and print the answer.
func ExampleClient_Send() {
	ctx := context.Background()
	c, stop := gateway(ctx)
	defer stop()

	task, err := c.Send(ctx, "agent:main:support", &api.SendRequest{Message: "hello"}, "")
	if err != nil {
		panic(err)
	}
	fmt.Println(task.Text)
	// Output: you said hello
}

// An error that the gateway answered is an *api.Problem.
func ExampleClient_Run() {
	ctx := context.Background()
	c, stop := gateway(ctx)
	defer stop()

	_, err := c.Run(ctx, "no-such-run")
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		fmt.Println(problem.Status, problem.Code)
	}
	// Output: 404 run_not_found
}
