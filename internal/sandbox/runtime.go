package sandbox

import (
	"context"
	"net"
	"time"
)

// A Runtime makes sandboxes on one kind of machinery. Its methods are safe for
// concurrent use; callers serialise work on one name (the Manager does).
type Runtime interface {
	// Check returns what this machinery cannot enforce of spec here. A gap means
	// that nothing is created.
	Check(ctx context.Context, spec *Spec) []Gap
	// Create makes the sandbox, stopped. ErrExists if the name is taken by a
	// sandbox of this installation, ErrForeign if by anything else, ErrNoImage
	// if the image is missing. On failure nothing is left.
	Create(ctx context.Context, spec *Spec) (Instance, error)
	// Open finds a sandbox that an earlier process made. ErrNotFound if there is
	// none, ErrForeign if the name belongs to someone else. It costs one call to
	// the machinery, whose findings are the instance's Seen.
	Open(ctx context.Context, name string) (Instance, error)
	// List returns every sandbox of this installation, by its label.
	List(ctx context.Context) ([]Summary, error)
}

// A Sweeper is a runtime that keeps something beside its sandboxes, such as a
// directory on the host. Sweep removes what is left of that when the sandbox of
// a name does not exist any more; it is no error if nothing is.
type Sweeper interface {
	Sweep(ctx context.Context, name string) error
}

// A Finder is a Sweeper that lists the names of which something is left although they
// have no sandbox that could be opened.
type Finder interface {
	Sweeper
	Unrecorded(ctx context.Context) ([]string, error)
}

// An ImageResolver is a runtime whose image references can come to mean other images.
type ImageResolver interface {
	// ImageID returns what Summary.ImageID would be of a sandbox that was made from ref
	// now; "" if ref always means the same.
	ImageID(ctx context.Context, ref string) (string, error)
}

// An Instance is one sandbox on its machinery.
type Instance interface {
	// Seen is what was known when the instance was opened, created or started.
	Seen() Summary
	Start(ctx context.Context) error
	// Dial opens a fresh wire to the guest, after checking that the peer is the
	// sandbox's process 1. Several may dial at once.
	Dial(ctx context.Context) (net.Conn, error)
	State(ctx context.Context) (State, error)
	Stop(ctx context.Context, grace time.Duration) error
	Kill(ctx context.Context) error   // from outside, whatever the guest does
	Remove(ctx context.Context) error // kills if running; nil if already gone
}

// A Saver is an instance whose files are on another machine. Save brings them home: it is
// called before a removal that is to lose nothing. ErrNotSaved means that the sandbox
// answers, and stays; nil also that it does not run.
type Saver interface {
	Save(ctx context.Context) error
}

// Gap is one thing that the machinery cannot enforce, and what would change that.
type Gap struct {
	Field  string `json:"field"` // the property of the Spec, as the config file names it
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
	// Wrong says that the setting is a mistake: no machinery could enforce it.
	Wrong bool `json:"-"`
}

// State is where a sandbox is in its life.
type State string

// The states. Paused sandboxes exist but answer nothing until resumed.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StatePaused  State = "paused"
	StateStopped State = "stopped"
	StateDead    State = "dead"
)

// Summary is what a runtime tells of a sandbox without entering it.
type Summary struct {
	Name      string            `json:"name"`
	ID        string            `json:"id"` // the machinery's own, immutable
	State     State             `json:"state"`
	Image     string            `json:"image"`   // the reference it was made from
	ImageID   string            `json:"imageId"` // what that reference meant then
	CreatedAt time.Time         `json:"createdAt"`
	Labels    map[string]string `json:"labels"`
	// SavedAt is when the workspace of a sandbox on another machine was last brought to this
	// one; zero if never, or if it is on this one.
	SavedAt time.Time `json:"savedAt,omitzero"`
	// Problem is why a sandbox is dead, and what is lost with it, where that is known.
	Problem string `json:"problem,omitempty"`
}
