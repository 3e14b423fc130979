package session

import (
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// describeFiles checks the files of a message and sets their descriptions.
func (s *Service) describeFiles(t *Task) (err error) {
	if len(t.Uploads) == 0 {
		return nil
	}
	if s.Attachments == nil {
		return fmt.Errorf("%w: attachments are not taken here", ErrInvalid)
	}
	if t.Files, err = attach.Describe(t.Uploads); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// filesID returns the directory name of a task's files.
func (t *Task) filesID() string { return attach.ID(t.Account, t.ID, t.Files) }

// keepFiles stores the files of a task, before the task itself, and frees their
// memory.
func (s *Service) keepFiles(t *Task) error {
	if len(t.Files) == 0 {
		return nil
	}
	err := s.Attachments.Keep(t.Account, t.filesID(), t.Uploads)
	t.Uploads = nil
	if errors.Is(err, attach.ErrFull) {
		return errhint.With(fmt.Errorf("%w: %w", ErrBusy, err), "try again when some tasks are done")
	}
	return err
}

// sources returns the paths of a task's files.
func (s *Service) sources(t *Task) (paths []string) {
	for i := range t.Files {
		paths = append(paths, s.Attachments.Source(t.filesID(), i))
	}
	return paths
}

// dropFiles removes the files of a task that is over.
func (s *Service) dropFiles(t *Task) {
	if len(t.Files) > 0 && s.Attachments != nil {
		s.Attachments.Drop(t.filesID())
	}
}

// cleanFiles removes files of tasks that are over, left by an earlier process.
func (s *Service) cleanFiles() error {
	if s.Attachments == nil {
		return nil
	}
	return s.Attachments.Clean()
}
