package agentcmd

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/cli/agentcmd/ownfiles"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// writeOwn writes the person's own settings that the preset names to the home inside.
// What is not named stays out: hooks, variables, programs that print keys, logins.
func (s *start) writeOwn(ctx context.Context, to *guestfs.Files) error {
	var own ownfiles.Files
	for _, c := range s.preset.Own {
		if err := own.Add(filepath.Join(s.app.Paths.Home, c.From), c.To); err != nil {
			return err
		}
	}
	for name, content := range own.Found {
		if _, err := to.Write(ctx, path.Join(provide.DirectoryHome, name), content, &guestfs.WriteOptions{Mode: settingsMode, MkdirAll: true}); err != nil {
			return err
		}
	}
	if own.Left > 0 && s.app.FirstTime(ctx, fmt.Sprint("own:", s.dir.ID, s.preset.ID, own.Left)) {
		s.note(fmt.Sprintf("%d files of your own settings do not enter: they are hidden, too large, or no plain files", own.Left))
	}
	return nil
}
