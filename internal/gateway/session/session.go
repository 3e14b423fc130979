// Package session holds the conversations of a long-running service: which there
// are, whose they are, what is set for each, and who works on them now.
//
// A session belongs to one billing account and is worked on by one task at a
// time; tasks of one session queue, those of several run at once. Whatever
// happens is an Event with its session's key and account, and goes to those who
// may see that account, never to all.
//
// Agents come in through Worker: this package knows neither models nor sandboxes.
package session

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// Errors that callers tell apart.
var (
	// ErrNotFound is a session or task that is not there, or that is not the
	// caller's: nobody learns which.
	ErrNotFound = errors.New("no such session")
	// ErrKeyReused is an idempotency key that was used for another task.
	ErrKeyReused = errors.New("the idempotency key was used for another task")
	// ErrBusy means that a session's queue, or the service, is full.
	ErrBusy = errors.New("too much is waiting")
	// ErrDraining means that the service takes nothing new before it ends.
	ErrDraining = errors.New("the gateway is shutting down")
	// ErrInvalid is a request that makes no sense, whoever asks.
	ErrInvalid = errors.New("invalid request")
)

// View is what a caller may see and change: the sessions of one account, or of
// all. Account is where keys lead that name no account.
type View struct {
	Account string
	All     bool
}

// Sees reports whether an account is within the view.
func (v View) Sees(account string) bool { return v.All || v.Account == account }

// Entry is what is kept about a session. Its account and key name it.
type Entry struct {
	Key     string `json:"key"` // canonical, see ParseKey
	Account string `json:"account,omitempty"`
	Agent   string `json:"agent"`
	ID      string `json:"sessionId"` // of the transcript; reset gives a new one
	Settings
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// What the last task used, and all together.
	LastModel string     `json:"lastModel,omitempty"` // provider/id
	Last      chat.Usage `json:"last,omitzero"`
	Total     chat.Usage `json:"total,omitzero"`
	Aborted   bool       `json:"abortedLastRun,omitzero"`
}

// Settings are what a patch changes.
type Settings struct {
	Label string `json:"label,omitempty"`
	Model string `json:"model,omitempty"` // provider/id, of the catalogue; "" is the agent's own
	// Headers go with this session's model calls and no other's.
	Headers map[string]string `json:"outboundHeaders,omitempty"`
	// Levels are thinkingLevel, verboseLevel and the like, by their names.
	Levels map[string]string `json:"levels,omitempty"`
}

// The levels that have an effect here; others are kept for clients.
const (
	ThinkingLevel = "thinkingLevel" // how much models think, of chat.Levels
	VerboseLevel  = "verboseLevel"  // "full": those who are told of tools are told their results
)

// Patch changes settings: a nil field stays, a field of "" or an empty map is
// cleared; of Levels only those that are named.
type Patch struct {
	Label   *string
	Model   *string
	Headers *map[string]string
	Levels  map[string]*string
}

// Task is something that is said in a session.
type Task struct {
	ID      string // the idempotency key: the same again is the same task
	Key     string
	Account string
	Message string
	Uploads []attach.Upload   // files that come with the message; not kept here
	Files   []attach.File     // what they are, which Submit finds out
	System  string            // more instructions, for this task alone
	Headers map[string]string // merged into those of the session, and kept there
	Timeout time.Duration     // 0 is the default
	Terms   Terms             // how it is carried out
	Quota   Quota             // of who asked; no part of what was asked
	Trace   string            // that it belongs to, see package trace; not kept
	Origin  string            // of the connection that asked, which alone is told about tools; not kept
}

