package policy

import (
	"path"
	"slices"
	"strings"
)

// blockedPaths are host directories that never enter a sandbox.
var blockedPaths = []string{
	"/etc", "/private/etc", "/proc", "/sys", "/dev", "/root", "/boot",
	"/run", "/var/run", "/private/var/run",
	"/var/run/docker.sock", "/private/var/run/docker.sock", "/run/docker.sock",
}

// homeSecrets are the places in a home directory that hold credentials.
var homeSecrets = []string{".aws", ".cargo", ".config", ".docker", ".gnupg", ".netrc", ".npm", ".ssh"}

// engineSockets are the names of sockets whose owner owns the host.
var engineSockets = []string{"docker.sock", "podman.sock", "containerd.sock", "crio.sock"}

// blocklist decides whether a host path may be mounted.
type blocklist struct {
	paths []string
	disk  Disk

	// What the paths are, whatever else they are called: a directory can be
	// mounted in a second place without any link.
	self  map[identity]string // a blocked path
	above map[identity]string // a directory that contains one
}

type identity struct{ device, inode uint64 }

func newBlocklist(paths []string, disk Disk) *blocklist {
	b := &blocklist{disk: disk, self: map[identity]string{}, above: map[identity]string{}}
	for _, p := range paths {
		b.paths = append(b.paths, NormalizePath(p))
	}
	for _, p := range b.paths {
		b.identify(b.self, p, p)
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			b.identify(b.above, dir, p)
		}
	}
	b.identify(b.above, "/", "/")
	return b
}

func (b *blocklist) identify(into map[identity]string, p, blocked string) {
	device, inode, ok := b.disk.Identity(p)
	if _, known := into[identity{device, inode}]; ok && !known {
		into[identity{device, inode}] = blocked
	}
}

// hit is how a path touches a blocked one.
type hit struct {
	blocked string
	how     string // "targets" or "covers"
}

// find looks at a normalised path as text.
func (b *blocklist) find(p string) (hit, bool) {
	if p == "/" {
		return hit{"/", "covers"}, true
	}
	for _, blocked := range b.paths {
		if within(p, blocked) {
			return hit{blocked, "targets"}, true
		}
	}
	for _, blocked := range b.paths {
		if within(blocked, p) {
			return hit{blocked, "covers"}, true
		}
	}
	return hit{}, false
}

// findSame looks for a blocked path that is the same directory as a canonical
// path or as one above it.
func (b *blocklist) findSame(p string) (hit, bool) {
	device, inode, ok := b.disk.Identity(p)
	if blocked, same := b.above[identity{device, inode}]; ok && same {
		return hit{blocked, "covers"}, true
	}
	for ; p != "/"; p = path.Dir(p) {
		device, inode, ok := b.disk.Identity(p)
		if blocked, same := b.self[identity{device, inode}]; ok && same {
			return hit{blocked, "targets"}, true
		}
	}
	return hit{}, false
}

// credentialPaths are the credential places of several homes.
func credentialPaths(homes []string) []string {
	var paths []string
	for _, home := range homes {
		for _, name := range homeSecrets {
			paths = append(paths, path.Join(home, name))
		}
	}
	return paths
}

// engineSocket tells whether a host path is a socket, or a directory that holds
// the socket of an engine, and which.
func engineSocket(p string, disk Disk) (string, bool) {
	if slices.Contains(engineSockets, strings.ToLower(path.Base(p))) || disk.Socket(p) {
		return p, true
	}
	for _, name := range engineSockets {
		if inside := path.Join(p, name); disk.Socket(inside) {
			return inside, true
		}
	}
	return "", false
}
