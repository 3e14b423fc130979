package run

import (
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Variant is a kind of agent.
type Variant struct {
	ID          string // what a request names
	Name        string
	Description string
	Image       string // "" is the installation's default
	Timeout     time.Duration
	// Margin is how long before Timeout the program's own time limit is, so that it
	// can still answer.
	Margin time.Duration
	Memory int64
	User   string // "uid:gid" that the workspace belongs to; "" is the default
	Mounts []Mount
	// Binds are what a configuration wants to be mounted, "host:inside": policy
	// looks at them.
	Binds []string
	// Volumes are shared storage that the program uses, by name. Those that
	// were filled it gets, with a layer of its own to write to.
	Volumes []string
	// OnDirectory says that it can work on a directory of the host, with its own files
	// in a home beside it.
	OnDirectory bool
	// Argv, Env and Files are made for each run. Files are relative to the home.
	Argv  func(*Job) ([]string, error)
	Env   func(*Job) map[string]string
	Files func(*Job) ([]File, error)
	// Read finds the answer in what the program printed.
	Read func(stdout []byte) (*envelope.Envelope, error)
	// UsesEmbeddings means that the program may ask the model of the request's
	// embeddings too.
	UsesEmbeddings bool
	// Remote carries out runs at a service instead of in a sandbox; Argv, Env, Files
	// and Read are not needed then.
	Remote Executor
	// Event parses a line of standard error as an event; nil if the program prints
	// none.
	Event func(line []byte) (Event, bool)
	// Stream parses a line of standard output as events; Read gets the line too. Nil
	// if the program prints none.
	Stream func(line []byte) []Event
}

// Mount is a file or directory of the host that a variant needs inside,
// read-only: the program itself, for instance.
type Mount struct{ Source, Target string }

// Job is a request and what was decided about it.
type Job struct {
	Request
	Workspace string        // inside
	Home      string        // inside: where the program's own files are, the workspace but for runs on a directory
	Work      string        // inside: where the agent works, its workspace, a directory or its branch there
	Timeout   time.Duration // of the sandbox
	Inner     time.Duration // of the program itself
	// MemoryAsked says that the request names Memory.
	MemoryAsked bool
}

// File is put into a workspace before the program starts.
type File struct {
	Path    string
	Mode    uint32
	Data    []byte
	Default bool // a file of that name that is there already stays
}

// Find returns a variant by its id.
func Find(variants []Variant, id string) (*Variant, error) {
	var known []string
	for i := range variants {
		if variants[i].ID == id {
			return &variants[i], nil
		}
		known = append(known, variants[i].ID)
	}
	return nil, fail("unknown_variant", "no agent is called %q; known: %s", id, strings.Join(known, ", "))
}

// job fills in what a request leaves open. The time that a request asks for is the
// program's own limit; the program is killed a little later.
func (v *Variant) job(r *Request) *Job {
	j := &Job{Request: *r, Workspace: "/workspace", Home: "/workspace", Work: "/workspace", Timeout: v.Timeout}
	switch {
	case r.Branch != "":
		j.Work = branch.Worktree(j.Workspace, branch.Key(r.Branch))
	case r.Directory != "":
		j.Home, j.Work = provide.DirectoryHome, path.Join(j.Workspace, r.Below)
	}
	j.Memory = cmp.Or(j.Memory, v.Memory)
	j.MemoryAsked = r.Memory > 0
	j.Inner = max(j.Timeout-v.Margin, j.Timeout/2)
	if asked := time.Duration(r.TimeoutMs) * time.Millisecond; asked > 0 {
		j.Inner, j.Timeout = asked, asked+min(v.Margin, asked/10+minGrace)
	}
	return j
}

// TooMuchMemory is the failure of a request for more bytes than the configuration
// allows.
func TooMuchMemory(asked, most int64) error {
	return fail("memory_too_large", "the configuration allows at most %d MiB of memory, and %d are asked for", most>>20, asked>>20)
}

// minGrace is the least time between a program's own limit and its kill, in which
// it can still answer.
const minGrace = 2 * time.Second
