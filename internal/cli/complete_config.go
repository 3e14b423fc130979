package cli

import (
	"context"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/setupcmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/tool"
)

// The values that shells are offered from the configuration and from Atoll itself.

func agentValues(_ context.Context, e *console.Env) []string {
	settings, err := e.Load()
	if err != nil {
		return nil
	}
	return settings.Config.Agents()
}

// modelValues are the models that the configuration names, and those of the
// catalogue.
func modelValues(ctx context.Context, e *console.Env) (list []string) {
	settings, err := e.Load()
	if err != nil {
		return nil
	}
	if llm, err := settings.Config.LLM(); err == nil {
		list = append(list, providerModels(&llm)...)
	}
	for _, id := range settings.Config.Agents() {
		if agent, err := settings.Config.Resolve(id); err == nil && agent.Model.Primary != "" {
			list = append(append(list, agent.Model.Primary), agent.Model.Fallbacks...)
		}
	}
	if a := openQuietly(ctx, e); a != nil {
		known, _ := a.Models.ModelCatalogue()
		for _, m := range known {
			list = append(list, m.ID)
		}
	}
	return list
}

func providerModels(llm *config.LLM) (list []string) {
	for i := range llm.Providers {
		for _, m := range llm.Providers[i].Models {
			list = append(list, llm.Providers[i].Name+"/"+m)
		}
	}
	return list
}

// imageValues are the images that need no engine.
func imageValues(ctx context.Context, e *console.Env) (list []string) {
	a := openQuietly(ctx, e)
	if a == nil {
		return nil
	}
	store, err := a.Images()
	if err != nil {
		return nil
	}
	images, _ := store.List(ctx)
	for _, n := range setupcmd.ImageNames(images) {
		list = append(list, n.Name)
	}
	return list
}

func recipeValues(context.Context, *console.Env) []string { return setupcmd.RecipeNames() }

func variantValues(_ context.Context, e *console.Env) []string {
	list := []string{"sandbox:agent", "sandbox:openclaw"}
	settings, err := e.Load()
	if err != nil {
		return list
	}
	runs, err := settings.Config.Runs()
	if err != nil {
		return list
	}
	for _, v := range runs.Variants {
		list = append(list, v.ID)
	}
	for _, x := range runs.External {
		list = append(list, x.ID)
	}
	return list
}

func toolValues(context.Context, *console.Env) (list []string) {
	for _, t := range tool.All() {
		list = append(list, t.Name)
	}
	return list
}
