package mcpcmd

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/cli/mcpcmd/clientfile"
	"github.com/atoll-run/atoll/internal/errhint"
)

// client is a program whose configuration names MCP servers.
type client struct {
	project string // file in a project
	user    string // file in the home directory, for all projects
	// homeVariable names the directory of the user's file, if it is set.
	homeVariable string
	edit         clientfile.Editor
}

func clients() map[string]client {
	return map[string]client{
		"claude": {project: ".mcp.json", user: ".claude.json", edit: clientfile.JSON("mcpServers", true)},
		"codex":  {project: ".codex/config.toml", user: ".codex/config.toml", homeVariable: "CODEX_HOME", edit: clientfile.TOML},
		"cursor": {project: ".cursor/mcp.json", user: ".cursor/mcp.json", edit: clientfile.JSON("mcpServers", false)},
		"vscode": {project: ".vscode/mcp.json", user: ".config/Code/User/mcp.json", edit: clientfile.JSON("servers", true)},
	}
}

// clientNames are the known clients, sorted.
func clientNames() []string { return slices.Sorted(maps.Keys(clients())) }

// file returns the file of a client: in the directory, or of the user. A link is followed,
// so that it stays one.
func (c *client) file(dir, home string, ofUser bool, getenv func(string) string) string {
	path := filepath.Join(dir, c.project)
	if ofUser {
		path = filepath.Join(home, c.user)
		if set := getenv(c.homeVariable); c.homeVariable != "" && set != "" {
			path = filepath.Join(set, filepath.Base(c.user))
		}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// newEntry is the server for clients: by the name of this program, where that finds it.
func newEntry() (*clientfile.Entry, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, errhint.With(err, "write the path of atoll into the client's configuration yourself")
	}
	command := self
	if found, err := exec.LookPath(clientfile.ServerName); err == nil && isSame(found, self) {
		command = clientfile.ServerName
	}
	return &clientfile.Entry{Command: command, Args: []string{"mcp"}}, nil
}

func isSame(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(first, second)
}
