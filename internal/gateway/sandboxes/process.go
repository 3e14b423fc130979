package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/machine"
)

// maxTerminal bounds the rows and columns of a terminal.
const maxTerminal = 1000

// StartProcess starts a command in the background, after it is recorded in the audit log.
func (s *Service) StartProcess(i *Inside, q *api.StartProcess) (*api.Process, error) {
	return s.start(i, q, false)
}

// StartFollowed is StartProcess for a command that is followed at once: nothing of what it
// writes is lost, unless the guest is older than that.
func (s *Service) StartFollowed(i *Inside, q *api.StartProcess) (*api.Process, error) {
	p, err := s.start(i, q, true)
	if errors.Is(err, machine.ErrUnsupported) {
		return s.start(i, q, false)
	}
	return p, err
}

func (s *Service) start(i *Inside, q *api.StartProcess, followed bool) (*api.Process, error) {
	command, err := i.Command(&api.ExecRequest{Argv: q.Argv, Command: q.Command, Env: q.Env, Dir: q.Dir, TimeoutSeconds: q.TimeoutSeconds})
	if err != nil {
		return nil, err
	}
	if q.Terminal != nil {
		size, err := terminalSize(q.Terminal)
		if err != nil {
			return nil, err
		}
		command.TTY = &size
	}
	if q.Stdin || q.Terminal != nil {
		command.Stdin = strings.NewReader("") // it is not read: the input comes later
	}
	command.Followed = followed
	if err := s.record(i.Record, command); err != nil {
		return nil, err
	}
	id, err := i.Machine.Start(i.Ctx, command)
	if err != nil {
		return nil, i.Explain(startError(err))
	}
	return i.Process(i.Ctx, id)
}

// startError makes the failure of a command that cannot be started an error of the
// request.
func startError(err error) error {
	if errors.Is(err, machine.ErrNotFound) || errors.Is(err, machine.ErrNotExecutable) || errors.Is(err, machine.ErrNoDirectory) || errors.Is(err, machine.ErrInvalid) {
		return &InvalidError{"/argv", err.Error()}
	}
	return err
}

func terminalSize(q *api.TerminalSize) (machine.Size, error) {
	if q.Rows < 1 || q.Rows > maxTerminal || q.Cols < 1 || q.Cols > maxTerminal {
		return machine.Size{}, &InvalidError{"/terminal", fmt.Sprintf("rows and cols must be from 1 to %d", maxTerminal)}
	}
	return machine.Size{Rows: uint16(q.Rows), Cols: uint16(q.Cols)}, nil
}

// Processes returns the commands in the background.
func (i *Inside) Processes() ([]api.Process, error) {
	all, err := i.Machine.Processes(i.Ctx)
	if err != nil {
		return nil, i.Explain(err)
	}
	list := []api.Process{}
	for n := range all {
		if all[n].Background {
			list = append(list, *processOf(&all[n]))
		}
	}
	return list, nil
}

// Process returns one command in the background.
func (i *Inside) Process(ctx context.Context, id string) (*api.Process, error) {
	p, err := i.Machine.Process(ctx, id)
	if err == nil && !p.Background {
		err = machine.ErrNoProcess
	}
	if err != nil {
		return nil, i.Explain(err)
	}
	return processOf(p), nil
}

// AwaitProcess returns a process when it has ended, or after a time.
func (i *Inside) AwaitProcess(id string, wait time.Duration) (*api.Process, error) {
	ctx, cancel := context.WithTimeout(i.Ctx, wait)
	defer cancel()
	if _, err := i.Machine.Wait(ctx, id); err != nil && (i.Ctx.Err() != nil || ctx.Err() == nil) {
		return nil, i.Explain(err)
	}
	return i.Process(i.Ctx, id)
}

func processOf(p *machine.Process) *api.Process {
	answer := &api.Process{ID: p.ID, PID: p.PID, Command: p.Command, Terminal: p.TTY, Started: p.Started.UTC(), StdoutBytes: p.Stdout, StderrBytes: p.Stderr, Running: p.Result == nil}
	if p.Result != nil {
		answer.Result = resultOf(p.Result)
	}
	return answer
}

// Output returns what is kept of a process's output from the given offsets on.
func (i *Inside) Output(id string, q *api.OutputQuery) (*api.ProcessOutput, error) {
	logs, err := i.Machine.Logs(i.Ctx, id, machine.LogRequest{Stdout: q.Stdout, Stderr: q.Stderr})
	if err != nil {
		return nil, i.Explain(err)
	}
	answer := &api.ProcessOutput{Process: *processOf(logs.Process), StdoutNext: logs.Stdout.Next, StderrNext: logs.Stderr.Next}
	answer.Stdout, answer.StdoutLost = join(logs.Stdout, q.Stdout)
	answer.Stderr, answer.StderrLost = join(logs.Stderr, q.Stderr)
	return answer, nil
}

// join returns the bytes of a log, and how many are missing since an offset.
func join(log machine.Log, from int64) (all []byte, lost int64) {
	all = []byte{}
	for _, chunk := range log.Chunks {
		all = append(all, chunk.Bytes...)
	}
	return all, log.Next - from - int64(len(all))
}

// WriteInput writes to the standard input of a process, and waits while it does not
// read.
func (i *Inside) WriteInput(id string, q *api.ProcessInput) error {
	if len(q.Data) > MaxStdin {
		return &InvalidError{"/data", fmt.Sprintf("has more than %d bytes", MaxStdin)}
	}
	return i.Explain(i.Machine.Write(i.Ctx, id, q.Data, q.End))
}

// Signal sends a signal to a process.
func (i *Inside) Signal(id string, q *api.ProcessSignal) error {
	err := i.Machine.Signal(i.Ctx, id, q.Signal, q.Tree)
	if errors.Is(err, machine.ErrInvalid) {
		return &InvalidError{"/signal", "must be the name of a signal, such as SIGINT"}
	}
	return i.Explain(err)
}

// Resize sets the size of a process's terminal.
func (i *Inside) Resize(id string, q *api.TerminalSize) error {
	size, err := terminalSize(q)
	if err != nil {
		return err
	}
	return i.Explain(i.Machine.Resize(i.Ctx, id, size))
}

// EndProcess ends a process with all its descendants and forgets it.
func (i *Inside) EndProcess(id string) (*api.Process, error) {
	if err := i.Machine.End(i.Ctx, id, 0); err != nil {
		return nil, i.Explain(err)
	}
	p, err := i.AwaitProcess(id, endWait)
	if err != nil {
		return nil, err
	}
	return p, i.Explain(i.Machine.Forget(i.Ctx, id))
}

// endWait is how long the end of a process is waited for that was killed.
const endWait = 10 * time.Second

// Follow calls take with what a process writes from the given offsets on, and returns
// its result. A take that is slow holds the process up.
func (i *Inside) Follow(id string, q *api.OutputQuery, take func(*machine.OutputPart) error) (*api.ExecResult, error) {
	result, err := i.Machine.Follow(i.Ctx, id, q.Stdout, q.Stderr, take)
	if err != nil {
		return nil, i.Explain(err)
	}
	return resultOf(result), nil
}
