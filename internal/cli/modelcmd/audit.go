package modelcmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/service"
	money "github.com/atoll-run/atoll/internal/model/usage"
)

// NewAuditCommand returns the command `atoll audit`.
func NewAuditCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "audit", Short: "Read and check the log of model requests, connections, pushes, approvals and log-ins", Example: `  atoll audit tail --denied
  atoll audit verify`}
	cmd.AddCommand(newAuditTailCommand(e), newAuditVerifyCommand(e))
	return cmd
}

// maxTail is the most requests that tail shows.
const maxTail = 1_000_000

type tailOptions struct {
	lines        int
	run, account string
	denied       bool
	kinds        []audit.Kind // none is all
	asJSON       bool
}

func newAuditTailCommand(e *env) *cobra.Command {
	var o tailOptions
	var kinds string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show the last records",
		Example: `  atoll audit tail -n 50
  atoll audit tail --kind model,git
  atoll audit tail --run-id run-42 --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.kinds, err = audit.ParseKinds(kinds); err != nil {
				return console.Usage(cmd, err)
			}
			return runAuditTail(cmd, e, o)
		},
	}
	flags := cmd.Flags()
	console.LimitFlag(cmd, &o.lines, 20, maxTail)
	console.RunFilterFlag(cmd, &o.run)
	flags.StringVar(&o.account, "account", "", "only this billing account")
	flags.StringVar(&kinds, "kind", "", "only these `kinds`, separated by commas: model, exec, file, egress, git, approval, login")
	flags.BoolVar(&o.denied, "denied", false, "only what was refused")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// auditLine is what tail shows of a record.
type auditLine struct {
	Time, Kind, Event, ID, Account, Run, KnownAs, Dialect, Model, ModelAsked, Denied string
	Branch, Program, Topic, Token, Name                                              string
	Status, Port                                                                     int
	TotalMicros, Input, CachedInput, CacheWrite, Output, CostMicroUSD                int64
	Unpriced, Estimated                                                              bool
}

func (o *tailOptions) match(text string) bool {
	var l auditLine
	if json.Unmarshal([]byte(text), &l) != nil {
		return false
	}
	return (o.run == "" || l.Run == o.run || l.KnownAs == o.run) && (o.account == "" || l.Account == o.account) && (!o.denied || l.Denied != "") &&
		(len(o.kinds) == 0 || slices.Contains(o.kinds, audit.KindOf(l.Kind)))
}

func runAuditTail(cmd *cobra.Command, e *env, o tailOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	entries, err := audit.Tail(service.AuditDir(settings), o.lines, o.match)
	if err != nil {
		return err
	}
	if o.asJSON {
		records := []jsontext.Value{}
		for _, entry := range entries {
			records = append(records, jsontext.Value(entry.JSON))
		}
		return e.PrintJSON(map[string]any{"records": records})
	}
	if len(entries) == 0 {
		fmt.Fprintln(e.Out, "Nothing is recorded.")
		return nil
	}
	e.printAudit(entries)
	return nil
}

func (e *env) printAudit(entries []audit.Entry) {
	t := console.NewTable("TIME", "KIND", "RUN", "ACCOUNT", "DIALECT", "WHAT", "STATUS", "MS", "TOKENS", "COST", "DENIED")
	for _, entry := range entries {
		var l auditLine
		if json.Unmarshal([]byte(entry.JSON), &l) != nil {
			continue
		}
		t.Add(l.row()...)
	}
	t.Print(e.Out)
}

// row is a record as a line of the table. The columns from STATUS to COST are of
// requests to models only.
func (l *auditLine) row() []string {
	kind, what := audit.KindOf(l.Kind), cmp.Or(l.Model, l.ModelAsked, l.Program, l.Token)
	if kind != audit.Model {
		what = strings.TrimSpace(strings.Join([]string{l.Event, cmp.Or(l.Branch, l.Topic, l.target(), what), l.ID}, " "))
	}
	status, ms, tokens, cost := "-", "-", "-", "-"
	if kind == audit.Model {
		status, ms = fmt.Sprint(l.Status), fmt.Sprint(l.TotalMicros/1000)
		tokens, cost = fmt.Sprint(l.Input+l.CachedInput+l.CacheWrite+l.Output), l.cost()
	}
	return []string{
		strings.TrimSuffix(strings.Replace(l.Time, "T", " ", 1), "Z"), string(kind), console.OrDash(cmp.Or(l.KnownAs, l.Run)), console.OrDash(l.Account),
		console.OrDash(l.Dialect), console.OrDash(what), status, ms, tokens, cost, l.Denied,
	}
}

// target is the name and the port of a connection out of a sandbox.
func (l *auditLine) target() string {
	if l.Port == 0 {
		return l.Name
	}
	return net.JoinHostPort(l.Name, strconv.Itoa(l.Port))
}

func (l *auditLine) cost() string {
	cost := money.Dollars(l.CostMicroUSD)
	if l.Unpriced {
		cost = "unpriced"
	}
	if l.Estimated {
		cost += " (estimated)"
	}
	return cost
}

type verifyAuditOptions struct {
	anchor, key string
	asJSON      bool
}

func newAuditVerifyCommand(e *env) *cobra.Command {
	var o verifyAuditOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Find every change, removal or cut in the audit log",
		Long: `Read the whole audit log and find every line that was changed, moved, added or
taken out, and every segment that was removed or cut short.

What nothing in the directory knows of cannot be missed: the newest segment, if it
was taken away with its head file before another one was begun. The output of
--json, kept elsewhere, finds that too: give it back with --anchor.`,
		Example: `  atoll audit verify --json > heads.json
  atoll audit verify --anchor heads.json`,
		Args: console.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runAuditVerify(e, o) },
	}
	cmd.Flags().StringVar(&o.anchor, "anchor", "", "an earlier output of --json; what it saw must still be there")
	cmd.Flags().StringVar(&o.key, "key", "", "public key that must have signed the log (default: the one beside it)")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runAuditVerify(e *env, o verifyAuditOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	options := audit.VerifyOptions{Key: o.key}
	if o.anchor != "" {
		if options.Anchors, err = readAnchors(o.anchor); err != nil {
			return err
		}
	}
	if _, err := os.Stat(service.AuditDir(settings)); errors.Is(err, os.ErrNotExist) && o.anchor == "" {
		fmt.Fprintln(e.Err, "No audit log: nothing was recorded yet.")
		return nil
	}
	report, err := audit.Verify(service.AuditDir(settings), options)
	if err != nil {
		return err
	}
	if o.asJSON {
		err = e.PrintJSON(report)
	} else {
		e.printAuditReport(report)
	}
	if len(report.Problems) > 0 {
		failed := fmt.Errorf("the audit log was changed: %d problems", len(report.Problems))
		err = errors.Join(err, errhint.With(failed, "keep the directory as it is, and compare it with a backup"))
	}
	return err
}

func readAnchors(path string) ([]audit.Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	var before audit.Report
	if err := json.Unmarshal(text, &before); err != nil || len(before.Heads) == 0 {
		return nil, errhint.With(fmt.Errorf("anchor: %s holds no heads", path), "give the output of `atoll audit verify --json`")
	}
	return before.Heads, nil
}

func (e *env) printAuditReport(r *audit.Report) {
	for _, p := range r.Problems {
		fmt.Fprintln(e.Out, console.Printable(p.String()))
	}
	fmt.Fprintf(e.Out, "%d records in %d segments, %d counted only, %d segments retired, %d problems\n", r.Records, r.Segments, r.Dropped, r.Retired, len(r.Problems))
	if r.Unsigned > 0 {
		fmt.Fprintf(e.Out, "%d of the last lines are not signed yet\n", r.Unsigned)
	}
}
