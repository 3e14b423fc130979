package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/config"
)

// embedder asks one model for vectors.
type embedder struct {
	client *chat.Client
	model  candidate
}

func (e embedder) Name() string { return e.model.name }

func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.client.Embed(ctx, e.model.id, texts)
}

// embeddingsModel is the model that memories are compared with; "" if there is
// none, or the agent may not ask it, which the notice says.
func (a *App) embeddingsModel(models *Models, llm *config.AgentLLM) (c candidate, notice string, err error) {
	if models.config.Embeddings == "" || models.scripted() {
		return candidate{}, "", nil
	}
	if c, err = a.candidate(&models.config, models.config.Embeddings); err != nil {
		return candidate{}, "", fmt.Errorf("llm.embeddings: %w", err)
	}
	if !fits(allowedModels(llm), c.id) {
		return candidate{}, "memories are compared by words only: this agent may not call " + c.name, nil
	}
	return c, "", nil
}

// embeddings are those of embeddingsModel, with its notice among the agent's.
func (w *Worker) embeddings(a *App, models *Models) (candidates, error) {
	c, notice, err := a.embeddingsModel(models, &w.Plan.Agent.LLM)
	if notice != "" {
		w.Notices = append(w.Notices, notice)
	}
	if err != nil || c.id == "" {
		return nil, err
	}
	return candidates{c}, nil
}

// remember has memories compared by their meaning, with what the agent may spend.
func (w *Worker) remember(a *App, by candidates, transport *http.Transport) error {
	if len(by) == 0 {
		return nil
	}
	client, err := chat.New(chat.Provider{BaseURL: "http://models/v1", Client: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	w.Box.Recall = a.recall(w.Plan, embedder{client, by[0]})
	return nil
}
