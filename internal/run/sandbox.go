package run

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/model/grant"
)

// Sandboxes makes and finds the sandboxes of runs.
type Sandboxes interface {
	// Make provides a sandbox without a network, for one run, that answers. On
	// failure nothing is left.
	Make(ctx context.Context, o *SandboxRequest) (Sandbox, error)
	// Find returns what an earlier process made for a run; nil if nothing is left.
	Find(ctx context.Context, run string) (Sandbox, error)
}

// SandboxRequest says which sandbox a run needs.
type SandboxRequest struct {
	Run    string
	Branch string // that its commits are for; "" if none are wanted
	// Checkout is Request.Checkout.
	Checkout string
	Account  string
	Agent    string
	Image    string
	User     string
	Memory   int64
	// MemoryAsked says that the request names Memory.
	MemoryAsked bool
	Mounts      []Mount
	Binds       []string
	Volumes     []string
}

// Sandbox is a sandbox of one run.
type Sandbox interface {
	Name() string
	Image() string
	Write(ctx context.Context, files []File) error
	// Grant opens the port of the models; end closes it, and ends what was
	// started under it.
	Grant(ctx context.Context, terms *grant.Terms) (end func(context.Context) error, err error)
	// Exec runs a program until its end or its limit. An error means that there
	// is no result.
	Exec(ctx context.Context, c *Command) (*Result, error)
	// Deliver takes the commits of the run out and sends them, unless the run
	// failed. The note says what became of them; "" if none were wanted.
	Deliver(ctx context.Context, receipt *Receipt) (note string, err error)
	// Remove removes the sandbox and its files. It is no error if it is gone.
	Remove(ctx context.Context) error
}

// Command is a program to run in a sandbox.
type Command struct {
	Argv    []string
	Env     map[string]string
	Dir     string
	Timeout time.Duration
	// MaxOutput bounds what is kept of the standard output, from its end; of
	// standard error the last 16 KiB are.
	MaxOutput int
	// Line, if set, is called with every line of standard error as it comes. Lines
	// for which it returns true are not part of Result.Stderr.
	Line func(line []byte) bool
	// Out, if set, is called with every line of standard output as it comes; a line
	// that is too long is left out.
	Out func(line []byte)
}

// Result is how a program ended.
type Result struct {
	Stdout    []byte
	Truncated bool // there was more before
	Stderr    []byte
	Exit      int
	Signal    string // "" if it was not ended by one
	OOM       bool
	TimedOut  bool
	Memory    int64 // its largest process, bytes
	DiskFull  bool  // it was ended because the host's disk ran full
}

// Biller settles the bill of a run.
type Biller interface {
	// Settle returns what the model calls of a run cost, preferring the upstream's
	// figures. It can be repeated, and then returns the same or better figures.
	Settle(ctx context.Context, run string) (Bill, error)
}

// Bill is what a run has cost.
type Bill struct {
	MicroUSD    int64  `json:"microUsd"`
	Input       int64  `json:"inputTokens"`
	Output      int64  `json:"outputTokens"`
	Calls       int    `json:"calls"`
	Unpriced    int    `json:"unpricedCalls,omitzero"`
	Source      string `json:"source"` // whose figures these are
	Provisional bool   `json:"provisional"`
}

// Finisher handles what a run has made, before its sandbox is removed. It may be
// called again after a crash, so it must be idempotent.
type Finisher interface {
	Name() string
	Finish(ctx context.Context, receipt *Receipt, sandbox Sandbox) (note string, err error)
}
