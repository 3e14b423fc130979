package dockercli

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Container is what was asked for with `create`, joined with what its image
// says, and how its main command fares. It is kept as a file.
type Container struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // of the sandbox too
	Created time.Time `json:"created"`

	Image   string `json:"image"`
	ImageID string `json:"imageId"`
	Backend string `json:"backend"` // where the sandbox was made

	Entrypoint []string          `json:"entrypoint"`
	Cmd        []string          `json:"cmd"`
	Hostname   string            `json:"hostname"`
	Env        []string          `json:"env"` // the image's and create's
	Labels     map[string]string `json:"labels"`
	Workdir    string            `json:"workdir"`
	User       string            `json:"user"`
	Home       string            `json:"home"` // of the user, known when it was started
	TTY        bool              `json:"tty"`
	OpenStdin  bool              `json:"openStdin"`
	Attach     []string          `json:"attach"`   // the streams that a `run` shows; none named: all
	Detached   bool              `json:"detached"` // made by a `run` that did not stay
	StopSignal string            `json:"stopSignal"`
	StopAfter  int64             `json:"stopAfter"` // seconds, 0: the default

	ReadOnly    bool              `json:"readOnly"`
	Init        *bool             `json:"init"`
	AutoRemove  bool              `json:"autoRemove"`
	Binds       []string          `json:"binds"`  // src:dst[:options], as written
	Mounts      []Mount           `json:"mounts"` // the same, read
	Tmpfs       map[string]string `json:"tmpfs"`
	Network     string            `json:"network"`
	DNS         []string          `json:"dns"`
	ExtraHosts  []string          `json:"extraHosts"`
	CapDrop     []string          `json:"capDrop"`
	SecurityOpt []string          `json:"securityOpt"`
	Seccomp     string            `json:"seccomp"`
	AppArmor    string            `json:"appArmor"`
	GPUs        string            `json:"gpus"`
	Limits      Limits            `json:"limits"`
	Ports       []Port            `json:"ports,omitempty"`

	Main  MainCommand `json:"main"`
	Guest *Guest      `json:"guest"` // of its present life
}

// Guest is the socket of a running sandbox's guest and the process that listens
// there; Dial checks that it is that process. It lets the fast path enter a sandbox
// without opening the installation.
type Guest struct {
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
	Start  string `json:"birth"`  // boot id and start time of the process
	Lease  string `json:"lease"`  // the file lock to share while the sandbox is used
	Paused bool   `json:"paused"` // it would not answer
}

// Limits are the resources a container may use. Zero means no limit.
type Limits struct {
	Pids       int64    `json:"pids"`
	Memory     int64    `json:"memory"`
	MemorySwap int64    `json:"memorySwap"` // -1 is unlimited
	CPUs       float64  `json:"cpus"`
	Ulimits    []Ulimit `json:"ulimits"`
}

// Ulimit is one resource limit of every process inside.
type Ulimit struct {
	Name string `json:"name"`
	Soft int64  `json:"soft"`
	Hard int64  `json:"hard"`
}

// Mount is a host directory inside a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	Mode     string `json:"mode"`
	ReadOnly bool   `json:"readOnly"`
}

// MainCommand is the state of a container's own command.
type MainCommand struct {
	Process  string    `json:"process"`  // the guest's id of it; "" if there is none
	Attached bool      `json:"attached"` // it belongs to a `run` that waits for it
	Attended string    `json:"attended"` // the guest's name for one that does: it can be told, not read
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	ExitCode int       `json:"exitCode"`
	OOM      bool      `json:"oom"`
	Error    string    `json:"error"`
}

// signalTarget returns the guest's id of the command that signals are sent to.
func (l *MainCommand) signalTarget() string { return cmp.Or(l.Process, l.Attended) }

// argv is the container's own command.
func (c *Container) argv() []string {
	return append(append([]string(nil), c.Entrypoint...), c.Cmd...)
}

// shows reports whether the client of a `run` shows a stream of the command.
func (c *Container) shows(stream string) bool {
	return !c.Detached && (len(c.Attach) == 0 || slices.Contains(c.Attach, stream))
}

// stdinOnce reports whether the end of the first client's input closes the command's
// input. A detached command has no first client.
func (c *Container) stdinOnce() bool { return c.OpenStdin && !c.Detached }

// shortID returns the first 12 characters of the id.
func (c *Container) shortID() string { return c.ID[:min(12, len(c.ID))] }

// environment is that of a command in the container, in an engine's order: the
// container's own, what the call adds, and HOME unless one of them has it.
func (c *Container) environment(more []string, tty bool) []string {
	env := []string{defaultPath, "HOSTNAME=" + c.Hostname}
	if tty {
		env = append(env, "TERM=xterm")
	}
	env = mergeEnv(mergeEnv(env, c.Env), more)
	hasHome := slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "HOME=") })
	if c.Home != "" && !hasHome {
		env = append(env, "HOME="+c.Home)
	}
	return env
}

// mergeEnv lets the variables of over replace those of under, in place.
func mergeEnv(under, over []string) []string {
	merged := append([]string(nil), under...)
	at := map[string]int{}
	for i, entry := range merged {
		name, _, _ := strings.Cut(entry, "=")
		at[name] = i
	}
	for _, entry := range over {
		name, _, _ := strings.Cut(entry, "=")
		if i, ok := at[name]; ok {
			merged[i] = entry
			continue
		}
		at[name] = len(merged)
		merged = append(merged, entry)
	}
	return merged
}
