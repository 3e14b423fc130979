package egresscmd

import (
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// explained is the JSON form of a decision.
type explained struct {
	Name    string   `json:"name"`
	Port    int      `json:"port"`
	Method  string   `json:"method,omitempty"`
	Target  string   `json:"target,omitempty"`
	Verdict string   `json:"verdict"` // allowed, denied or asks
	Action  string   `json:"action,omitempty"`
	Rule    string   `json:"rule,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Hint    string   `json:"hint,omitempty"`
	Secrets []string `json:"secrets,omitempty"`
	Notes   []string `json:"notes"`
}

func newExplainCommand(e *env) *cobra.Command {
	var o console.SubjectFlags
	var method string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain URL|NAME[:PORT]",
		Short: "Say what happens to a connection or a request, and by which rule",
		Example: `  atoll egress explain example.org:22
  atoll egress explain https://api.example.org/repos/acme/x/issues -X POST`,
		Args: console.ExactlyOne("address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			rules, err := e.rules(cmd.Context(), &o)
			if err != nil {
				return e.ConfigError(err, asJSON)
			}
			x, err := rules.Explain(method, args[0])
			if err != nil {
				return console.Usage(cmd, err)
			}
			return e.printExplained(explainedOf(&x), asJSON)
		},
	}
	o.Add(cmd)
	cmd.Flags().StringVarP(&method, "method", "X", "", "`method` of the request (default GET)")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func explainedOf(x *rule.Explanation) *explained {
	verdict := "denied"
	if x.Allow {
		verdict = "allowed"
	} else if x.Ask {
		verdict = "asks"
	}
	return &explained{
		Name: x.Name, Port: x.Port, Method: x.Method, Target: x.Target, Verdict: verdict, Action: string(x.Action),
		Rule: x.Rule, Reason: x.Reason, Hint: x.Hint, Secrets: x.Secrets, Notes: console.OrEmpty(x.Notes),
	}
}

// printExplained prints a decision. What is denied is an exit code of its own.
func (e *env) printExplained(x *explained, asJSON bool) error {
	denied := console.WithCode(console.ExitDenied, nil)
	if asJSON {
		if err := e.PrintJSON(x); err != nil || x.Verdict != "denied" {
			return err
		}
		return denied
	}
	style := e.Style()
	verdict := style.Good("allowed")
	switch x.Verdict {
	case "asks":
		verdict = style.Warn("a person is asked")
	case "denied":
		verdict = style.Alarm("denied")
	}
	fmt.Fprintf(e.Out, "%s: %s\n", verdict, console.Printable(x.subject()))
	for _, row := range [][2]string{{"rule", x.Rule}, {"mode", x.Action}, {"reason", x.Reason}, {"hint", x.Hint}} {
		if row[1] != "" {
			fmt.Fprintf(e.Out, "  %-7s %s\n", row[0], console.Printable(row[1]))
		}
	}
	for _, note := range x.Notes {
		fmt.Fprintf(e.Out, "  %-7s %s\n", "note", console.Printable(note))
	}
	if x.Verdict == "denied" {
		return denied
	}
	return nil
}

func (x *explained) subject() string {
	target := net.JoinHostPort(x.Name, strconv.Itoa(x.Port))
	if x.Method != "" {
		return x.Method + " " + target + x.Target
	}
	return target
}
