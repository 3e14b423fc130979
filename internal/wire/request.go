package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Op names an operation.
type Op string

// The operations. Each uses the part of Request that its comment names.
const (
	OpPing   Op = "ping"   // answers an empty Result
	OpInfo   Op = "info"   // answers Info
	OpExec   Op = "exec"   // Exec: starts a process and streams it
	OpAttach Op = "attach" // Attach: streams a process that is already there
	OpEnd    Op = "end"    // End: ends a process and all its descendants
)

// Request is the first message of every stream.
type Request struct {
	Op     Op      `json:"op"`
	Exec   *Exec   `json:"exec,omitempty"`
	Attach *Attach `json:"attach,omitempty"`
	End    *End    `json:"end,omitempty"`
}

// Exec describes a process to start. Exactly one of Argv and Shell is given.
type Exec struct {
	ID    string `json:"id"` // chosen by the host, so that it can find the process again
	Argv  []Text `json:"argv,omitempty"`
	Shell Text   `json:"shell,omitempty"` // run by /bin/sh -lc
	Env   []Text `json:"env"`             // the whole environment; PATH is added if missing
	Dir   Text   `json:"dir,omitempty"`   // "" is the guest's own
	Stdin bool   `json:"stdin,omitempty"` // false: /dev/null

	TimeoutMs int64 `json:"timeoutMs,omitempty"` // 0: none
	GraceMs   int64 `json:"graceMs,omitempty"`   // between TERM and KILL
	// EndTree ends what the process left behind when it exits by itself. A
	// timeout or an end request always does.
	EndTree bool `json:"endTree,omitempty"`
}

// Attach names a process and how much of its output the host already has.
type Attach struct {
	ID     string `json:"id"`
	Stdout int64  `json:"stdout"`
	Stderr int64  `json:"stderr"`
}

// End names a process whose whole tree is to go.
type End struct {
	ID      string `json:"id"`
	GraceMs int64  `json:"graceMs,omitempty"`
}

// Started answers exec and attach.
type Started struct {
	PID   int   `json:"pid"`
	Stdin int64 `json:"stdin"` // bytes of stdin that the process was given so far
}

// Gap says that bytes of one output were dropped at this place.
type Gap struct {
	Stream FrameType `json:"stream"` // FrameStdout or FrameStderr
	Bytes  int64     `json:"bytes"`
}

// Exit is how a process ended.
type Exit struct {
	Code     int    `json:"code"`             // 128+n if by signal n
	Signal   string `json:"signal,omitempty"` // "SIGKILL"
	TimedOut bool   `json:"timedOut,omitempty"`
	Ended    bool   `json:"ended,omitempty"` // by an end request
	OOM      bool   `json:"oom,omitempty"`
	Left     bool   `json:"left,omitempty"` // descendants live on and hold its output open
	Stuck    bool   `json:"stuck,omitempty"`

	UserUs     int64 `json:"userUs"`
	SystemUs   int64 `json:"systemUs"`
	MaxRSS     int64 `json:"maxRss"` // bytes
	DurationUs int64 `json:"durationUs"`
	Stdout     int64 `json:"stdout"` // bytes written in all
	Stderr     int64 `json:"stderr"`
}

// Info is what a guest says of itself and its sandbox.
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
	Processes  int               `json:"processes"`
	RSS        int64             `json:"rss"` // bytes, of the guest itself
}

// Request reads the first message of a stream.
func (r *Reader) Request() (*Request, error) {
	var req Request
	if err := readMessage(r.buffered, &req, MaxRequest); err != nil {
		return nil, err
	}
	return &req, nil
}

// readMessage reads a length and a JSON object. It reads nothing beyond it.
func readMessage(r io.Reader, v any, limit uint32) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return noEOF(err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > limit {
		return fmt.Errorf("%w: message of %d bytes is over the limit of %d", ErrProtocol, n, limit)
	}
	payload, err := readSized(r, nil, int(n))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// WriteRequest writes the first message of a stream.
func WriteRequest(w io.Writer, req *Request) error { return writeMessage(w, req, MaxRequest) }

func writeMessage(w io.Writer, v any, limit int) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(payload) > limit {
		return Fail(CodeInvalid, fmt.Sprintf("request of %d bytes is over the limit of %d", len(payload), limit))
	}
	buf := make([]byte, 4, 4+len(payload))
	binary.BigEndian.PutUint32(buf, uint32(len(payload)))
	_, err = w.Write(append(buf, payload...))
	return err
}
