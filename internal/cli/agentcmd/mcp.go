package agentcmd

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/agentcmd/mcpservers"
	"github.com/atoll-run/atoll/internal/cli/agentcmd/ownfiles"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// maxServersFile bounds the file that names MCP servers.
const maxServersFile = 16 << 20

// chooseServers finds the MCP servers of the person's configuration that can work inside,
// and names the others, once for each list.
func (s *start) chooseServers(ctx context.Context) error {
	if s.preset.MCP == nil {
		return nil
	}
	text, err := ownfiles.ReadAtMost(filepath.Join(s.app.Paths.Home, s.preset.MCP.File), maxServersFile)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	all := mcpservers.ReadTOML(text)
	if s.preset.MCP.Format == "json" {
		all = mcpservers.ReadJSON(text, s.dir.Path)
	}
	in, err := s.serversSandbox(ctx, all)
	if err != nil {
		return err
	}
	var missing []string
	for _, server := range all {
		why := server.Missing(in)
		switch {
		case why != "":
			missing = append(missing, fmt.Sprintf("%s (%s)", server.Name, why))
		case s.preset.MCP.To != "":
			s.servers = append(s.servers, server)
		default:
			missing = append(missing, server.Name)
		}
	}
	if list := strings.Join(missing, ", "); list != "" && s.app.FirstTime(ctx, "mcp:"+s.dir.ID+":"+s.preset.ID+":"+list) {
		s.note("MCP servers of yours that are missing in the sandbox: " + console.Printable(list))
	}
	return nil
}

// serversSandbox returns what the sandbox has for servers: programs, names and services.
func (s *start) serversSandbox(ctx context.Context, all []mcpservers.Server) (*mcpservers.Sandbox, error) {
	allowed, err := s.egress.Config(s.box.Plan)
	if err != nil {
		return nil, err
	}
	in := &mcpservers.Sandbox{Services: allowed.Services, Reaches: func(string, int) bool { return false }}
	if service.IsWanted(allowed) {
		rules, err := service.Compile(ctx, allowed, s.dir.Path)
		if err != nil {
			return nil, err
		}
		in.Reaches = func(host string, port int) bool { return rules.Connect(host, port).Allow }
	}
	found, err := s.programsInside(ctx, all)
	in.Has = func(program string) bool { return slices.Contains(found, program) }
	return in, err
}

// programsInside returns the programs of servers that the sandbox has.
func (s *start) programsInside(ctx context.Context, all []mcpservers.Server) ([]string, error) {
	var names []string
	for _, server := range all {
		if server.Command != "" && !strings.ContainsAny(server.Command, "\n\x00") {
			names = append(names, server.Command)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	command := s.command()
	command.Argv = append([]string{"sh", "-c", `for name; do command -v -- "$name" >/dev/null && printf '%s\n' "$name"; done; true`, "sh"}, names...)
	command.Stdin, command.Stdout, command.Stderr, command.OutputLimit = nil, &out, nil, maxServersFile
	if _, err := s.box.Exec(ctx, command); err != nil {
		return nil, fmt.Errorf("look for MCP servers inside: %w", err)
	}
	return strings.Split(out.String(), "\n"), nil
}

// writeServers writes the MCP servers to the home inside, or returns them for the
// settings file that they belong into.
func (s *start) writeServers(ctx context.Context, to *guestfs.Files) (added map[string][]byte, err error) {
	if len(s.servers) == 0 {
		return nil, nil
	}
	write := mcpservers.TOML
	if s.preset.MCP.Format == "json" {
		write = mcpservers.JSON
	}
	text, err := write(s.servers)
	if err != nil {
		return nil, err
	}
	for i := range s.preset.Files {
		if s.preset.Files[i].Path == s.preset.MCP.To {
			return map[string][]byte{s.preset.MCP.To: text}, nil
		}
	}
	_, err = to.Write(ctx, path.Join(s.values().Home, s.preset.MCP.To), text, &guestfs.WriteOptions{Mode: settingsMode, MkdirAll: true})
	return nil, err
}
