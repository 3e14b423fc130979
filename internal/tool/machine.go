package tool

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// Location is where tools work: one sandbox, or the host itself.
type Location struct {
	Name    string // of the sandbox
	Image   string // that it is made of
	Machine Machine
	Files   Files
	Host    bool   // not a sandbox: the user asked for it
	Network bool   // it has one, or egress
	Egress  Egress // of its commands; nil if they have none
	// Background gives egress to commands that live on after their call; nil if they
	// have none.
	Background Background
	Guest      string // path of the guest's program inside, which uses the network for the host
}

// Egress is what commands reach by names, where there is no network. A *service.Egress of
// package egress/service is one.
type Egress interface {
	// GrantID is the grant that commands are started under to have it.
	GrantID() string
	// Environment returns variables that programs need for it.
	Environment() map[string]string
	// Transport sends requests from the host by the same rules; nil if there are none.
	Transport() http.RoundTripper
	// Denials returns what was refused to a command, a line each, and forgets it.
	Denials(exec string) []string
}

// Background is the egress of commands that live on after their call.
type Background interface {
	// Open returns the egress to start a command with; nil is none.
	Open(ctx context.Context) (Egress, error)
	// Started has the egress stay open until the command has ended.
	Started(id string)
	// Denials returns what was refused to a command, a line each, and forgets it.
	Denials(id string) []string
}

// Machine runs commands. A *machine.Machine is one.
type Machine interface {
	Exec(ctx context.Context, command *machine.Command) (*machine.Result, error)
	Start(ctx context.Context, command *machine.Command) (id string, err error)
	Processes
}

// Processes looks after commands in the background.
type Processes interface {
	Processes(ctx context.Context) ([]machine.Process, error)
	Process(ctx context.Context, id string) (*machine.Process, error)
	Logs(ctx context.Context, id string, from machine.LogRequest) (*machine.Logs, error)
	Wait(ctx context.Context, id string) (*machine.Result, error)
	Write(ctx context.Context, id string, input []byte, end bool) error
	Signal(ctx context.Context, id, signal string, tree bool) error
	End(ctx context.Context, id string, grace time.Duration) error
	Forget(ctx context.Context, id string) error
}

// Files reaches the files of a machine, by absolute paths inside. A
// *guestfs.Files is one.
type Files interface {
	Stat(ctx context.Context, path string) (*guestfs.FileInfo, error)
	Read(ctx context.Context, path string, options *guestfs.ReadOptions) (*guestfs.Content, error)
	Open(ctx context.Context, path string, options *guestfs.ReadOptions) (*guestfs.FileReader, error)
	List(ctx context.Context, path string, options *guestfs.ListOptions) (*guestfs.Listing, error)
	Search(ctx context.Context, path string, options *guestfs.SearchOptions) (*guestfs.SearchResult, error)
	Changes
}

// Changes changes files.
type Changes interface {
	Write(ctx context.Context, path string, content []byte, options *guestfs.WriteOptions) (*guestfs.WriteResult, error)
	Rename(ctx context.Context, from, to string, options *guestfs.RenameOptions) error
	Remove(ctx context.Context, path string, options *guestfs.RemoveOptions) (guestfs.Totals, error)
}
