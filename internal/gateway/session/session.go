// Package session stores conversations, queues their tasks and publishes their
// events.
//
// A session belongs to one billing account and runs one task at a time; tasks of
// one session queue, those of several run concurrently. Every Event has its
// session's key and account, and goes only to subscribers that may see that
// account.
//
// Agents are run by a Worker: this package uses neither models nor sandboxes.
package session

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// Errors of the service.
var (
	// ErrNotFound is returned for a session or task that does not exist, or that the
	// caller may not see.
	ErrNotFound = errors.New("no such session")
	// ErrKeyReused is returned for an idempotency key that was used for another task.
	ErrKeyReused = errors.New("the idempotency key was used for another task")
	// ErrBusy means that a queue is full.
	ErrBusy = errors.New("too much is waiting")
	// ErrDraining means that the service accepts nothing new before it ends.
	ErrDraining = errors.New("the gateway is shutting down")
	// ErrInvalid is returned for a malformed request.
	ErrInvalid = errors.New("invalid request")
)

// View is what a caller may see and change: the sessions of one account, or of all.
// Account applies to keys that name no account.
type View struct {
	Account string
	All     bool
}

// Sees reports whether an account is within the view.
func (v View) Sees(account string) bool { return v.All || v.Account == account }

// Entry is a stored session, identified by its account and key.
type Entry struct {
	Key     string `json:"key"` // canonical, see ParseKey
	Account string `json:"account,omitempty"`
	Agent   string `json:"agent"`
	ID      string `json:"sessionId"` // of the transcript; reset gives a new one
	Settings
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Usage of the last task, and of all tasks.
	LastModel string     `json:"lastModel,omitempty"` // provider/id
	Last      chat.Usage `json:"last,omitzero"`
	Total     chat.Usage `json:"total,omitzero"`
	Aborted   bool       `json:"abortedLastRun,omitzero"`
}

// Settings are changed by a Patch.
type Settings struct {
	Label string `json:"label,omitempty"`
	Model string `json:"model,omitempty"` // provider/id, of the catalogue; "" is the agent's own
	// Headers are added to this session's model calls only.
	Headers map[string]string `json:"outboundHeaders,omitempty"`
	// Levels are thinkingLevel, verboseLevel and the like, by their names.
	Levels map[string]string `json:"levels,omitempty"`
}

// Levels with an effect here; others are stored for clients.
const (
	ThinkingLevel = "thinkingLevel" // level of thinking, one of chat.Levels
	VerboseLevel  = "verboseLevel"  // "full": tool events include results
)

// Patch changes settings: a nil field stays, "" or an empty map clears; of Levels
// only the named ones change.
type Patch struct {
	Label   *string
	Model   *string
	Headers *map[string]string
	Levels  map[string]*string
}

// Task is a message to an agent.
type Task struct {
	ID      string // the idempotency key: the same again is the same task
	Key     string
	Account string
	Message string
	Uploads []attach.Upload   // files of the message; not stored here
	Files   []attach.File     // their descriptions, set by Submit
	System  string            // additional instructions for this task
	Headers map[string]string // merged into those of the session, and stored there
	Timeout time.Duration     // 0 is the default
	Terms   Terms             // how it is carried out
	Quota   Quota             // of the caller; not compared with a repeated task
	Trace   string            // traceparent; not stored
	Origin  string            // id of the submitting connection, which alone gets tool events; not stored
}

// Terms are settings of one task that differ from its session's. The caller of
// Submit decides who may set which.
type Terms struct {
	Model      string `json:"model,omitempty"`      // provider/id, for this task alone
	Transcript string `json:"transcript,omitempty"` // id of the conversation; "" is the session's own
	Run        string `json:"run,omitempty"`        // id of the receipt; "" is one made of the task's
	Thinking   string `json:"thinking,omitempty"`   // level of thinking, one of chat.Levels; "" is the session's
	Branch     string `json:"branch,omitempty"`     // key of the branch that its commits are for
	Turns      int    `json:"turns,omitzero"`       // answers of the model at most; 0 is the default
	Tokens     int64  `json:"tokens,omitzero"`      // read and written at most; 0 is the default
	MicroUSD   int64  `json:"microUsd,omitzero"`    // to spend at most; 0 is no limit of its own
	HostTools  bool   `json:"hostTools,omitzero"`   // work on the host if the session is not sandboxed
}

// Quota bounds what a task may use of its account's; 0 is no limit.
type Quota struct {
	Sandboxes int   `json:"sandboxes,omitzero"` // alive, of the account
	MicroUSD  int64 `json:"microUsd,omitzero"`  // that the account spends on the day of a call
}

