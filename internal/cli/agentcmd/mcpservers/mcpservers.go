// Package mcpservers reads the MCP servers of a person's configuration of an agent, and
// writes the configuration of those that can work in a sandbox.
package mcpservers

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
)

// Server is one server: a program that is started, or an address.
type Server struct {
	Name    string
	Command string
	Args    []string
	URL     string
	// Confidential means that it is given variables or headers, which never enter.
	Confidential bool
}

// Max bounds how many servers are read of a file.
const Max = 200

// entry is a server as JSON and TOML have it.
type entry struct {
	Command     string            `json:"command" toml:"command"`
	Args        []string          `json:"args" toml:"args"`
	Env         map[string]string `json:"env" toml:"env"`
	EnvVars     []any             `json:"-" toml:"env_vars"`
	URL         string            `json:"url" toml:"url"`
	HTTPURL     string            `json:"httpUrl" toml:"-"` // as Gemini CLI writes it
	Headers     map[string]string `json:"headers" toml:"http_headers"`
	EnvHeaders  map[string]string `json:"-" toml:"env_http_headers"`
	BearerToken string            `json:"-" toml:"bearer_token_env_var"`
	Enabled     *bool             `json:"-" toml:"enabled"`
}

// ReadJSON returns the servers in mcpServers, of all projects and of this one. What
// cannot be read has none.
func ReadJSON(text []byte, project string) []Server {
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
	all := map[string]entry{}
	for _, part := range []map[string]jsontext.Value{file.MCP, file.Projects[project].MCP} {
		for name, value := range part {
			var e entry
			_ = json.Unmarshal(value, &e) // what has neither program nor address is named as such
			all[name] = e
		}
	}
	return list(all)
}

// ReadTOML returns the servers in mcp_servers. What cannot be read has none.
func ReadTOML(text []byte) []Server {
	var file struct {
		Servers map[string]entry `toml:"mcp_servers"`
	}
	if toml.Unmarshal(text, &file) != nil {
		return nil
	}
	return list(file.Servers)
}

// list returns the servers sorted by name, without those that are switched off.
func list(all map[string]entry) (servers []Server) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		if e.Enabled != nil && !*e.Enabled || len(servers) == Max {
			continue
		}
		servers = append(servers, Server{
			Name: name, Command: e.Command, Args: e.Args, URL: cmp.Or(e.URL, e.HTTPURL),
			Confidential: len(e.Env)+len(e.EnvVars)+len(e.Headers)+len(e.EnvHeaders) > 0 || e.BearerToken != "",
		})
	}
	return servers
}

// JSON returns the servers as a file with mcpServers.
func JSON(servers []Server) ([]byte, error) {
	type written struct {
		Type    string   `json:"type"`
		Command string   `json:"command,omitempty"`
		Args    []string `json:"args,omitempty"`
		URL     string   `json:"url,omitempty"`
	}
	all := map[string]written{}
	for _, s := range servers {
		kind := "stdio"
		if s.URL != "" {
			kind = "http"
		}
		all[s.Name] = written{kind, s.Command, s.Args, s.URL}
	}
	return json.Marshal(map[string]any{"mcpServers": all}, json.Deterministic(true))
}

// TOML returns the servers as tables of mcp_servers.
func TOML(servers []Server) ([]byte, error) {
	type written struct {
		Command string   `toml:"command,omitempty"`
		Args    []string `toml:"args,omitempty"`
		URL     string   `toml:"url,omitempty"`
	}
	all := map[string]written{}
	for _, s := range servers {
		all[s.Name] = written{s.Command, s.Args, s.URL}
	}
	return toml.Marshal(map[string]any{"mcp_servers": all})
}
