package wire

import "time"

// Op names an operation.
type Op string

// The operations, and what each uses of Request.
const (
	OpPing    Op = "ping"   // answers an empty Result
	OpInfo    Op = "info"   // answers Info
	OpExec    Op = "exec"   // Exec: starts a process and streams it, or answers Started if in the background
	OpAttach  Op = "attach" // Attach: streams a process that lost its wire
	OpEnd     Op = "end"    // Target: ends a process and all its descendants, then answers
	OpSignal  Op = "signal" // Target: sends a signal
	OpResize  Op = "resize" // Target: sets the size of a terminal
	OpWrite   Op = "write"  // Target: writes input to a background process, answers Written
	OpList    Op = "list"   // Target: answers Listing, the processes after the given id
	OpStatus  Op = "status" // Target: answers Status, now or when the process has ended
	OpLogs    Op = "logs"   // Attach: output from the given offsets, then Result with Status
	OpFollow  Op = "follow" // Attach: output of a background process from the given offsets until its end, then Exit
	OpForget  Op = "forget" // Target: drops an ended process and its output
	OpAckIDs  Op = "settle" // Target: drops those of IDs that ended; their host has the results
	OpAckLast Op = "taken"  // on a direct connection: the host has the last result; no answer
)

// Request is the first message of every stream.
type Request struct {
	Op     Op      `json:"op"`
	Exec   *Exec   `json:"exec,omitempty"`
	Attach *Attach `json:"attach,omitempty"`
	Target *Target `json:"target,omitempty"`
	File   *File   `json:"file,omitempty"`
	Port   *Port   `json:"port,omitempty"`
	Grant  *Grant  `json:"grant,omitempty"`

	Identity  *Identity  `json:"identity,omitempty"`
	Terminate *Terminate `json:"terminate,omitempty"`
}

// Exec describes a process to start. Exactly one of Argv and Shell is given.
type Exec struct {
	ID    string `json:"id"` // chosen by the host, so that it can find the process again
	Argv  []Text `json:"argv,omitempty"`
	Shell Text   `json:"shell,omitempty"` // run by /bin/sh -lc
	Env   []Text `json:"env"`             // the whole environment; PATH is added if missing
	Dir   Text   `json:"dir,omitempty"`   // "" is the guest's own
	Stdin bool   `json:"stdin,omitempty"` // false: /dev/null
	TTY   *Size  `json:"tty,omitempty"`   // give it a terminal; both outputs become one

	Background bool  `json:"background,omitempty"` // answer at once; it lives until it is forgotten
	TimeoutMs  int64 `json:"timeoutMs,omitempty"`  // 0: none
	GraceMs    int64 `json:"graceMs,omitempty"`    // between TERM and KILL
	// EndTree ends what the process left behind when it exits by itself. A
	// timeout or an end request always does.
	EndTree bool `json:"endTree,omitempty"`
	// Cap cuts long output in the middle. Nil: all of it is sent.
	Cap *Cap `json:"cap,omitempty"`
	// Grant names the open grant that the process is started under. Version 2.
	Grant string `json:"grant,omitempty"`
	// While names a process that must run, or this one is not started. Version 2.
	While string `json:"while,omitempty"`
	// Followed makes a process in the background wait with output that would be lost until
	// it is followed, for FollowWait at most.
	Followed bool `json:"followed,omitempty"`
}

// FollowWait is how long a process waits for its first follower.
const FollowWait = 10 * time.Second

// Size is that of a terminal.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Cap is how much of each output is sent: its beginning and its end.
type Cap struct {
	Head int64 `json:"head"`
	Tail int64 `json:"tail"`
}

// Attach names a process and how much of its output the host already has.
type Attach struct {
	ID     string `json:"id"`
	Stdout int64  `json:"stdout"`
	Stderr int64  `json:"stderr"`
	// For logs: how many bytes of each to send at most, and how long to wait
	// for the first.
	Max    int64 `json:"max,omitempty"`
	WaitMs int64 `json:"waitMs,omitempty"`
}

// Target names a process, and what to do to it.
type Target struct {
	ID      string `json:"id"`
	GraceMs int64  `json:"graceMs,omitempty"` // end
	Forget  bool   `json:"forget,omitempty"`  // end: the host has lost its stream and wants no result
	Signal  string `json:"signal,omitempty"`  // signal: "SIGINT"
	Tree    bool   `json:"tree,omitempty"`    // signal: to all descendants too
	Size    *Size  `json:"size,omitempty"`    // resize
	Data    []byte `json:"data,omitempty"`    // write
	EOF     bool   `json:"eof,omitempty"`     // write: no more will come
	WaitMs  int64  `json:"waitMs,omitempty"`  // status, write: how long to wait

	IDs []string `json:"ids,omitempty"` // settle
}

