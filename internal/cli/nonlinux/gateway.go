package nonlinux

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/terminal"
)

// call makes a command of what is done with a gateway; show prints the answer for
// people.
func call[A any](e *env, cmd *cobra.Command, do func(context.Context, *client.Client, []string) (A, error), show func(A) error) *cobra.Command {
	var asJSON bool
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := e.open()
		if err != nil {
			return err
		}
		defer c.Close()
		answer, err := do(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(e.Out).Encode(answer)
		}
		return show(answer)
	}
	return cmd
}

func newRunsCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "Start and follow runs of a gateway", Example: "  atoll runs list"}
	cmd.AddCommand(newStartCommand(e),
		call(e, &cobra.Command{Use: "list", Short: "List runs, the latest first", Args: cobra.NoArgs, Example: "  atoll runs list"},
			func(ctx context.Context, c *client.Client, _ []string) (*api.Runs, error) {
				return c.Runs(ctx, api.RunQuery{})
			}, e.showRuns),
		call(e, &cobra.Command{Use: "show RUN", Short: "Show a run and its answer", Args: cobra.ExactArgs(1), Example: "  atoll runs show run-42"},
			func(ctx context.Context, c *client.Client, args []string) (*api.Run, error) {
				return c.Run(ctx, args[0])
			}, e.showRun),
		call(e, &cobra.Command{Use: "cancel RUN", Short: "End a run", Args: cobra.ExactArgs(1), Example: "  atoll runs cancel run-42"},
			func(ctx context.Context, c *client.Client, args []string) (*api.Run, error) {
				return c.Cancel(ctx, args[0])
			}, e.showRun))
	return cmd
}

func newStartCommand(e *env) *cobra.Command {
	var task api.RunRequest
	cmd := &cobra.Command{
		Use: "start", Short: "Start a run, follow it and print its answer", Args: cobra.NoArgs,
		Example: `  atoll runs start --gateway https://atoll.example.org -m "Fix the failing test"`,
	}
	cmd.Flags().StringVar(&task.GraphID, "variant", "", "which `agent` works (default: the gateway's own)")
	cmd.Flags().StringVarP(&task.Message, "message", "m", "", "the task")
	cmd.Flags().StringVar(&task.Model, "model", "", "`provider/name` of the model (default: the agent's)")
	cmd.Flags().StringVar(&task.Account, "account", "", "billing account")
	return call(e, cmd, func(ctx context.Context, c *client.Client, _ []string) (*api.Run, error) {
		if task.Message == "" {
			return nil, wrong(errors.New("there is no task"), "give it with --message")
		}
		run, err := c.Start(ctx, &task, "")
		if err != nil {
			return nil, err
		}
		return c.Events(ctx, run.ID, 0, func(event api.Event) error {
			if event.Step != "" {
				fmt.Fprintf(terminal.Harmless(e.Err), "%s: %s\n", run.ID, event.Step)
			}
			return nil
		})
	}, e.showRun)
}

func newPsCommand(e *env) *cobra.Command {
	return call(e, &cobra.Command{Use: "ps", Short: "List the sandboxes of a gateway", Args: cobra.NoArgs, Example: "  atoll ps"},
		func(ctx context.Context, c *client.Client, _ []string) (*api.Sandboxes, error) {
			return c.Sandboxes(ctx, api.SandboxQuery{})
		}, e.showSandboxes)
}

func (e *env) showRuns(page *api.Runs) error {
	rows := [][]string{{"RUN", "AGENT", "STEP", "CREATED"}}
	for _, r := range page.Runs {
		rows = append(rows, []string{r.ID, r.GraphID, r.Step, r.Created.Format(time.DateTime)})
	}
	return e.table(rows)
}

func (e *env) showSandboxes(page *api.Sandboxes) error {
	rows := [][]string{{"SANDBOX", "SESSION", "STATE", "IMAGE"}}
	for _, s := range page.Sandboxes {
		rows = append(rows, []string{s.ContainerName, s.SessionKey, cmp.Or(s.State, "gone"), s.Image})
	}
	return e.table(rows)
}

func (e *env) table(rows [][]string) error {
	w := tabwriter.NewWriter(e.Out, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, terminal.Printable(cell))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// showRun prints the answer of a run, or why there is none.
func (e *env) showRun(r *api.Run) error {
	if r.Error != nil {
		return fmt.Errorf("run %s: %s", r.ID, r.Error.Message)
	}
	if r.Step != api.RunOver {
		_, err := fmt.Fprintf(terminal.Harmless(e.Out), "run %s is not over: %s\n", r.ID, r.Step)
		return err
	}
	_, err := fmt.Fprintln(terminal.Harmless(e.Out), r.Text)
	return err
}
