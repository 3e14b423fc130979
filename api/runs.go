package api

import "time"

// RunRequest starts a run.
type RunRequest struct {
	ID       string    `json:"id,omitempty" doc:"Id of the run; asking twice is asking once. Only callers that are bound to no account choose one, others give an Idempotency-Key."`
	GraphID  string    `json:"graphId,omitempty" doc:"Which agent works, of the catalogue; sandbox:agent if none is named."`
	Agent    string    `json:"agent,omitempty" doc:"Agent of the configuration whose settings and budgets apply; the default one if none is named."`
	Account  string    `json:"account,omitempty" doc:"Billing account that pays. A token that is bound to one pays with that."`
	Model    string    `json:"model,omitempty" doc:"provider/name; the agent's own if none is named."`
	Message  string    `json:"message,omitempty" doc:"The task. Either this or messages."`
	Messages []Message `json:"messages,omitempty" doc:"The conversation; the last message is the user's, and the task."`
	Budget   Budget    `json:"budget,omitzero" doc:"What it may spend on models at most."`
	Timeout  int       `json:"timeoutSeconds,omitzero" doc:"Seconds until it is ended, at most the agent's own limit."`
	Memory   int64     `json:"memory,omitzero" doc:"Bytes of memory, at most the agent's own limit."`
	// Keys of the branch for commits, in order of precedence.
	BranchName string `json:"branchName,omitempty" doc:"Key of the branch that commits go to."`
	WorkItemID string `json:"workItemId,omitempty" doc:"Work item that names the branch, if branchName does not."`
	StateKey   string `json:"stateKey,omitempty" doc:"Conversation that names the branch, only with branchMode thread."`
	BranchMode string `json:"branchMode,omitempty" doc:"thread: stateKey may name the branch." enum:"thread"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role" enum:"user|assistant"`
	Content string `json:"content"`
}

// Budget bounds what is spent; 0 is no bound.
type Budget struct {
	USD    float64 `json:"usd,omitzero"`
	Tokens int64   `json:"tokens,omitzero"`
}

// Run is a run and its outcome, which is complete when Step is RunOver.
type Run struct {
	ID         string            `json:"id"`
	KnownAs    string            `json:"knownAs,omitempty" doc:"The id as who asked for a task of a session knows it. It finds the run too."`
	GraphID    string            `json:"graphId"`
	Account    string            `json:"account,omitempty"`
	Agent      string            `json:"agent,omitempty" doc:"Agent of the configuration."`
	Session    string            `json:"session,omitempty" doc:"Key of the session that it is a task of; its history has the steps."`
	Task       string            `json:"task,omitempty" doc:"The beginning of what was asked, at most 4 KiB; of a summary 200 bytes."`
	Branch     string            `json:"branch,omitempty" doc:"Key of the branch that its commits are for."`
	Pull       string            `json:"pullRequest,omitempty" doc:"Address of the pull request with its commits."`
	Trace      string            `json:"trace,omitempty" doc:"Id of its trace."`
	TraceURL   string            `json:"traceUrl,omitempty" doc:"The page of its trace in the operator's tool, as gateway.links.trace says."`
	WaitingFor string            `json:"waitingFor,omitempty" doc:"What it waits for: turn, approval, or why its branch is not free."`
	Model      string            `json:"model"`
	Sandbox    string            `json:"sandbox,omitempty"`
	Image      string            `json:"image,omitempty" doc:"What the sandbox is made of."`
	Step       string            `json:"step" enum:"accepted|preparing|executing|answered|settled|finished|done"`
	Text       string            `json:"text" doc:"The answer."`
	Error      *Failure          `json:"error" doc:"Why there is none; null if the run succeeded or is not over."`
	Bill       Bill              `json:"bill"`
	SelfReport SelfReport        `json:"told,omitzero" doc:"What the agent said of itself."`
	PeakMemory int64             `json:"peakMemory,omitzero"`
	Notes      map[string]string `json:"notes,omitempty" doc:"What became of the work, such as the address of a pull request."`
	Delivery   *Delivery         `json:"delivery,omitempty" doc:"What became of its commits."`
	Changes    *RunChanges       `json:"changes,omitempty" doc:"Of a run on a directory of the host: what waited at its gate when it ended."`
	Created    time.Time         `json:"created"`
	Started    time.Time         `json:"started,omitzero"`
	Ended      time.Time         `json:"ended,omitzero"`
	Warnings   []string          `json:"warnings,omitempty"`
}

// RunChanges are what waits at the gate of a run on a directory of the host.
type RunChanges struct {
	Directory string `json:"directory" doc:"Only for callers that are bound to no account."`
	Pass      int    `json:"pass"`
	Approval  int    `json:"approval"`
	Blocked   int    `json:"blocked"`
	Conflict  int    `json:"conflict"`
	Withheld  int    `json:"withheld" doc:"Files that are never taken over."`
	Hidden    int    `json:"hidden" doc:"Files of the directory that were not visible inside."`
	Commits   int    `json:"commits" doc:"That the repository has not."`
}