// Started is the answer to attach, and to exec in the background.
type Started struct {
	PID   int   `json:"pid"`
	Stdin int64 `json:"stdin"` // bytes of stdin that the process was given so far
}

// Written is the answer to write: how much of the input the process has taken.
type Written struct {
	Bytes int `json:"bytes"`
}

// Status describes a process.
type Status struct {
	ID         string `json:"id"`
	PID        int    `json:"pid"`
	Command    Text   `json:"command"` // for people: cut, and not for running again
	Background bool   `json:"background,omitempty"`
	TTY        bool   `json:"tty,omitempty"`
	StartedMs  int64  `json:"startedMs"` // since 1970
	Stdout     int64  `json:"stdout"`    // bytes written so far
	Stderr     int64  `json:"stderr"`
	Exit       *Exit  `json:"exit,omitempty"` // nil: it runs
}

// Listing is one page of processes, by id.
type Listing struct {
	Processes []Status `json:"processes"`
	More      bool     `json:"more,omitempty"`
}

// ListPage is how many processes a Listing holds at most, and MaxCommand how
// many bytes of each command: a page fits a frame.
const (
	ListPage   = 32
	MaxCommand = 160
)

// Gap says that bytes of one output were dropped at this place.
type Gap struct {
	Stream FrameType `json:"stream"` // FrameStdout or FrameStderr
	Bytes  int64     `json:"bytes"`
}

// Exit is how a process ended.
type Exit struct {
	Code          int        `json:"code"`             // 128+n if by signal n
	Signal        string     `json:"signal,omitempty"` // "SIGKILL"
	TimedOut      bool       `json:"timedOut,omitempty"`
	Ended         bool       `json:"ended,omitempty"` // on request
	OOM           bool       `json:"oom,omitempty"`   // killed because memory ran out
	Left          bool       `json:"left,omitempty"`  // descendants live on and hold its output open
	Stuck         bool       `json:"stuck,omitempty"` // some of its tree could not be ended
	QuotaExceeded QuotaLimit `json:"full,omitempty"`  // ended because the workspace outgrew a limit
	// PidsLimitHit says that the limit of processes was reached, and what commands
	// had left running was ended.
	PidsLimitHit bool `json:"crowded,omitempty"`
	Terminated   bool `json:"terminated,omitempty"` // ended because the sandbox is to end

	UserUs     int64 `json:"userUs"`
	SystemUs   int64 `json:"systemUs"`
	MaxRSS     int64 `json:"maxRss"` // bytes; the kernel says no less than the guest's own peak
	DurationUs int64 `json:"durationUs"`
	Stdout     int64 `json:"stdout"` // bytes written in all
	Stderr     int64 `json:"stderr"`
}

// Info describes a guest and its sandbox.
type Info struct {
	PID        int               `json:"pid"`
	UID        int               `json:"uid"`
	GID        int               `json:"gid"`
	Groups     []int             `json:"groups"`
	Kernel     string            `json:"kernel"`
	Arch       string            `json:"arch"`
	Hostname   string            `json:"hostname"`
	Namespaces map[string]string `json:"namespaces"`
	CapEff     string            `json:"capEff"`
	CapBnd     string            `json:"capBnd"`
	NoNewPrivs bool              `json:"noNewPrivs"`
	Seccomp    int               `json:"seccomp"`
	Dumpable   bool              `json:"dumpable"`
	Processes  int               `json:"processes"` // that it keeps track of

	// Of the guest itself:
	RSS         int64 `json:"rss"` // bytes
	Goroutines  int   `json:"goroutines"`
	Descriptors int   `json:"descriptors"`
	Threads     int   `json:"threads"`
}

// QuotaLimit is the limit on disk space because of which processes were ended.
type QuotaLimit string

// The limits of what a sandbox keeps on the host's disk.
const (
	QuotaSize  QuotaLimit = "size"  // of its workspace
	QuotaFiles QuotaLimit = "files" // in its workspace
	QuotaDisk  QuotaLimit = "disk"  // that the workspace is on
)
