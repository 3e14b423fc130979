package api

import "time"

// Session is a conversation with an agent.
type Session struct {
	Key       string            `json:"key"`
	Account   string            `json:"account,omitempty"`
	Agent     string            `json:"agent"`
	SessionID string            `json:"sessionId" doc:"Of the transcript; a reset gives a new one."`
	Label     string            `json:"label,omitempty"`
	Model     string            `json:"model,omitempty" doc:"Override, provider/id."`
	Headers   []string          `json:"outboundHeaders,omitempty" doc:"Names of the headers that go with its model calls; values are not shown."`
	Levels    map[string]string `json:"levels,omitempty"`
	Created   time.Time         `json:"created"`
	Updated   time.Time         `json:"updated"`
	LastModel string            `json:"lastModel,omitempty"`
	Total     Usage             `json:"total,omitzero"`
	Aborted   bool              `json:"abortedLastRun,omitzero"`
}

// SessionQuery filters sessions.
type SessionQuery struct {
	Limit   int    `query:"limit" min:"1" max:"1000" doc:"At most so many; 100 if not given."`
	Cursor  string `query:"cursor" doc:"next of the page before."`
	Account string `query:"account" doc:"Only this billing account."`
	Agent   string `query:"agent" doc:"Only this agent."`
	Search  string `query:"search" doc:"Only those with this in key, label or id."`
}

// Sessions is a page of sessions, those that changed last first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitempty"`
}

// SessionPatch changes settings: absent members stay, empty ones are cleared.
type SessionPatch struct {
	Label   *string            `json:"label,omitempty"`
	Model   *string            `json:"model,omitempty" doc:"provider/id of the catalogue; in force for the next call."`
	Headers *map[string]string `json:"outboundHeaders,omitempty" doc:"Go with this session's model calls and no other's."`
	Levels  map[string]*string `json:"levels,omitempty"`
}

// HistoryQuery bounds a history.
type HistoryQuery struct {
	Limit int `query:"limit" min:"1" max:"10000" doc:"The last so many; 200 if not given."`
}

// History is the transcript of a session.
type History struct {
	Messages []HistoryMessage `json:"messages"`
}

// HistoryMessage is one message of a transcript.
type HistoryMessage struct {
	Role    string `json:"role" enum:"user|assistant|tool"`
	Content string `json:"content,omitempty"`
	Calls   []Call `json:"calls,omitempty"`
	CallID  string `json:"callId,omitempty"`
	IsError bool   `json:"isError,omitzero"`
	// At is when it was written down.
	At time.Time `json:"at,omitzero"`
}

// SendRequest submits a message to a session.
type SendRequest struct {
	Message string `json:"message" doc:"May be empty if there are attachments."`
	// Attachments are copied into the sandbox before the agent starts.
	Attachments []Attachment      `json:"attachments,omitempty" doc:"Files for the agent, at most 20 and 16 MiB in all. It finds them below /workspace/media/inbound."`
	Account     string            `json:"account,omitempty" doc:"Billing account of a session that is new. A token that is bound to one pays with that."`
	System      string            `json:"system,omitempty" doc:"More instructions, for this message alone."`
	Headers     map[string]string `json:"outboundHeaders,omitempty" doc:"Merged into those of the session, and kept there."`
	Timeout     int               `json:"timeoutSeconds,omitzero"`
	// For this message alone.
	Model      string `json:"model,omitempty" doc:"provider/name, for this message alone."`
	Thinking   string `json:"thinking,omitempty" doc:"How much the model thinks first: off, minimal, low, medium or high."`
	MaxTurns   int    `json:"maxTurns,omitzero" doc:"Most answers of the model."`
	Budget     Budget `json:"budget,omitzero" doc:"What it may spend on models at most."`
	BranchName string `json:"branchName,omitempty" doc:"Key of the branch that commits go to."`
	SessionID  string `json:"sessionId,omitempty" doc:"Conversation to go on with, in place of the session's own. Only for admins that are bound to no account."`
	RunID      string `json:"runId,omitempty" doc:"Id of the receipt. Only for admins that are bound to no account."`
	HostTools  bool   `json:"hostTools,omitzero" doc:"Work on the host if the session is not sandboxed. Only for admins that are bound to no account."`
}

// Attachment is a file that comes with a message.
type Attachment struct {
	Name    string `json:"name,omitempty" doc:"What the sender calls it; only letters, digits, dots, dashes and underscores of it are kept."`
	Content []byte `json:"content" doc:"In base64. Its type is found out from it."`
}

// Location is where a task is executed: its run, sandbox and limits.
type Location struct {
	Run     string   `json:"run" doc:"Id of the receipt."`
	Model   string   `json:"model" doc:"Who is asked first."`
	Sandbox string   `json:"sandbox,omitempty" doc:"Absent if its tools work on the host."`
	Backend string   `json:"backend,omitempty"`
	Image   string   `json:"image,omitempty"`
	Network string   `json:"network,omitempty"`
	Workdir string   `json:"workdir,omitempty"`
	Access  string   `json:"workspaceAccess,omitempty"`
	Limits  string   `json:"limits,omitempty" doc:"What the sandbox may use, in words."`
	Notices []string `json:"notices,omitempty" doc:"What to know before it begins."`
}

// Report is how a task was executed, beside its answer.
type Report struct {
	Run      string    `json:"run" doc:"Id of the receipt."`
	Sandbox  string    `json:"sandbox,omitempty"`
	Backend  string    `json:"backend,omitempty"`
	Image    string    `json:"image,omitempty" doc:"What the sandbox is made of."`
	Model    string    `json:"model,omitempty" doc:"Who was asked first."`
	Turns    int       `json:"turns"`
	Calls    int       `json:"toolCalls"`
	TookMs   float64   `json:"tookMs"`
	Unpriced int64     `json:"unpricedCalls,omitzero"`
	Delivery *Delivery `json:"delivery,omitempty" doc:"What became of its commits."`
}

// Delivery is what happened to a task's commits.
type Delivery struct {
	Branch string `json:"branch"`
	State  string `json:"state,omitempty"`
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"`
	Error  string `json:"error,omitempty" doc:"Why they were not sent."`
	Hint   string `json:"hint,omitempty"`
}

// Task is a message and the agent's answer to it.
type Task struct {
	ID        string    `json:"id"`
	Key       string    `json:"key"`
	Account   string    `json:"account,omitempty"`
	Agent     string    `json:"agent"`
	SessionID string    `json:"sessionId,omitempty" doc:"Of the transcript."`
	State     string    `json:"state" enum:"queued|running|done|failed|aborted"`
	Text      string    `json:"text" doc:"The answer."`
	Model     string    `json:"model,omitempty"`
	Usage     Usage     `json:"usage,omitzero"`
	MicroUSD  int64     `json:"microUsd,omitzero"`
	Error     *Failure  `json:"error" doc:"null if it succeeded or is not over."`
	Hint      string    `json:"hint,omitempty" doc:"What to do about the error."`
	Report    *Report   `json:"report,omitempty" doc:"How it was carried out."`
	Accepted  time.Time `json:"accepted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
}

// Aborted lists the tasks that were aborted.
type Aborted struct {
	IDs []string `json:"ids"`
}
