package agentcmd

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxServersFile bounds the file that names servers of tools.
const maxServersFile = 16 << 20

// sayMissingServers names the servers of tools that the person has configured and that
// the sandbox does not have, once for each list.
func (s *start) sayMissingServers(ctx context.Context) {
	if s.preset.MCP == nil {
		return
	}
	text, err := readAtMost(filepath.Join(s.app.Paths.Home, s.preset.MCP.File), maxServersFile)
	if err != nil {
		return // there is none
	}
	names := serversOfTOML(string(text))
	if s.preset.MCP.Format == "json" {
		names = serversOfJSON(text, s.dir.Path)
	}
	list := strings.Join(names, ", ")
	if list != "" && s.app.FirstTime(ctx, "mcp:"+s.dir.ID+":"+s.preset.ID+":"+list) {
		s.Notice("your MCP servers are missing in the sandbox, which has no network and none of your programs: " + list)
	}
}

// serversOfJSON returns the names in mcpServers, of all projects and of this one.
func serversOfJSON(text []byte, project string) []string {
	type servers struct {
		MCP map[string]jsontext.Value `json:"mcpServers"`
	}
	var file struct {
		servers  `json:",inline"`
		Projects map[string]servers `json:"projects"`
	}
	if json.Unmarshal(text, &file) != nil {
		return nil
	}
	names := map[string]bool{}
	for name := range file.MCP {
		names[name] = true
	}
	for name := range file.Projects[project].MCP {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// serversOfTOML returns the names of the tables mcp_servers.NAME.
func serversOfTOML(text string) []string {
	names := map[string]bool{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "[mcp_servers.")
		name, _, closed := strings.Cut(rest, "]")
		name, _, _ = strings.Cut(name, ".")
		if name = strings.Trim(name, `"'`); ok && closed && name != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
