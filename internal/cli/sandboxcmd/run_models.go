package sandboxcmd

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// modelOptions are what a run may ask of models.
type modelOptions struct {
	models []string
	budget float64
	runID  string
	trace  string
}

func (o *modelOptions) addModels(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.models, "model", nil, "let the command call this `model`, NAME or PROVIDER/NAME, at http://localhost:8080/v1 by its NAME (again for more; * for all of the agent's)")
	flags.Float64Var(&o.budget, "budget", 0, "most US `dollars` that it may spend on models")
	flags.StringVar(&o.runID, "run-id", "", "`id` of the run in records and bills (default: a new one)")
	console.TraceFlag(cmd, &o.trace)
}

func (o *modelOptions) wantsModels() bool { return len(o.models) > 0 }

func (o *modelOptions) checkModels() error {
	switch err := console.CheckBudget(o.budget); {
	case err != nil:
		return err
	case !o.wantsModels() && (o.budget > 0 || o.runID != "" || o.trace != ""):
		return errhint.With(errors.New("--budget, --run-id and --trace are about models, and no --model is given"), "add --model NAME")
	}
	return nil
}

// modelLife is how long a run may call models if its command has no time limit.
const modelLife = 24 * time.Hour

// runWithModels runs a command under a grant.
func (e *env) runWithModels(ctx context.Context, a *app.App, s *provide.ReadySandbox, o *runOptions, argv []string) (err error) {
	terms, err := o.terms(a, s)
	if err != nil {
		return err
	}
	if err := secret.Harden(); err != nil { // before keys are read
		return err
	}
	models, err := a.Models.OpenProxy(ctx)
	if err != nil {
		return err
	}
	defer func() { err = console.FirstOf(err, models.Close()) }()
	g, err := models.Grant(ctx, s, terms)
	if err != nil {
		return err
	}
	began := time.Now()
	o.grant, o.grantEnv = g.ID(), service.ModelEnv()
	e.Logger().DebugContext(ctx, "models can be called", "run", terms.Run, "models", strings.Join(terms.Models, " "))
	if err = a.Models.AuditExec(terms, s.Name, argv); err == nil {
		err = e.withEgress(ctx, s, &o.commandOptions, g.Grant, func() error { return e.runCommand(ctx, s, o.commandOptions, argv) })
	}
	err = console.FirstOf(err, g.Close())
	// What it did cost changes nothing about how the command ended.
	if _, problem := models.KeepCommand(context.WithoutCancel(ctx), terms, s, began); problem != nil {
		e.Logger().WarnContext(ctx, "the receipt of the command is not kept", "run", terms.Run, "error", problem)
	}
	return err
}

func (o *runOptions) terms(a *app.App, s *provide.ReadySandbox) (*grant.Terms, error) {
	models, err := a.Models.ModelIDs(o.models)
	if err != nil {
		return nil, err
	}
	if len(models) == 1 && models[0] == "*" {
		models = nil
	}
	terms, err := service.Terms(s.Plan, o.Account, models)
	if err != nil {
		return nil, err
	}
	terms.Trace, terms.Graph = o.trace, run.HostCommand
	terms.Run, terms.Until = o.runID, time.Now().Add(modelLife)
	if terms.Run == "" {
		terms.Run = "run-" + strings.ToLower(rand.Text())
	}
	if o.timeout > 0 && o.timeout < modelLife {
		terms.Until = time.Now().Add(o.timeout + time.Minute)
	}
	terms.Budget.MicroUSD = console.MicroDollars(o.budget)
	return terms, nil
}
