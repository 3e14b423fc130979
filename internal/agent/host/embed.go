package host

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/model/service"
)

// embedder asks one model for vectors.
type embedder struct {
	client *chat.Client
	model  service.Candidate
}

func (e embedder) Name() string { return e.model.Name }

func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return e.client.Embed(ctx, e.model.ID, texts)
}

// embeddings are those of embeddingsModel, with its notice among the agent's.
func (w *Worker) embeddings(h *Host, models *service.Proxy) (service.Candidates, error) {
	c, notice, err := h.models.EmbeddingsModel(models, &w.Plan.Agent.LLM)
	if notice != "" {
		w.Notices = append(w.Notices, notice)
	}
	if err != nil || c.ID == "" {
		return nil, err
	}
	return service.Candidates{c}, nil
}

// remember has memories compared by their meaning, with what the agent may spend.
func (w *Worker) remember(h *Host, by service.Candidates, transport *http.Transport) error {
	if len(by) == 0 {
		return nil
	}
	client, err := chat.New(chat.Provider{BaseURL: "http://models/v1", Client: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	w.Box.Recall = h.recall(w.Plan, embedder{client, by[0]})
	return nil
}
