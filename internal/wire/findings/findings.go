// Package findings is what a probe inside a sandbox reports to the host: facts
// as the kernel gave them, and no judgement. The guest's program collects them,
// package verify compares them with what was promised.
//
// They come from inside and are hostile: a reader bounds them first.
package findings

// Report is everything that one probe found. What could not be read is zero.
type Report struct {
	Self       Process           `json:"self"`
	Calls      []Attempt         `json:"calls"`      // system calls, tried
	Modes      []Attempt         `json:"modes"`      // calls that set set-user-ID or set-group-ID
	Namespaces map[string]string `json:"namespaces"` // by kind: "pid:[4026531836]"
	Mounts     []Mount           `json:"mounts"`
	Paths      []Attempt         `json:"paths"`    // files that belong to the machine, opened
	Writable   []string          `json:"writable"` // directories that can be written to
	Network    Network           `json:"network"`
	Processes  []Seen            `json:"processes"`
	Hidden     int               `json:"hidden"` // processes beyond those listed
	Limits     Limits            `json:"limits"`
	Devices    []Device          `json:"devices"`
	Sockets    []string          `json:"sockets"` // of container engines
	Guest      []Attempt         `json:"guest"`   // what was tried on process 1
	Renderers  []Renderer        `json:"renderers,omitzero"`
}

// Renderer is a process of a browser that shows pages.
type Renderer struct {
	PID        int               `json:"pid"`
	Namespaces map[string]string `json:"namespaces"` // user, pid and net, as Report.Namespaces
	Filters    int               `json:"filters"`    // of system calls
}

// Process describes the probe's own process.
type Process struct {
	PID          int               `json:"pid"`
	InProc       int               `json:"inProc"` // its number in /proc: another, if that is not of its namespace
	UID          int               `json:"uid"`
	GID          int               `json:"gid"`
	Capabilities map[string]string `json:"capabilities"` // CapEff and the others, in hexadecimal
	NoNewPrivs   bool              `json:"noNewPrivs"`
	Seccomp      int               `json:"seccomp"`  // mode
	Filters      int               `json:"filters"`  // of system calls
	Dumpable     bool              `json:"dumpable"` // others may trace it and open its memory
	Descriptors  []string          `json:"descriptors"`
}

// Attempt is something that was tried, and the kernel's answer: "" if it
// worked, otherwise the error's name.
type Attempt struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// Mount is one line of the mount table.
type Mount struct {
	Target   string `json:"target"`
	Type     string `json:"type"`
	ReadOnly bool   `json:"readOnly"`
	Options  string `json:"options"` // of the mount and of its file system
}

// Network is what the probe can reach without sending anything beyond its loopback interface.
type Network struct {
	Interfaces []string  `json:"interfaces"`
	Routes     []string  `json:"routes"` // interfaces of routes other than loopback's
	Servers    []string  `json:"servers"`
	Reach      []Attempt `json:"reach"`  // of addresses, by asking for a route
	Egress     []Attempt `json:"egress"` // of PublicName, through each way that a host may serve
}

// PublicName is a name that every resolver on the internet has an address for.
const PublicName = "example.com"

// Seen is a process that the probe can see.
type Seen struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Name   string `json:"name"`
}

// Limits are those that the probe reads from the kernel; -1 is none, 0 not visible.
type Limits struct {
	Pids     int64             `json:"pids"`
	Memory   int64             `json:"memory"`
	Swap     int64             `json:"swap"` // memory and swap together
	CPUs     float64           `json:"cpus"`
	Sockets  int64             `json:"sockets"` // buffers of sockets
	Disks    Disks             `json:"disks"`
	Resource map[string]Ulimit `json:"resource"`
}

// Disks are the lowest rates a second that hold for any disk, and what the file
// system of the root holds; 0 is none that can be seen.
type Disks struct {
	ReadBps   int64 `json:"readBps"`
	WriteBps  int64 `json:"writeBps"`
	ReadIOps  int64 `json:"readIOps"`
	WriteIOps int64 `json:"writeIOps"`
	Root      int64 `json:"root"`
	Inodes    int64 `json:"inodes"`
}

// Ulimit is one resource limit; -1 is none.
type Ulimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// Device is a device node below /dev.
type Device struct {
	Path  string `json:"path"`
	Block bool   `json:"block"`
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// Metadata are the addresses of clouds' metadata services.
func Metadata() []string {
	return []string{"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254"}
}

// Internet are documentation addresses that stand for all others.
func Internet() []string { return []string{"192.0.2.1", "198.51.100.1", "2001:db8::1"} }

// The bounds of a report. A probe keeps them; a reader enforces them.
const (
	MaxBytes   = 1 << 20
	MaxEntries = 512
)
