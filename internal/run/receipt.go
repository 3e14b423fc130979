package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// Step is the progress of a run. It is saved when what it names is done.
type Step string

// The steps, in order.
const (
	Accepted  Step = "accepted"
	Preparing Step = "preparing" // a sandbox may exist
	Executing Step = "executing" // the program may be running
	Answered  Step = "answered"  // there is an answer, or a failure
	Settled   Step = "settled"   // the bill is known
	Finished  Step = "finished"  // every finisher is done
	Over      Step = "done"      // the sandbox is removed
)

// Receipt is the state and result of a run, complete when its step is Over.
type Receipt struct {
	ID      string `json:"id"`
	KnownAs string `json:"knownAs,omitempty"` // the caller's own id of the run, if it is another
	Variant string `json:"variant"`
	Account string `json:"account,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"` // key of the session that it is a task of
	Task    string `json:"task,omitempty"`    // its beginning, up to MaxTask
	Branch  string `json:"branch,omitempty"`  // key of the branch that commits are for
	Trace   string `json:"trace,omitempty"`   // id of its trace
	Waiting string `json:"waiting,omitempty"` // why its branch is not free; "" once it has begun
	Model   string `json:"model"`
	Sandbox string `json:"sandbox,omitempty"`
	Image   string `json:"image,omitempty"` // that the sandbox is made of
	Step    Step   `json:"step"`
	Text    string `json:"text"`
	// SelfReport is what the program said of itself. It is never the bill.
	SelfReport SelfReport `json:"told,omitzero"`
	Error      *Failure   `json:"error"` // null if the run succeeded
	Bill       Bill       `json:"bill"`
	// PeakMemory is what the program's largest process had, in bytes.
	PeakMemory int64             `json:"peakMemory,omitzero"`
	Notes      map[string]string `json:"notes,omitempty"` // by finisher
	Delivery   *Delivery         `json:"delivery,omitempty"`
	Changes    *Changes          `json:"changes,omitempty"` // of runs on a directory
	Created    time.Time         `json:"created"`
	Started    time.Time         `json:"started,omitzero"`
	Ended      time.Time         `json:"ended,omitzero"`
	Warnings   []string          `json:"warnings,omitempty"`
}

// SelfReport is an agent's own account of its session and usage.
type SelfReport struct {
	Session  string         `json:"session,omitempty"`
	Provider string         `json:"provider,omitempty"`
	Model    string         `json:"model,omitempty"`
	Usage    envelope.Usage `json:"usage,omitzero"`
}

// Event is one event of a run.
type Event struct {
	Seq  int64      `json:"seq"`
	At   time.Time  `json:"at"`
	Type string     `json:"type"` // text_delta, tool_call, tool_result, usage_report, waiting, log, step, error, done
	Text string     `json:"text,omitempty"`
	Step Step       `json:"step,omitempty"`
	Call *chat.Call `json:"call,omitempty"`
	// IsError and TookMs belong to the result of a tool.
	IsError bool    `json:"isError,omitzero"`
	TookMs  float64 `json:"tookMs,omitzero"`
	// Usage, of a usage_report, is what the program says it has used since the one
	// before, and MicroUSD what it says that cost; a usage_report with Bill is ours.
	Usage    *chat.Usage       `json:"usage,omitempty"`
	MicroUSD int64             `json:"microUsd,omitzero"`
	Bill     *Bill             `json:"bill,omitempty"`
	Error    *Failure          `json:"error,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"` // of finishers, in the last event
}
