// Command ask gives a task to an agent of a gateway, follows its events and prints
// the answer. The gateway is named by ATOLL_URL, the token by ATOLL_TOKEN.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := ask(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// ask starts a run and waits for its end.
func ask(ctx context.Context, task string) error {
	gateway, err := client.New(client.Options{URL: os.Getenv("ATOLL_URL"), Token: os.Getenv("ATOLL_TOKEN")})
	if err != nil {
		return err
	}
	defer gateway.Close()
	run, err := gateway.Start(ctx, &api.RunRequest{Message: task}, "")
	if err != nil {
		return err
	}
	fmt.Println("run", run.ID)
	if run, err = gateway.Events(ctx, run.ID, 0, show); err != nil {
		return err
	}
	if run.Error != nil {
		return errors.New(run.Error.Message)
	}
	fmt.Println(run.Text)
	return nil
}

// show prints the steps of a run.
func show(e api.Event) error {
	if e.Step != "" {
		fmt.Println("step", e.Step)
	}
	return nil
}
