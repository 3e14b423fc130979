package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/chat"
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

// embeddingsModel is the model that memories are compared with, if there is one
// and the agent may ask it.
func (w *Worker) embeddingsModel(a *App, models *Models) (candidates, error) {
	if models.config.Embeddings == "" || models.scripted() {
		return nil, nil
	}
	c, err := a.candidate(&models.config, models.config.Embeddings)
	if err != nil {
		return nil, fmt.Errorf("llm.embeddings: %w", err)
	}
	if !fits(allowedModels(&w.Plan.Agent.LLM), c.id) {
		w.Notices = append(w.Notices, "memories are compared by words only: this agent may not call "+c.name)
		return nil, nil
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
