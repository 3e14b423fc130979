// Package blueprint describes what stands between a sandbox of the Linux runtime
// and the host: its file tree, its user, its limits and its filter. The runtime
// writes the description; the guest, not yet inside, builds it around itself and
// then becomes process 1 of the sandbox (package guest/setup).
//
// It is data only. Every decision was taken before; what cannot be built as
// described ends the process.
package blueprint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The descriptors that the guest begins with.
const (
	// Control is where it receives its blueprint and says what became of it.
	Control = 3
	// Program is the guest itself; when it has been executed anew, the socket on
	// which hosts knock has that number.
	Program  = 4
	Listener = Program
)

// maxMessage bounds what either side takes from the other.
const maxMessage = 16 << 20

// Blueprint is everything about one life of a sandbox.
type Blueprint struct {
	Hostname string
	UID, GID int  // as seen inside
	Become   bool // the process is not that user yet, and may drop its groups
	// Root makes the root; it has Target "/". Then come the others, in order.
	Root   Mount
	Mounts []Mount
	// ReadOnly seals the root when everything is in place.
	ReadOnly bool
	Limits   []Limit
	Filter   []byte   // a seccomp program, as seccomp.Program.Bytes writes it
	Writable []string // below these, files may be changed; the second fence
	Workdir  string
	Socket   string   // where Listener listens, as a path inside; "" is nowhere
	Argv     []string // what the process becomes, as a path inside
	Env      []string
	// Files is how many descriptors follow the blueprint: the mounts that its
	// sources name.
	Files int
	// ProbeOnly builds everything, says so and ends.
	ProbeOnly bool
}

// Kind is what a Mount puts at its target.
type Kind string

// The kinds.
const (
	Bind     Kind = "bind"     // a file or directory of the host
	Overlay  Kind = "overlay"  // lower directories under an upper one
	Tmpfs    Kind = "tmpfs"    // Options as for mount(8)
	Proc     Kind = "proc"     // of the sandbox's pid namespace
	Sysfs    Kind = "sysfs"    // of its network namespace
	Devpts   Kind = "devpts"   // an instance of its own
	Mqueue   Kind = "mqueue"   // of its ipc namespace
	Dir      Kind = "dir"      // a directory, with Mode
	File     Kind = "file"     // a file with Text, and Mode
	Link     Kind = "link"     // a symbolic link to Text
	Mask     Kind = "mask"     // hides what is there; nothing to do if nothing is
	Seal     Kind = "seal"     // what is there becomes read-only; same
	SealTree Kind = "sealtree" // the file system mounted there becomes read-only
)

// Mount is one step in making the file tree.
type Mount struct {
	Kind     Kind
	Target   string   // absolute, inside
	Source   *Source  `json:",omitempty"` // of Bind; of Overlay the directory that holds upper and work
	Lowers   []Source `json:",omitempty"` // of Overlay, the uppermost first
	ReadOnly bool     `json:",omitempty"`
	NoExec   bool     `json:",omitempty"`
	Options  string   `json:",omitempty"` // of a Tmpfs and the like as for mount(8); of an Overlay besides its directories
	Text     string   `json:",omitempty"`
	Mode     uint32   `json:",omitempty"`
}

// Source is a file or directory of the host: a detached mount that the runtime
// has made, or, where it may not make one, a path without links and the
// identity of what must be there.
type Source struct {
	File          int    `json:",omitempty"` // which of the files that follow the blueprint, from 1 on; 0 is none
	Path          string `json:",omitempty"`
	Device, Inode uint64 `json:",omitempty"`
}

// Limit is a resource limit of every process.
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Report is what the guest says before it becomes process 1, or ends.
type Report struct {
	OK    bool
	Step  string `json:",omitempty"` // what it was doing
	Error string `json:",omitempty"`
	Errno int    `json:",omitempty"`
}

// Send writes one message.
func Send(w io.Writer, message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	_, err = w.Write(append(frame, text...))
	return err
}

// ErrTooLong is a message beyond every use.
var ErrTooLong = errors.New("message is too long")

// Receive reads one message.
func Receive(r io.Reader, message any) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > maxMessage {
		return fmt.Errorf("%d bytes: %w", length, ErrTooLong)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