// RunOver is the last step of a run.
const RunOver = "done"

// Failure is why a run has no answer.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Bill is what a run has cost.
type Bill struct {
	MicroUSD    int64  `json:"microUsd"`
	Input       int64  `json:"inputTokens"`
	Output      int64  `json:"outputTokens"`
	Calls       int    `json:"calls"`
	Unpriced    int    `json:"unpricedCalls,omitzero"`
	Source      string `json:"source" doc:"Whose figure it is."`
	Provisional bool   `json:"provisional"`
}

// SelfReport is what an agent reports about itself. It is not the bill.
type SelfReport struct {
	Session  string            `json:"session,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Model    string            `json:"model,omitempty"`
	Usage    SelfReportedUsage `json:"usage,omitzero"`
}

// SelfReportedUsage is the number of tokens that an agent reports.
type SelfReportedUsage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// RunQuery filters runs.
type RunQuery struct {
	Limit   int    `query:"limit" min:"1" max:"1000" doc:"At most so many; 100 if not given."`
	Cursor  string `query:"cursor" doc:"next of the page before."`
	Account string `query:"account" doc:"Only this billing account."`
	GraphID string `query:"graphId" doc:"Only this agent."`
	Open    bool   `query:"open" doc:"Only those that are not over."`
	State   string `query:"state" enum:"open|done|failed" doc:"Only those in this state."`
	Error   string `query:"error" doc:"Only those that failed with this code."`
	Model   string `query:"model" doc:"Only those of this model."`
	Branch  string `query:"branch" doc:"Only those whose commits are for this branch."`
	Since   string `query:"since" doc:"Only those accepted since this time (RFC 3339)."`
	Until   string `query:"until" doc:"Only those accepted before this time (RFC 3339)."`
	Text    string `query:"q" doc:"Only those whose task has this text, or whose id begins so."`
	Fields  string `query:"fields" enum:"summary" doc:"summary leaves out the answer, notes and warnings, and shortens the task."`
}

// Runs is a page of runs, the latest first.
type Runs struct {
	Runs  []Run  `json:"runs"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent if this is the last."`
	Total int    `json:"total" doc:"How many there are on all pages."`
}

// Event is an event of a run or of a task of a session.
type Event struct {
	Seq      int64             `json:"seq"`
	At       time.Time         `json:"at"`
	Type     string            `json:"type" enum:"text_delta|tool_call|tool_result|usage_report|step|waiting|log|error|done|started|prepared|notice"`
	Text     string            `json:"text,omitempty"`
	Step     string            `json:"step,omitempty"`
	Call     *Call             `json:"call,omitempty"`
	IsError  bool              `json:"isError,omitzero"`
	TookMs   float64           `json:"tookMs,omitzero"`
	Usage    *Usage            `json:"usage,omitempty" doc:"Of usage_report: tokens that the program says it used since the report before."`
	MicroUSD int64             `json:"microUsd,omitzero" doc:"Of usage_report: what the program says that cost. The bill is in bill."`
	Bill     *Bill             `json:"bill,omitempty"`
	Error    *Failure          `json:"error,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"`
	Place    *Location         `json:"place,omitempty" doc:"Where a session's task is carried out, of prepared."`
	Task     string            `json:"task,omitempty" doc:"Of a session's events over /api/v1/live: the task."`
}

// EventDone is the type of a run's last event.
const EventDone = "done"

// Call is a tool call, its arguments as the model wrote them.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Usage counts tokens. Input includes cached ones.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// EventQuery filters events of a run.
type EventQuery struct {
	After int64 `query:"after" min:"0" doc:"Only those after this number. Last-Event-ID means the same."`
}

// Events is a page of a run's events.
type Events struct {
	Events []Event `json:"events"`
	Over   bool    `json:"over" doc:"Nothing more will come."`
}

// RunCost is what one run has spent, so far or in the end.
type RunCost struct {
	ID   string `json:"id"`
	Bill Bill   `json:"bill"`
}

// ModelCall is one call of a model by a run, without what was said.
type ModelCall struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Asked      string    `json:"modelAsked"`
	Model      string    `json:"model"`
	Dialect    string    `json:"dialect"`
	Status     int       `json:"status"`
	Input      int64     `json:"inputTokens" doc:"Without those that were cached."`
	Cached     int64     `json:"cachedInputTokens"`
	CacheWrite int64     `json:"cacheWriteTokens"`
	Output     int64     `json:"outputTokens"`
	Reasoning  int64     `json:"reasoningTokens" doc:"Of the output."`
	MicroUSD   int64     `json:"microUsd"`
	Billed     bool      `json:"billed" doc:"The figure is the provider's; else it is our own."`
	Priced     bool      `json:"priced"`
	Crashed    bool      `json:"crashed,omitzero" doc:"Its process died, and what was reserved is charged."`
}

// ModelCalls are the calls of a run, the oldest first.
type ModelCalls struct {
	Calls []ModelCall `json:"calls"`
}
