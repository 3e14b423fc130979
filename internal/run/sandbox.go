package run

import (
	"context"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
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
	// Directory is Request.Directory.
	Directory string
	Account   string
	Agent     string
	Image     string
	User      string
	Memory    int64
	// MemoryAsked says that the request names Memory.
	MemoryAsked bool
	Mounts      []Mount
	Binds       []string
	Volumes     []string
	// BranchLock is the lock of Branch, which the sandbox releases; nil if the run
	// has none.
	BranchLock *filelock.Lock `json:"-"`
}

// Sandbox is a sandbox of one run.
type Sandbox interface {
	Name() string
	Image() string
	Write(ctx context.Context, files []File) error
	// Grant opens the port of the models; end closes it, and ends what was
	// started under it.
	Grant(ctx context.Context, terms *grant.Terms) (end func(context.Context) error, err error)
	// Exec runs a program until its end or its limit, with the environment that
	// every program of the sandbox has beside the command's own, and under the grant.
	// An error means that there is no result.
	Exec(ctx context.Context, c *machine.Command) (*machine.Result, error)
	// Deliver takes the commits of the run out and sends them, unless the run
	// failed. The note says what became of them; "" if none were wanted. Of a run on
	// a directory it notes what changed in the receipt.
	Deliver(ctx context.Context, receipt *Receipt) (note string, err error)
	// Remove removes the sandbox and its files. It is no error if it is gone.
	Remove(ctx context.Context) error
}

// Denier is a Sandbox that knows what egress refused to the run, a line each.
type Denier interface{ Denied() []string }

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
	Finish(ctx context.Context, e *Ended) (note string, err error)
}

// Ended is a run whose agent has ended, as finishers get it.
type Ended struct {
	Receipt *Receipt
	Sandbox Sandbox // nil if there is none
	// BranchLock is the lock of a run's branch that no sandbox was given; nil if the
	// run has none, or another process began it.
	BranchLock *filelock.Lock
}
