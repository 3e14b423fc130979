package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// attachmentsDir is where files that came with messages wait, below the state directory.
const attachmentsDir = "attachments"

// Attachments are files that come with a task.
type Attachments struct {
	Files   []attach.File
	Sources []string // paths of the same, on the host
}

// Spool is where files wait for their tasks.
func Spool(s *provide.Settings) *attach.Spool {
	return attach.NewSpool(filepath.Join(s.Paths.AtollState, attachmentsDir), 0, 0)
}

// KeepAttachments writes files down for an agent of this process; drop removes them.
func (h *Host) KeepAttachments(run string, uploads []attach.Upload) (kept Attachments, drop func(), err error) {
	if len(uploads) == 0 {
		return Attachments{}, func() {}, nil
	}
	if kept.Files, err = attach.Describe(uploads); err != nil {
		return Attachments{}, nil, err
	}
	spool, id := Spool(h.Settings), attach.ID("", run, kept.Files)
	if err := spool.Keep("", id, uploads); err != nil {
		return Attachments{}, nil, err
	}
	for i := range uploads {
		kept.Sources = append(kept.Sources, spool.Source(id, i))
	}
	return kept, func() { spool.Drop(id) }, nil
}

// errNoPlaceForFiles is why attachments are refused on the host.
var errNoPlaceForFiles = errors.New("attachments are put into a sandbox, and this session has none")

// stage copies what came with a task into the sandbox's workspace. All of it is there
// then, or the task does not begin.
func (w *Worker) stage(ctx context.Context, o *Options) error {
	files, sources := o.Attachments.Files, o.Attachments.Sources
	if len(files) == 0 {
		return nil
	}
	if !w.Plan.Sandboxed {
		return errhint.With(errNoPlaceForFiles, "set sandbox.mode to all")
	}
	media := workspace.Media{Roots: []string{filepath.Join(w.host.Paths.AtollState, attachmentsDir)}}
	for i, path := range sources {
		media.Sources = append(media.Sources, workspace.Source{Path: path, Name: files[i].Name})
	}
	staged, warnings, err := w.host.stageMedia(ctx, w.Box.sandbox, media)
	if err != nil {
		return err
	}
	if len(staged) != len(files) {
		return fmt.Errorf("attachments: %s", strings.Join(provide.WarningTexts(warnings), "; "))
	}
	paths := make([]string, len(staged))
	for i, s := range staged {
		paths[i] = s.Path
	}
	w.attached = attach.Notes(files, paths)
	return nil
}

// stageMedia copies files to where the agent sees them. An overlay is written to
// through its sandbox only.
func (h *Host) stageMedia(ctx context.Context, box *provide.ReadySandbox, media workspace.Media) ([]workspace.Staged, []workspace.Warning, error) {
	layout := box.Plan.Layout
	if layout.Access != config.AccessOverlay {
		return workspace.StageMedia(ctx, layout, media)
	}
	spool := filepath.Join(h.Paths.AtollState, attachmentsDir)
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(spool, "staging-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	layout.Access, layout.AgentDir, layout.WorkspaceDir = config.AccessRW, dir, dir
	staged, warnings, err := workspace.StageMedia(ctx, layout, media)
	if err != nil || len(staged) == 0 {
		return staged, warnings, err
	}
	_, err = box.CopyIn(ctx, provide.Copy{Inside: ".", Host: filepath.Join(dir, "media")})
	return staged, warnings, err
}

// Message is a task with a line for each file that came with it.
func (w *Worker) Message(text string) string { return strings.TrimSuffix(w.attached+text, "\n") }
