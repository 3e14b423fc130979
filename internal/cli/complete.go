package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/modelcmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// completePatience bounds the search for values: a shell waits for them.
const completePatience = 2 * time.Second

// values finds what can be written at a place; nil where nothing is known.
type values func(ctx context.Context, e *console.Env) []string

// argumentValues are the values of the arguments of verbs.
func argumentValues() map[string]values {
	return map[string]values{
		"sandbox ps": sandboxValues, "sandbox verify": sandboxValues, "sandbox fork": sandboxValues, "sandbox stop": sandboxValues, "sandbox rm": sandboxValues,
		"exec": sandboxValues, "ssh": sandboxValues, "logs": sandboxValues, "stop": sandboxValues, "rm": sandboxValues,
		"runs show": runValues, "runs events": runValues, "runs cost": runValues,
		"relay show": runValues, "relay status": runValues, "relay push": runValues, "relay take": runValues,
		"approvals show": approvalValues, "approvals approve": approvalValues, "approvals deny": approvalValues,
		"token revoke": tokenValues, "token rotate": tokenValues, "token pair": tokenValues,
		"images rm": imageValues, "images build": recipeValues, "tool call": toolValues,
		"volumes seed": fixedValues(provide.PnpmStore), "volumes rm": fixedValues(provide.PnpmStore),
	}
}

// flagValues are the values of flags, which mean the same in every verb.
func flagValues() map[string]values {
	return map[string]values{
		"agent": agentValues, "session": sessionValues, "model": modelValues, "image": imageValues, "run-id": runValues, "before": runValues,
		"variant": variantValues, "tool": toolValues,
		"access": fixedValues(config.AccessWords()...), "scope": fixedValues("session", "agent", "shared"), "role": fixedValues("admin", "operator", "operator.approvals", "run", "read"),
		"thinking": fixedValues("off", "minimal", "low", "medium", "high"), "backend": fixedValues("docker", "podman"),
		"branch-mode": fixedValues("thread"), "for": fixedValues("once", "session", "rule"), "kind": fixedValues("model", "exec", "file", "egress", "git", "approval", "login", "browser", "pool"), "mode": fixedValues("ephemeral", "gateway"), "network": fixedValues("none", "bridge"),
	}
}

// isCompletion reports whether a shell asks for values.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletion lets shells complete arguments and flags of cmd and those below it.
func addCompletion(e *console.Env, cmd *cobra.Command) {
	path := strings.TrimPrefix(cmd.CommandPath(), "atoll ")
	if find := argumentValues()[path]; find != nil {
		cmd.ValidArgsFunction = complete(e, find)
	}
	flags := flagValues()
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if find := flags[f.Name]; find != nil && !f.Hidden {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete(e, find)) // fails only for a flag that is not there
		}
	})
	for _, child := range cmd.Commands() {
		addCompletion(e, child)
	}
}

// complete gives a shell the values that begin with what is written. It says
// nothing and never fails: what cannot be found is not offered.
func complete(e *console.Env, find values) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, written string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
		defer cancel()
		var fitting []string
		for _, v := range find(ctx, e) {
			if strings.HasPrefix(v, written) && isPlain(v) {
				fitting = append(fitting, v)
			}
		}
		slices.Sort(fitting)
		return slices.Compact(fitting), cobra.ShellCompDirectiveNoFileComp
	}
}

// isPlain reports whether a value means itself to every shell. Names of sessions are
// chosen by others: what a shell would expand is not offered.
func isPlain(v string) bool {
	return v != "" && strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-") == ""
}

func fixedValues(list ...string) values {
	return func(context.Context, *console.Env) []string { return list }
}

// openQuietly opens the installation if there is one; nil if there is none, or it
// cannot be opened.
func openQuietly(ctx context.Context, e *console.Env) *app.App {
	if e.Opened != nil {
		return e.Opened
	}
	settings, err := e.Load()
	if err != nil || !settings.HasState() {
		return nil
	}
	a, err := app.OpenWith(ctx, settings, nil)
	if err != nil {
		return nil
	}
	e.Opened = a
	return a
}

func sandboxValues(ctx context.Context, e *console.Env) []string {
	return entryValues(ctx, e, func(entry *sandbox.Entry) string { return entry.ContainerName })
}

func sessionValues(ctx context.Context, e *console.Env) []string {
	return entryValues(ctx, e, func(entry *sandbox.Entry) string { return entry.SessionKey })
}

// entryValues are what one field of the sandboxes' entries has.
func entryValues(ctx context.Context, e *console.Env, field func(*sandbox.Entry) string) (list []string) {
	if a := openQuietly(ctx, e); a != nil {
		entries, _ := a.Entries(ctx)
		for _, entry := range entries {
			list = append(list, field(entry))
		}
	}
	return list
}

// approvalValues are the ids of open questions.
func approvalValues(ctx context.Context, e *console.Env) (list []string) {
	if a := openQuietly(ctx, e); a != nil {
		questions, _ := a.Commits.Approvals().List(ctx, approval.Filter{Open: true, Most: completedRuns})
		for i := range questions {
			list = append(list, questions[i].ID)
		}
	}
	return list
}

// completedRuns is how many runs a shell is offered.
const completedRuns = 100

func runValues(ctx context.Context, e *console.Env) (list []string) {
	if a := openQuietly(ctx, e); a != nil {
		runs, _ := a.Models.RunStore().List(ctx, run.Filter{Most: completedRuns})
		for i := range runs {
			list = append(list, runs[i].ID)
		}
	}
	return list
}

func tokenValues(ctx context.Context, e *console.Env) (list []string) {
	if a := openQuietly(ctx, e); a != nil {
		names, _ := modelcmd.TokenNames(ctx, a)
		for _, n := range names {
			list = append(list, n.Name)
		}
	}
	return list
}
