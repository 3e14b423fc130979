package rootfs

import "strings"

// HostName is the name of the host's own root. It stands for no image: an
// image of that name is called docker.io/library/host.
const HostName = "host"

// Root is what a sandbox's / is made of. To mount it: lay Layers over each
// other, then mount Binds in their order, then cover Masks.
type Root struct {
	// ID changes whenever what the sandbox would see changes: an image's digest,
	// or the fingerprint of the host. It is part of a sandbox's config hash.
	ID   string `json:"id"`
	Name string `json:"name"` // the reference as it was asked for, or HostName
	// Layers are host directories, the topmost first, to be the lower layers of
	// an overlay. The first is generated (user database, hosts, …). They hold
	// whiteouts and opaque marks in a form that mounts with and without
	// userxattr understand. Their paths together may be longer than a page:
	// mount(2) takes /proc/self/fd/N in their place.
	Layers []string `json:"layers"`
	// Binds are host paths shown read-only, with everything mounted below them.
	// Their targets exist in Layers.
	Binds []Bind `json:"binds,omitempty"`
	// Masks are directories, within Binds, to cover with something empty.
	Masks  []string `json:"masks,omitempty"`
	Config Config   `json:"config"`
}

// Bind is a host path and where it is seen. A source never is a symbolic link.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Config is what an image says about the programs that run in it. All of it is
// the image author's word: a hint, never a permission.
type Config struct {
	Env        []string `json:"env,omitempty"`
	User       string   `json:"user,omitempty"`
	Workdir    string   `json:"workdir,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	StopSignal string   `json:"stopSignal,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// SearchPath is the PATH of the image, "" if it has none.
func (c *Config) SearchPath() string {
	for _, variable := range c.Env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			return path
		}
	}
	return ""
}

// variableName is the name in "NAME=value".
func variableName(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// Identity is what the generated files of a root say about its sandbox. Roots
// of equal identities share their generated layer.
type Identity struct {
	UID, GID int      // as seen inside
	Home     string   // "" is /
	Hostname string   // "" is "sandbox"
	Hosts    []string // further entries of /etc/hosts, "name:address"
	DNS      []string // addresses of name servers

	// Dirs and Files are mount points that have to be there, as full paths. They
	// are real directories and files of the generated layer, so that no link of
	// an image can send a mount elsewhere.
	Dirs, Files []string
}

// IsHost reports whether an image setting means the host's own root.
func IsHost(ref string) bool { return ref == "" || strings.EqualFold(ref, HostName) }