// Location is where a task is executed: its run, sandbox and limits.
type Location struct {
	Run     string `json:"run"`   // id of the receipt
	Model   string `json:"model"` // that is asked first
	Sandbox string `json:"sandbox,omitempty"`
	Backend string `json:"backend,omitempty"`
	Image   string `json:"image,omitempty"`
	Network string `json:"network,omitempty"`
	Workdir string `json:"workdir,omitempty"`
	Access  string `json:"workspaceAccess,omitempty"`
	Limits  string `json:"limits,omitempty"` // in words
	// Notices are shown to the caller before the task starts.
	Notices []string `json:"notices,omitempty"`
}

// Report is how a worker executed a task.
type Report struct {
	Run      string    `json:"run"`
	Sandbox  string    `json:"sandbox,omitempty"`
	Backend  string    `json:"backend,omitempty"`
	Image    string    `json:"image,omitempty"`
	Model    string    `json:"model,omitempty"` // that was asked first
	Turns    int       `json:"turns"`
	Calls    int       `json:"toolCalls"`
	TookMs   float64   `json:"tookMs"`
	Unpriced int64     `json:"unpricedCalls,omitzero"`
	Delivery *Delivery `json:"delivery,omitempty"` // of tasks on a branch
}

// Delivery is what happened to a task's commits.
type Delivery struct {
	Branch string `json:"branch"`
	State  string `json:"state,omitempty"`
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"`
	Error  string `json:"error,omitempty"` // why they were not sent
	Hint   string `json:"hint,omitempty"`
}

// State is the state of a task.
type State string

// The states, in order.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	Aborted State = "aborted"
)

// Failure codes set by the service itself.
const (
	CodeInterrupted = "interrupted" // the process ended while the task was under way
	CodeTimeout     = "timeout"
	CodeFailed      = "failed"
	CodeNotStarted  = "not_started" // the agent could not be started
	CodeInternal    = "internal"
)

// Failure is an error of a worker with a code for programs.
type Failure struct {
	Code string
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Over reports whether a task has ended.
func (s State) Over() bool { return s == Done || s == Failed || s == Aborted }

// Record is a task and its outcome.
type Record struct {
	Task
	Agent    string
	Session  string // id of the transcript
	State    State
	Text     string // the answer
	Model    string // provider/id that gave it
	Usage    chat.Usage
	MicroUSD int64
	Code     string // why it failed, for programs
	Problem  string // and for people
	Hint     string // what to do about it; also part of Problem
	Report   *Report
	Accepted time.Time
	Started  time.Time
	Ended    time.Time
}

// Event is something that happened to a task.
type Event struct {
	Task     string // id
	Key      string
	Account  string
	Agent    string
	Origin   string
	Seq      int64 // within the task, from 1 with Started; Accepted and Changed have none
	At       time.Time
	Kind     EventKind
	Delta    string     // Said: what is new
	Text     string     // Said: the whole message so far; Ended: the answer
	Call     *chat.Call // Called, Returned
	Result   string     // Returned
	Verbose  string     // the session's VerboseLevel when the task began
	IsError  bool
	TookMs   float64     // Returned
	Usage    *chat.Usage // Used, Ended
	Model    string
	Notice   string
	Location *Location // Prepared
	Record   *Record   // Ended
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	Accepted EventKind = "accepted"
	Started  EventKind = "started"
	Prepared EventKind = "prepared" // the sandbox is ready, no model was called yet
	Said     EventKind = "said"
	Called   EventKind = "called"
	Returned EventKind = "returned"
	Used     EventKind = "used"
	Noticed  EventKind = "noticed"
	Ended    EventKind = "ended"
	Changed  EventKind = "changed" // an entry was patched, reset or deleted
)

// Job is a task with everything that its worker needs.
type Job struct {
	Task
	Agent   string
	Session string            // id of the transcript
	Model   string            // the override in force, "" for none
	Headers map[string]string // the session's and the task's
	Levels  map[string]string
	Sources []string // paths of the files that came with the message
}

// Outcome is a worker's result.
type Outcome struct {
	Text     string
	Model    string
	Usage    chat.Usage
	MicroUSD int64
	Report   *Report // may be nil
}

// Worker executes tasks, one at a time for each session, and stops when the context
// ends. It publishes events of the kinds from Prepared to Noticed. The outcome may
// be nil, and counts also beside an error.
type Worker interface {
	// Resolve returns a model of the catalogue as provider/id, or an error with a
	// hint.
	Resolve(agent, model string) (string, error)
	Work(ctx context.Context, job *Job, tell func(Event)) (*Outcome, error)
	// History returns a session's transcript; Forget removes it, Compact shortens it.
	History(ctx context.Context, e *Entry, most int) ([]chat.Message, error)
	Forget(ctx context.Context, e *Entry) error
	Compact(ctx context.Context, e *Entry) (before, after int, err error)
}
