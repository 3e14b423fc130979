package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
)

// An image may bring along a program that serves while the sandbox runs, and one that
// waits until the first is ready. Both are ordinary commands of the sandbox.
const (
	programPath = "/etc/atoll/start"
	readyPath   = "/etc/atoll/ready"
	readyTime   = 60 * time.Second // that the program has to become ready
	programTail = 500              // bytes of its messages that an error shows
)

// ErrProgram means that the program of an image does not become ready.
var ErrProgram = errors.New("the image's program " + programPath + " did not become ready")

// StartProgram starts the program of a sandbox's image, unless it runs, and returns when
// it is ready. It does nothing where the image has none.
func (s *Service) StartProgram(ctx context.Context, r *Record) error {
	i, err := s.Enter(ctx, r)
	if err != nil {
		return err
	}
	defer i.Leave()
	if has, err := i.has(programPath); err != nil || !has {
		return err
	}
	id, err := s.program(i)
	if err != nil {
		return err
	}
	return s.awaitProgram(i, id)
}

// has reports whether a sandbox has a file.
func (i *Inside) has(path string) (bool, error) {
	files, err := i.Files()
	if err != nil {
		return false, err
	}
	_, err = files.Stat(i.Ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, i.Explain(err)
}

// program returns the id of the running program, after it was started if it did not run.
func (s *Service) program(i *Inside) (string, error) {
	all, err := i.Processes()
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if p.Running && p.Command == programPath {
			return p.ID, nil
		}
	}
	p, err := s.StartProcess(i, &api.StartProcess{Argv: []string{programPath}})
	if err != nil {
		return "", err
	}
	return p.ID, nil
}

// awaitProgram returns when the program is ready, or has ended.
func (s *Service) awaitProgram(i *Inside, id string) error {
	has, err := i.has(readyPath)
	if err != nil || !has {
		return err
	}
	waiting := *i
	var cancel context.CancelFunc
	waiting.Ctx, cancel = context.WithCancel(i.Ctx)
	defer cancel()
	go func() {
		if _, err := i.Machine.Wait(waiting.Ctx, id); err == nil {
			cancel() // it has ended: nothing will be ready
		}
	}()
	command, err := i.Command(&api.ExecRequest{Argv: []string{readyPath}, TimeoutSeconds: readyTime.Seconds()})
	if err != nil {
		return err
	}
	result, err := s.Exec(&waiting, command)
	if err == nil && result.ExitCode == 0 && result.Signal == "" {
		return nil
	}
	if i.Ctx.Err() != nil {
		return i.Explain(i.Ctx.Err())
	}
	return i.programFailure(id)
}

// programFailure returns why a program is not ready, with the last that it wrote.
func (i *Inside) programFailure(id string) error {
	said := ""
	if out, err := i.Output(id, &api.OutputQuery{}); err == nil {
		said = string(out.Stderr[max(0, len(out.Stderr)-programTail):])
	}
	return errhint.With(fmt.Errorf("%w: %q", ErrProgram, said), "run it by hand in a sandbox of the image: `atoll run --rm --image IMAGE -- "+programPath+"`")
}
