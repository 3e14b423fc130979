package session

import (
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// describeFiles finds out what came with a message, within limits.
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

// filesID names what came with a task, among the files of all tasks.
func (t *Task) filesID() string { return attach.ID(t.Account, t.ID, t.Files) }

// keepFiles writes down what came with a task, before the task itself. The memory of
// it is given back.
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

// sources are the paths of what came with a task.
func (s *Service) sources(t *Task) (paths []string) {
	for i := range t.Files {
		paths = append(paths, s.Attachments.Source(t.filesID(), i))
	}
	return paths
}

// dropFiles removes what came with a task that is over.
func (s *Service) dropFiles(t *Task) {
	if len(t.Files) > 0 && s.Attachments != nil {
		s.Attachments.Drop(t.filesID())
	}
}

// cleanFiles removes what came with tasks that an earlier process has ended.
func (s *Service) cleanFiles() error {
	if s.Attachments == nil {
		return nil
	}
	return s.Attachments.Clean()
}
