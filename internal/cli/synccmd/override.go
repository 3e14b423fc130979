package synccmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

// minHash is how much of a hash names it.
const minHash = 12

func newOverrideCommand(e *env) *cobra.Command {
	var reason, hash string
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "override PATH --reason TEXT", Short: "Apply a change that needs a reason", Args: console.ExactlyOne("PATH"),
		Example: `  atoll sync override scripts/run.sh --reason 'it is to be executable'
  atoll sync override notes.txt --reason 'a key for examples' --hash 2c26b46b68ff`,
		Long: `Apply one change that needs a person's approval, with a reason, which is in the
audit log. A file in which a secret was found needs the hash of its content too, as
` + "`atoll sync diff`" + ` shows it. What is blocked otherwise, or in conflict, is never applied.`,
	}, func(v *verb, args []string) error { return v.override(args[0], reason, hash) })
	cmd.Flags().StringVar(&reason, "reason", "", "why it may pass, for the audit log")
	cmd.Flags().StringVar(&hash, "hash", "", "`hash` of the evidence that was looked at, or its first 12 characters; other evidence is refused")
	return cmd
}

func (v *verb) override(path, reason, hash string) error {
	if strings.TrimSpace(reason) == "" {
		return console.Usage(v.cmd, errors.New("--reason is needed: it is what the audit log says"))
	}
	t, err := v.state()
	if err != nil {
		return err
	}
	found, err := v.choose(t, []string{path})
	if err != nil {
		return err
	}
	if len(found) > 1 {
		return console.Usage(v.cmd, fmt.Errorf("%s names %s: override is for one", console.Printable(path), files(len(found))))
	}
	entry := &found[0]
	if err := checkOverride(entry, hash); err != nil {
		return err
	}
	if err := v.checkShown(t, found); err != nil {
		return err
	}
	applied, err := v.sync.Override(v.ctx(), &api.SyncOverride{Subject: v.subject, Path: entry.Path, SHA256: entry.SHA256, Reason: reason})
	if err != nil {
		return err
	}
	if v.asJSON {
		return v.PrintJSON(map[string]any{"applied": applied, "left": []any{}})
	}
	v.printApplied(applied)
	return nil
}

// checkOverride wants the hash of what is blocked, and refuses other content.
func checkOverride(e *api.SyncEntry, hash string) error {
	refuse := func(text, hint string) error {
		return console.WithCode(console.ExitDenied, errhint.With(errors.New(console.Printable(e.Path)+": "+text), hint))
	}
	switch {
	case e.Verdict == api.SyncConflict:
		return refuse("in conflict with the host's file", "merge by hand, then `atoll sync reject "+quoted(e.Path)+"`")
	case hash != "" && (len(hash) < minHash || !strings.HasPrefix(e.SHA256, hash)):
		return refuse("its content has another hash", "`atoll sync diff "+quoted(e.Path)+"` shows it")
	case e.Verdict == api.SyncBlocked && hash == "":
		return refuse("blocked: "+reasonText(e), "look at it, then name its hash with --hash: `atoll sync diff "+quoted(e.Path)+"` shows both")
	}
	return nil
}
