package dockercli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// Sandboxes are the sandboxes behind containers, and the images they are made of.
type Sandboxes interface {
	Entry
	Containers
	Images
}

// Entry is the way into containers that run; it is all that the fast path has.
type Entry interface {
	// Dir is where records are kept.
	Dir() string
	// Held reports whether the lock of that name is held.
	Held(name string) bool
	// State returns the state of the sandbox; ErrNoSandbox if there is none.
	State(ctx context.Context, c *Container) (State, error)
	// Enter returns the wire into a sandbox that runs, and what ends its use.
	Enter(ctx context.Context, c *Container) (*machine.Machine, func(), error)
	// AdmitEnv refuses variables that may not enter a sandbox.
	AdmitEnv(env []string) error
}

// Containers makes, starts and removes the sandboxes of containers.
type Containers interface {
	// Lock keeps others from changing a container until the function is called.
	Lock(ctx context.Context, name string) (func(), error)
	// Make makes the sandbox of a container, stopped, and notes in it where.
	Make(ctx context.Context, c *Container) error
	// Start starts the sandbox, and notes in c where its guest listens.
	Start(ctx context.Context, c *Container) error
	// End kills every process of the sandbox and keeps its files.
	End(ctx context.Context, c *Container) error
	Pause(ctx context.Context, c *Container, paused bool) error
	// Publish has the ports of a running container reached on 127.0.0.1 until it ends, and
	// notes in c where. It returns what the main command is started with.
	Publish(ctx context.Context, c *Container) (*Published, error)
	// Remove removes the sandbox, running or not; nil if there is none.
	Remove(ctx context.Context, c *Container) error
	// Copy copies between the host and the files of a container, and says what
	// it left out.
	Copy(ctx context.Context, files *guestfs.Files, c *Copy) (skipped []string, err error)
}

// Images are the images and networks that containers are made with.
type Images interface {
	// Image describes an image that is here; ErrNoImage if it is not.
	Image(ctx context.Context, ref string) (*Image, error)
	Images(ctx context.Context) ([]*Image, error)
	Pull(ctx context.Context, ref string, progress func(string)) error
	Tag(ctx context.Context, ref, name string) error
	// Networks are those that a container may name, beside "none".
	Networks(ctx context.Context) ([]Network, error)
	// Backend says which machinery the next sandbox is made with.
	Backend(ctx context.Context) string
}

// lock takes the lock of a container; ErrElsewhere on the fast path, which changes
// nothing.
func (c *cli) lock(ctx context.Context, name string) (func(), error) {
	if c.containers == nil {
		return nil, ErrElsewhere
	}
	return c.containers.Lock(ctx, name)
}

// The places in a state directory that front ends share.
const (
	RecordsDir = "containers"
	LeasesFile = "leases"
)

// LockName returns the name of the file lock of a container.
func LockName(name string) string { return "container:" + name }

// SplitVariable reads "NAME=value".
func SplitVariable(entry string) (name, value string) {
	name, value, _ = strings.Cut(entry, "=")
	return name, value
}

// The errors that a front end handles.
var (
	ErrNoSandbox = errors.New("no such sandbox")
	ErrNoImage   = errors.New("no such image")
	ErrNameTaken = errors.New("name is taken")
)

// State is where a sandbox is in its life, in the words of package sandbox.
type State string

// The states.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StatePaused  State = "paused"
	StateStopped State = "stopped"
	StateDead    State = "dead"
)

// ErrElsewhere is returned by the fast path for what only the full program can do.
var ErrElsewhere = errors.New("this needs the whole of atoll")

// Image is what containers are made of.
type Image struct {
	ID         string
	Tags       []string
	Digests    []string
	Created    string // RFC 3339
	Size       int64
	Arch       string
	OS         string
	User       string
	Workdir    string
	Env        []string
	Entrypoint []string
	Cmd        []string
	Labels     map[string]string
	StopSignal string
	Layers     []string
}

// Network is one that an engine has.
type Network struct{ Name, ID, Driver string }

// Copy is one copy between the host and a container.
type Copy struct {
	Inside string
	Host   string // or "-": an archive, from In or on To
	Out    bool   // out of the container
	In     io.Reader
	To     io.Writer
}