// Terms say how one task is carried out, where that differs from what is set for
// its session. Who may ask for what is for those to decide who take tasks in.
type Terms struct {
	Model      string `json:"model,omitempty"`      // provider/id, for this task alone
	Transcript string `json:"transcript,omitempty"` // id of the conversation; "" is the session's own
	Run        string `json:"run,omitempty"`        // id of the receipt; "" is one made of the task's
	Thinking   string `json:"thinking,omitempty"`   // how much the model thinks, of chat.Levels; "" is the session's
	Branch     string `json:"branch,omitempty"`     // key of the branch that its commits are for
	Turns      int    `json:"turns,omitzero"`       // answers of the model at most; 0 is the default
	Tokens     int64  `json:"tokens,omitzero"`      // read and written at most; 0 is the default
	MicroUSD   int64  `json:"microUsd,omitzero"`    // to spend at most; 0 is no limit of its own
	HostTools  bool   `json:"hostTools,omitzero"`   // work on the host if the session is not sandboxed
}

// Quota bounds what a task may take of what its account has; 0 is no limit.
type Quota struct {
	Sandboxes int   `json:"sandboxes,omitzero"` // alive, of the account
	MicroUSD  int64 `json:"microUsd,omitzero"`  // that the account spends on the day of a call
}

// Location is where a task is carried out.
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
	// Notices are what whoever asked should know before it begins.
	Notices []string `json:"notices,omitempty"`
}

// Report is what a worker tells of a task beside its answer.
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

// Delivery is what became of a task's commits.
type Delivery struct {
	Branch string `json:"branch"`
	State  string `json:"state,omitempty"`
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"`
	Error  string `json:"error,omitempty"` // why they were not sent
	Hint   string `json:"hint,omitempty"`
}

// State is how far a task has come.
type State string

// The states, in order.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
	Aborted State = "aborted"
)

// Codes of failures that are the service's own to tell.
const (
	CodeInterrupted = "interrupted" // the process ended while the task was under way
	CodeTimeout     = "timeout"
	CodeFailed      = "failed"
	CodeNotStarted  = "not_started" // something kept the agent from beginning
	CodeInternal    = "internal"
)

// Failure is an error of a worker with a code for programs.
type Failure struct {
	Code string
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Over reports whether nothing more will happen.
func (s State) Over() bool { return s == Done || s == Failed || s == Aborted }

// Record is a task and what became of it.
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
	Hint     string // what to do about it, which Problem has too
	Report   *Report
	Accepted time.Time
	Started  time.Time
	Ended    time.Time
}

// Event is something that happened to a task, as it happened.
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
	Text     string     // Said: everything of the message so far; Ended: the answer
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

// EventKind names what an event tells.
type EventKind string

// The kinds of events.
const (
	Accepted EventKind = "accepted"
	Started  EventKind = "started"
	Prepared EventKind = "prepared" // the sandbox is there, no model was asked yet
	Said     EventKind = "said"
	Called   EventKind = "called"
	Returned EventKind = "returned"
	Used     EventKind = "used"
	Noticed  EventKind = "noticed"
	Ended    EventKind = "ended"
	Changed  EventKind = "changed" // an entry was patched, reset or deleted
)

// Job is a task with all that its worker has to know.
type Job struct {
	Task
	Agent   string
	Session string            // id of the transcript
	Model   string            // the override in force, "" for none
	Headers map[string]string // the session's and the task's
	Levels  map[string]string
	Sources []string // paths of the files that came with the message
}

// Outcome is what a worker has to say at the end.
type Outcome struct {
	Text     string
	Model    string
	Usage    chat.Usage
	MicroUSD int64
	Report   *Report // nil if there is nothing to tell
}

// Worker carries out tasks. It is given one at a time for each session, and ends
// what it began when the context ends. What it tells is of the kinds from Prepared to
// Noticed; the outcome may be nil, and counts also beside an error.
type Worker interface {
	// Resolve finds a model in the catalogue: provider/id, or an error with a hint.
	Resolve(agent, model string) (string, error)
	Work(ctx context.Context, job *Job, tell func(Event)) (*Outcome, error)
	// History is a session's transcript; Forget removes it, Compact shortens it.
	History(ctx context.Context, e *Entry, most int) ([]chat.Message, error)
	Forget(ctx context.Context, e *Entry) error
	Compact(ctx context.Context, e *Entry) (before, after int, err error)
}
