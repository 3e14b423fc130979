// Package client reads which servers the package managers of this host use,
// from their own configuration. Nothing that lies in a project is read or run:
// programs are started in the root directory, with a small environment, and
// only from directories of PATH that are outside of every project.
package client

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// The limits of what a client may take and say.
const (
	runTimeout   = 10 * time.Second
	maxOutput    = 256 << 10
	maxFile      = 1 << 20
	maxFiles     = 64
	maxEndpoints = 32
)

// reader reads the configuration of clients on one host.
type reader struct {
	getenv   func(string) string
	home     string
	etc      string   // /etc
	projects []string // directories whose files count for nothing
}

// clients has how the configuration of each client is read.
var clients = map[string]func(*reader, context.Context) preset.Found{
	"npm":   (*reader).npm,
	"pip":   (*reader).pip,
	"go":    (*reader).golang,
	"cargo": (*reader).cargo,
	"apt":   (*reader).apt,
}

// cache has what was found by this process.
var cache struct {
	sync.Mutex
	found preset.Hosts
}

// Find returns the servers that the presets of these names need. What a client
// says is read once in a process, unless it could not be read. Files in the
// projects, and in the working directory, do not count.
func Find(ctx context.Context, presets []string, projects ...string) preset.Hosts {
	names := preset.Clients(presets)
	if len(names) == 0 {
		return nil
	}
	home, _ := os.UserHomeDir()
	if dir, err := os.Getwd(); err == nil {
		projects = append(projects, dir)
	}
	r := &reader{getenv: os.Getenv, home: home, etc: "/etc", projects: projects}
	cache.Lock()
	defer cache.Unlock()
	hosts := preset.Hosts{}
	for _, name := range names {
		hosts[name] = r.cached(ctx, name)
	}
	return hosts
}

// cached is read, once if it succeeds. The lock of the cache is held.
func (r *reader) cached(ctx context.Context, name string) preset.Found {
	if found, ok := cache.found[name]; ok {
		return found
	}
	found := r.read(ctx, name)
	if found.Err == nil {
		if cache.found == nil {
			cache.found = preset.Hosts{}
		}
		cache.found[name] = found
	}
	return found
}

func (r *reader) read(ctx context.Context, name string) preset.Found {
	read, ok := clients[name]
	if !ok {
		return preset.Found{Err: fmt.Errorf("no client is called %q", name)}
	}
	return read(r, ctx)
}
