package runcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

// NewApprovalsCommand returns the command `atoll approvals`.
func NewApprovalsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use: "approvals", Short: "Answer questions that wait for a person",
		Example: `  atoll approvals list
  atoll approvals show q4hb
  atoll approvals approve q4hb`,
		Long: `Some actions of agents wait for a person: for example commits that change files which
other programs execute. Each is a question with its evidence; the answer is for that
evidence only. A question without an answer expires, with the answer no.`,
	}
	backend.LocalFlag(cmd, c)
	cmd.AddCommand(newApprovalsListCommand(e), newApprovalsShowCommand(e), newApprovalsApproveCommand(e), newApprovalsDenyCommand(e))
	return cmd
}

func newApprovalsListCommand(e *env) *cobra.Command {
	var all, asJSON bool
	var filter approval.Filter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List questions that wait for a person",
		Example: "  atoll approvals list\n  atoll approvals list --all --json",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := backend.OpenApprovals(cmd.Context(), e.Env)
			if err != nil {
				return e.ConfigError(err, asJSON)
			}
			filter.Open = !all
			list, err := b.Questions(cmd.Context(), filter)
			if err != nil {
				return err
			}
			return e.printApprovals(list, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were answered or have expired")
	cmd.Flags().StringVar(&filter.Account, "account", "", "only this billing account")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) printApprovals(list []approval.Question, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"approvals": console.OrEmpty(list)})
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No question waits for a person.")
		return nil
	}
	t := console.NewTable("ID", "KIND", "STATE", "ACCOUNT", "RUN", "ASKED", "EXPIRES", "QUESTION")
	for i := range list {
		q := &list[i]
		t.Add(q.ID, q.Kind, approvalState(q), console.OrDash(q.Owner.Account), console.OrDash(q.Owner.Run), console.Ago(time.Since(q.Created)), q.Expires.Local().Format(time.DateTime), q.Summary)
	}
	t.Print(e.Out)
	return nil
}

func approvalState(q *approval.Question) string {
	if q.Answer == "" || q.State != approval.Answered {
		return string(q.State)
	}
	return string(q.Answer)
}

func newApprovalsShowCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a question with its evidence",
		Example: "  atoll approvals show q4hb\n  atoll approvals show q4hb --json",
		Args:    console.ExactlyOne("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withApproval(cmd, args[0], asJSON, func(_ backend.Approvals, q *approval.Question) error {
				if asJSON {
					return e.PrintJSON(q)
				}
				e.printApproval(q)
				return nil
			})
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) printApproval(q *approval.Question) {
	for _, row := range [][2]string{
		{"id", q.ID}, {"kind", q.Kind}, {"question", q.Summary}, {"state", approvalState(q)}, {"answered", q.AnsweredBy}, {"account", q.Owner.Account}, {"agent", q.Owner.Agent},
		{"session", q.Owner.Session}, {"run", q.Owner.Run}, {"rule", q.Rule}, {"expires", q.Expires.Local().Format(time.DateTime) + ", then " + string(q.Default)}, {"hash", q.Hash},
	} {
		if row[1] != "" {
			fmt.Fprintf(e.Out, "%-8s  %s\n", row[0], console.Printable(row[1]))
		}
	}
	for line := range strings.Lines(q.Evidence) {
		fmt.Fprintln(e.Out, console.Printable(strings.TrimSuffix(line, "\n")))
	}
}

// minHash is how much of a hash names it.
const minHash = 12

// answerFlags are those of both answers.
type answerFlags struct {
	hash   string
	asJSON bool
}

func (f *answerFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.hash, "hash", "", "`hash` of the evidence that was looked at, or its first 12 characters; other evidence is refused")
	console.JSONFlag(cmd, &f.asJSON)
}

func newApprovalsApproveCommand(e *env) *cobra.Command {
	var flags answerFlags
	var lasting string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Say yes to a question",
		Example: `  atoll approvals approve q4hb
  atoll approvals approve q4hb --hash 2c26b46b68ff`,
		Args: console.ExactlyOne("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := approval.Answer(lasting)
			if !answer.Allows() {
				return console.Usage(cmd, fmt.Errorf("--for %.20q is none of once, session and rule", lasting))
			}
			return e.answer(cmd, args[0], answer, &flags)
		},
	}
	cmd.Flags().StringVar(&lasting, "for", string(approval.Once), "what the yes is for: `once`, session (also later ones of the session) or rule (also later ones of the agent)")
	flags.add(cmd)
	return cmd
}

func newApprovalsDenyCommand(e *env) *cobra.Command {
	var flags answerFlags
	cmd := &cobra.Command{
		Use:     "deny ID",
		Short:   "Say no to a question",
		Example: `  atoll approvals deny q4hb`,
		Args:    console.ExactlyOne("ID"),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.answer(cmd, args[0], approval.Deny, &flags) },
	}
	flags.add(cmd)
	return cmd
}

func (e *env) answer(cmd *cobra.Command, word string, answer approval.Answer, f *answerFlags) error {
	return e.withApproval(cmd, word, f.asJSON, func(b backend.Approvals, q *approval.Question) error {
		if f.hash != "" && (len(f.hash) < minHash || !strings.HasPrefix(q.Hash, f.hash)) {
			return console.WithCode(console.ExitDenied, errhint.With(approval.ErrChanged, "`atoll approvals show "+q.ID+"` shows the evidence and its hash"))
		}
		answered, note, err := b.Answer(cmd.Context(), q.ID, approval.Reply{Answer: answer, Hash: q.Hash, By: whoami()})
		if err != nil {
			return explainAnswer(err)
		}
		if f.asJSON {
			return e.PrintJSON(map[string]any{"approval": answered, "note": note})
		}
		fmt.Fprintf(e.Out, "%s: %s\n", answered.ID, console.Printable(strings.TrimSuffix(string(answered.Answer)+"; "+note, "; ")))
		return nil
	})
}

// explainAnswer gives refusals of the queue the exit code of what is not allowed.
func explainAnswer(err error) error {
	for _, refusal := range []error{approval.ErrAnswered, approval.ErrExpired, approval.ErrReplaced, approval.ErrChanged} {
		if errors.Is(err, refusal) {
			return console.WithCode(console.ExitDenied, err)
		}
	}
	return err
}

func (e *env) withApproval(cmd *cobra.Command, word string, asJSON bool, do func(backend.Approvals, *approval.Question) error) error {
	b, err := backend.OpenApprovals(cmd.Context(), e.Env)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	id, err := pickApproval(cmd.Context(), b, word)
	if err != nil {
		return err
	}
	q, err := b.Question(cmd.Context(), id)
	if err != nil {
		return err
	}
	return do(b, q)
}

// pickApproval returns the question that word names, by its id or the beginning.
func pickApproval(ctx context.Context, b backend.Approvals, word string) (string, error) {
	list, err := b.Questions(ctx, approval.Filter{})
	if err != nil {
		return "", err
	}
	var all []console.Named
	for i := range list {
		all = append(all, console.Named{Name: list[i].ID})
	}
	id, err := console.Pick("question", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		return "", errhint.With(fmt.Errorf("there is no question %q", word), "`atoll approvals list` lists those that wait")
	}
	return id, err
}
