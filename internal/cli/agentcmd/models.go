package agentcmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/secret"
)

// modelLife is how long a use may call models.
const modelLife = 24 * time.Hour

// withModels runs the program under a grant and says what it did cost.
func (s *start) withModels(ctx context.Context, llm *config.LLM) (err error) {
	terms, err := s.terms()
	if err != nil {
		return err
	}
	if err := secret.Harden(); err != nil { // before keys are read
		return err
	}
	models, err := s.app.Models.OpenProxyWith(ctx, *llm)
	if err != nil {
		return err
	}
	defer func() { err = console.FirstOf(err, models.Close()) }()
	g, err := models.GrantApart(ctx, s.box, terms)
	if err != nil {
		return err
	}
	began := time.Now()
	s.grant, s.run, s.modelURL = g.ID(), terms.Run, g.URL
	if err = s.app.Models.AuditExec(terms, s.box.Name, s.command().Argv); err == nil {
		err = s.executeWithEgress(ctx, g.Grant)
	}
	err = console.FirstOf(err, g.Close())
	bill, problem := models.KeepCommand(context.WithoutCancel(ctx), terms, s.box, began)
	if problem != nil {
		s.Logger().WarnContext(ctx, "the receipt is not kept", "run", terms.Run, "error", problem)
	}
	s.report.Bill = &bill
	return err
}

func (s *start) terms() (*grant.Terms, error) {
	terms, err := service.Terms(s.box.Plan, "", nil)
	if err != nil {
		return nil, err
	}
	terms.Graph, terms.Run = run.HostCommand, s.preset.ID+"-"+strings.ToLower(rand.Text())
	terms.Until = time.Now().Add(modelLife)
	terms.Budget.MicroUSD = console.MicroDollars(s.budget)
	return terms, nil
}

// chooseModel sets the model that the program is given: the one that was asked for, or
// the agent's of the configuration, or, for a program without a choice, the provider's.
func (s *start) chooseModel(llm *config.LLM) error {
	agent, err := s.app.Config.Resolve(config.DirectoryAgent)
	if err != nil {
		return err
	}
	name := cmp.Or(s.options.model, s.configuredModel(llm, agent.Model.Primary))
	if name == "" && s.preset.NeedsModel {
		name = cmp.Or(agent.Model.Primary, llm.Model)
	}
	for _, p := range llm.Providers {
		if id, ok := strings.CutPrefix(name, p.Name+"/"); ok {
			name = id
		}
	}
	s.model = name
	return nil
}

// configuredModel returns the model of the configuration if it is one for this program:
// of a LiteLLM, or of a provider that the program can be paid at; "" if it is not.
func (s *start) configuredModel(llm *config.LLM, name string) string {
	provider, _, _ := strings.Cut(name, "/")
	for _, p := range llm.Providers {
		fits := p.Kind == config.DefaultLLMProvider || slices.ContainsFunc(s.preset.Login, func(l preset.Login) bool { return l.Provider == p.Kind })
		if p.Name == provider && fits {
			return name
		}
	}
	return ""
}
