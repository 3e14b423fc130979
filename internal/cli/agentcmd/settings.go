package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/atoll-run/atoll/internal/cli/agentcmd/mcpservers"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// settingsMode is that of settings inside: for the agent alone.
const settingsMode = 0o600

// writeSettings writes the preset's settings files to the home inside, through the
// guest: the home's files are the sandbox's, and a link there must lead nowhere else.
func (s *start) writeSettings(ctx context.Context) error {
	if len(s.preset.Files)+len(s.preset.Own) == 0 && s.preset.MCP == nil {
		return nil
	}
	files, err := provide.FilesOf(s.box.Handle, s.box.Plan.Spec)
	if err != nil {
		return err
	}
	if err := s.chooseServers(ctx); err != nil {
		return err
	}
	servers, err := s.writeServers(ctx, files)
	if err != nil {
		return fmt.Errorf("your MCP servers of %s: %w", s.preset.Title, err)
	}
	if err := s.writeOwn(ctx, files); err != nil {
		return fmt.Errorf("your own settings of %s: %w", s.preset.Title, err)
	}
	v := s.values()
	for i := range s.preset.Files {
		f := &s.preset.Files[i]
		_, err := files.Write(ctx, path.Join(v.Home, f.Path), mcpservers.AddTo(f.Content(v), servers[f.Path], len(f.JSON) > 0), &guestfs.WriteOptions{Mode: settingsMode, MkdirAll: true, Exclusive: f.Keep})
		if err != nil && (!f.Keep || !errors.Is(err, fs.ErrExist)) {
			return fmt.Errorf("settings of %s: %w", s.preset.Title, err)
		}
	}
	return nil
}
