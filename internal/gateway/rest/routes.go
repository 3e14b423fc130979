package rest

import (
	"net/http"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// routes is the table of all routes.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/api/v1/ai/agents", access.Read, "List the agents that runs can be given to", answers(s.agents)},
		{http.MethodPost, "/api/v1/ai/runs", access.Run, "Give a task to an agent in a sandbox of its own", idempotent(streams[none, api.RunRequest, api.Run](s.startRun))},
		{http.MethodGet, "/api/v1/ai/runs", access.Read, "List runs, the latest first", answers(s.listRuns)},
		{http.MethodGet, "/api/v1/ai/runs/{id}", access.Read, "Show a run", answers(s.getRun)},
		{http.MethodDelete, "/api/v1/ai/runs/{id}", access.Run, "Cancel a run that is under way", answers(s.cancelRun)},
		{http.MethodGet, "/api/v1/ai/runs/{id}/events", access.Read, "Show what happened in a run, and what happens", streams[api.EventQuery, none, api.Events](s.runEvents)},
		{http.MethodGet, "/api/v1/ai/runs/{id}/cost", access.Read, "Show what a run has cost", answers(s.runCost)},
		{http.MethodGet, "/api/v1/sandboxes", access.Read, "List sandboxes, the last used first", answers(s.listSandboxes)},
		{http.MethodGet, "/api/v1/sandboxes/{name}", access.Read, "Show a sandbox", answers(s.getSandbox)},
		{http.MethodPost, "/api/v1/sandboxes/{name}/recreate", access.Operator, "Remove a sandbox, so that the next use makes it anew", answers(s.recreateSandbox)},
		{http.MethodPost, "/api/v1/sandboxes/{name}/verify", access.Operator, "Find out what a live sandbox keeps of its promises", answers(s.verifySandbox)},
		{http.MethodPost, "/api/v1/sandboxes/prune", access.Operator, "Remove sandboxes that are idle or old, of all accounts", answers(s.pruneSandboxes)},
		{http.MethodGet, "/api/v1/policy/explain", access.Read, "Say what applies to a session, and why", answers(s.explain)},
		{http.MethodGet, "/api/v1/sessions", access.Read, "List sessions, those that changed last first", answers(s.listSessions)},
		{http.MethodGet, "/api/v1/sessions/{key}", access.Read, "Show a session", answers(s.getSession)},
		{http.MethodPatch, "/api/v1/sessions/{key}", access.Operator, "Change what is set for a session", answers(s.patchSession)},
		{http.MethodDelete, "/api/v1/sessions/{key}", access.Operator, "Remove a session and its transcript", answers(s.deleteSession)},
		{http.MethodPost, "/api/v1/sessions/{key}/reset", access.Operator, "Begin a session anew", answers(s.resetSession)},
		{http.MethodPost, "/api/v1/sessions/{key}/abort", access.Run, "End the tasks of a session", answers(s.abortSession)},
		{http.MethodGet, "/api/v1/sessions/{key}/history", access.Read, "Show what was said in a session", answers(s.sessionHistory)},
		{http.MethodPost, "/api/v1/sessions/{key}/messages", access.Run, "Say something in a session", withFiles(idempotent(streams[none, api.SendRequest, api.Task](s.send)))},
		{http.MethodGet, "/api/v1/tasks/{id}", access.Read, "Show what became of a message", answers(s.getTask)},
		{http.MethodDelete, "/api/v1/tasks/{id}", access.Run, "End one task", answers(s.cancelTask)},
		{http.MethodGet, "/api/v1/tasks/{id}/events", access.Read, "Show what happens to a message", streams[api.EventQuery, none, api.Events](s.taskEvents)},
		{http.MethodGet, "/api/v1/approvals", access.Read, "List questions that wait for a person, the newest first", answers(s.listApprovals)},
		{http.MethodGet, "/api/v1/approvals/{id}", access.Read, "Show a question with its evidence", answers(s.getApproval)},
		{http.MethodPost, "/api/v1/approvals/{id}", access.Approvals, "Answer a question", answers(s.answerApproval)},
		{http.MethodGet, "/api/v1/sync", access.Read, "Show what agents changed in an overlay, with verdicts", lookAt(s.syncTrees)},
		{http.MethodGet, "/api/v1/sync/diff", access.Read, "Show what changed in one file", lookAt(s.syncDiff)},
		{http.MethodGet, "/api/v1/sync/history", access.Read, "List what was applied, the newest first", lookAt(s.syncHistory)},
		{http.MethodPost, "/api/v1/sync/approve", access.Approvals, "Apply changes to the host, all or none", decision((*api.SyncApproval).Of, Sync.Approve)},
		{http.MethodPost, "/api/v1/sync/override", access.Approvals, "Apply a change that needs a reason", decision((*api.SyncOverride).Of, Sync.Override)},
		{http.MethodPost, "/api/v1/sync/reject", access.Approvals, "Leave changes out until they become others", decision((*api.SyncRejection).Of, Sync.Reject)},
		{http.MethodPost, "/api/v1/sync/undo", access.Approvals, "Put back what was applied", decision((*api.SyncUndo).Of, Sync.Undo)},
		{http.MethodGet, "/api/v1/sync/commits", access.Read, "List commits made inside that the repository of the host has not", lookAt(s.syncCommits)},
		{http.MethodPost, "/api/v1/sync/take", access.Approvals, "Take commits to a branch of the host's repository", decision((*api.SyncTake).Of, Sync.Take)},
		{http.MethodPost, "/api/v1/sync/refresh", access.Approvals, "Show the host's files of now inside", decision((*api.SyncRequest).Of, Sync.Refresh)},
		{http.MethodPost, "/api/v1/sync/reset", access.Approvals, "Discard everything that was changed", decision((*api.SyncRequest).Of, Sync.Reset)},
		{http.MethodPost, "/api/v1/sync/accept-torn", access.Approvals, "Accept changes of before the host ended", decision((*api.SyncRequest).Of, Sync.AcceptTorn)},
		{http.MethodGet, "/api/v1/costs", access.Read, "Show what was spent on models", answers(s.costs)},
		{http.MethodGet, "/api/v1/audit", access.Read, "Show the end of the audit log", answers(s.auditTail)},
		{http.MethodGet, "/health", "", "Say that the gateway lives", answers(s.health)},
		{http.MethodGet, "/ready", "", "Say whether the gateway can do its work", answers(s.ready)},
		{http.MethodGet, "/metrics", access.Read, "Show what was counted, for Prometheus", shape{raw: "text/plain", serve: s.metrics}},
		{http.MethodGet, "/openapi.json", "", "This document", shape{raw: "application/json", serve: s.openapi}},
	}
}
