package synccmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/vm/takeover"
)

// printAll prints how much waits in every overlay of the installation. It is looked at in
// this process: a gateway shows its callers their own.
func (e *env) printAll(cmd *cobra.Command, asJSON bool) error {
	a, err := e.Open(cmd.Context())
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	all, err := a.Sync.All(cmd.Context())
	if err != nil {
		return withCode(err)
	}
	if asJSON {
		return e.PrintJSON(all)
	}
	t := console.NewTable("OVERLAY", "DIRECTORY", "OF", "FILES", "COMMITS")
	for i := range all {
		t.Add(all[i].ID, all[i].Base, subjectText(all[i].Subject), number(all[i].Waiting), number(all[i].Commits))
	}
	t.Print(e.Out)
	return nil
}

// subjectText names whose an overlay is, as the flags of other verbs do.
func subjectText(s *api.SyncSubject) string {
	switch {
	case s == nil:
		return "unknown"
	case s.Run != "":
		return "--run-id " + s.Run
	case s.Directory != "":
		return "the directory"
	case s.Session != "":
		return "--agent " + s.Agent + " --session " + s.Session
	case s.Agent != "":
		return "--agent " + s.Agent
	}
	return "the default agent"
}

// maxStates bounds what is read of the states of paths.
const maxStates = 16 << 20

// newAppliedCommand is for `atoll vm apply` and `atoll vm undo`, which change the base of an
// overlay from outside of the virtual machine.
func newAppliedCommand(e *env) *cobra.Command {
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "applied", Short: "Note what another program applied to the directory", Args: console.NoArgs, Hidden: true,
		Example: `  echo '{"main.go": "file 2cf24dba…"}' | atoll sync applied`,
		Long: `Count what the directory has at some paths as what the agent began with. Standard
input has a JSON object: for each path what another program left there. A path that
is something else by now is skipped.`,
	}, func(v *verb, _ []string) error {
		text, err := io.ReadAll(io.LimitReader(v.In, maxStates+1))
		switch {
		case err != nil:
			return err
		case len(text) > maxStates:
			return fmt.Errorf("standard input has more than %d bytes", maxStates)
		}
		states := map[string]string{}
		if err := json.Unmarshal(text, &states); err != nil {
			return console.Usage(v.cmd, err)
		}
		a, err := v.Open(v.ctx())
		if err != nil {
			return err
		}
		done, err := a.Sync.Applied(v.ctx(), &v.subject, states, takeover.State)
		if err != nil {
			return err
		}
		return v.printDone(done, "noted "+files(len(done.Files)))
	})
	return cmd
}
