package rest

import (
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// routes are everything that can be asked for.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/api/v1/ai/agents", access.Read, "List the agents that runs can be given to", answers(s.agents)},
		{http.MethodPost, "/api/v1/ai/runs", access.Run, "Give a task to an agent in a sandbox of its own", streams[none, api.RunRequest, api.Run](s.startRun)},
		{http.MethodGet, "/api/v1/ai/runs", access.Read, "List runs, the latest first", answers(s.listRuns)},
		{http.MethodGet, "/api/v1/ai/runs/{id}", access.Read, "Show a run", answers(s.getRun)},
		{http.MethodDelete, "/api/v1/ai/runs/{id}", access.Run, "Cancel a run that is under way", answers(s.cancelRun)},
		{http.MethodGet, "/api/v1/ai/runs/{id}/events", access.Read, "Show what happened in a run, and what happens", streams[api.EventQuery, none, api.Events](s.runEvents)},
		{http.MethodGet, "/api/v1/ai/runs/{id}/cost", access.Read, "Show what a run has cost", answers(s.runCost)},
		{http.MethodGet, "/openapi.json", "", "This document", shape{raw: "application/json", serve: s.openapi}},
	}
}
