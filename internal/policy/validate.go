package policy

import (
	"cmp"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
)

// Disk answers what only the disk can tell; hostpath.Disk does so.
type Disk interface {
	// Canonical returns a path without its links, resolved through its deepest
	// existing ancestor.
	Canonical(path string) (string, error)
	// Socket tells whether a path leads to a socket.
	Socket(path string) bool
	// SocketsBelow returns sockets below a directory on which a program of the
	// host waits for connections. It is bounded; complete is false if it did not
	// see everything.
	SocketsBelow(dir string) (found []string, complete bool)
	// NamedSocketsBelow returns those that are known by the path they were made
	// with.
	NamedSocketsBelow(dir string) []string
	// Identity tells which file a path leads to, if it exists.
	Identity(path string) (device, inode uint64, exists bool)
}

// Host is what validation must know of the host.
type Host struct {
	Disk    Disk     // nil: judge paths as text only
	Homes   []string // home directories, also in canonical form
	Private []string // paths of Atoll itself that no sandbox may see
	Roots   []string // where bind sources may lie; empty: anywhere that is not blocked
}

// Validate checks everything in docker.* that could open the sandbox or that
// no engine could carry out. It reports all it finds.
func Validate(docker config.Docker, host Host) []Finding {
	if host.Disk == nil {
		host.Disk = textOnly{}
	}
	var found []Finding
	for _, check := range []func(config.Docker, Host) findings{
		checkPrefix,
		checkWorkdir,
		checkBinds,
		checkTmpfs,
		checkNetwork,
		checkProfiles,
		checkUser,
		checkDNS,
		checkExtraHosts,
		checkCapDrop,
		checkUlimits,
	} {
		found = append(found, check(docker, host)...)
	}
	return found
}

// ValidateWorkspace checks a directory that is about to become a workspace:
// unlike a bind it may lie in root's home, but it may hold no credentials.
func ValidateWorkspace(dir string, host Host) []Finding {
	if host.Disk == nil {
		host.Disk = textOnly{}
	}
	paths := slices.DeleteFunc(slices.Clone(blockedPaths), func(p string) bool { return p == "/root" })
	paths = append(append(paths, credentialPaths(host.Homes)...), host.Private...)
	check := sourceCheck{blocked: newBlocklist(paths, host.Disk), disk: host.Disk, sockets: host.Disk.NamedSocketsBelow}
	var found []Finding
	for _, problem := range check.judge(dir) {
		found = append(found, Finding{
			Field:   "workspace",
			Message: "Sandbox security: workspace " + problem.text,
			Hint:    cmp.Or(problem.workspaceHint, "Choose a directory of its own for the agent."),
		})
	}
	return found
}

// textOnly is a disk of which nothing is known.
type textOnly struct{}

func (textOnly) Canonical(path string) (string, error)               { return NormalizePath(path), nil }
func (textOnly) Socket(string) bool                                  { return false }
func (textOnly) SocketsBelow(string) (found []string, complete bool) { return nil, true }
func (textOnly) NamedSocketsBelow(string) []string                   { return nil }
func (textOnly) Identity(string) (device, inode uint64, exists bool) { return 0, 0, false }
