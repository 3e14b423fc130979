package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

const (
	// keptStderr is what is kept of a program's complaints.
	keptStderr = 16 << 10
	// maxLine bounds a line of standard error that is looked at.
	maxLine = 256 << 10
)

// Exec runs the agent's program.
func (p *Sandbox) Exec(ctx context.Context, c *run.Command) (*run.Result, error) {
	s, err := p.Ready(ctx)
	if err != nil {
		return nil, err
	}
	env := maps.Clone(s.Plan.Env.Passed)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, c.Env)
	stdout, stderr := &tailbuf.Writer{Most: c.MaxOutput}, &tailbuf.Writer{Most: keptStderr}
	lines := &lineSplitter{tell: c.Line, rest: stderr}
	heard := &lineForwarder{tell: c.Out, to: stdout}
	command := &machine.Command{
		Argv: c.Argv, Env: provide.CommandEnv(s.Plan, env), Dir: c.Dir, Timeout: c.Timeout, Stdout: heard, Stderr: lines, EndTree: true,
	}
	if p.grant != nil {
		command.Grant = p.grant.ID()
		if err := p.runs.executor.models.AuditExec(p.terms, s.Name, c.Argv); err != nil {
			return nil, err
		}
	}
	ctx, stop := p.runs.executor.WatchDisk(ctx)
	defer stop()
	ended, err := s.Machine.Exec(ctx, command)
	lines.end()
	heard.end()
	full := p.runs.executor.RanFull(ctx) || ended != nil && ended.QuotaExceeded != ""
	if err != nil && !full {
		return nil, err
	}
	result := &run.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), DiskFull: full}
	result.Truncated = stdout.Lost()
	if ended != nil {
		result.Exit, result.Signal, result.OOM, result.TimedOut = ended.ExitCode, ended.Signal, ended.OOM, ended.TimedOut
		result.Memory = ended.MaxRSS
	}
	return result, nil
}

// RefuseFullDisk refuses a run where the disk is full already.
func (e *Executor) RefuseFullDisk() error {
	free, err := e.CheckDisk()
	if errors.Is(err, provide.ErrDiskFull) {
		return &run.Failure{Code: "disk_full", Message: fmt.Sprintf("%d MiB are free below %s; %d must stay free beside %[3]d for Atoll itself", free>>20, e.Paths.AtollState, provide.DiskReserve>>20)}
	}
	return err
}

// lineForwarder passes everything on, and tells every whole line that is not too long.
type lineForwarder struct {
	tell func([]byte)
	to   *tailbuf.Writer
	part []byte
	long bool // the line is too long to be told
}

func (l *lineForwarder) Write(p []byte) (int, error) {
	n, err := l.to.Write(p)
	if l.tell == nil {
		return n, err
	}
	for line, rest, found := bytes.Cut(p, []byte{'\n'}); ; line, rest, found = bytes.Cut(rest, []byte{'\n'}) {
		if l.long = l.long || len(l.part)+len(line) > maxLine; l.long {
			l.part = l.part[:0]
		} else {
			l.part = append(l.part, line...)
		}
		if !found {
			return n, err
		}
		l.end()
	}
}

// end tells the line that has come so far.
func (l *lineForwarder) end() {
	if l.tell != nil && !l.long && len(l.part) > 0 {
		l.tell(l.part)
	}
	l.part, l.long = l.part[:0], false
}

// lineSplitter tells every whole line, and passes on those that are no news.
type lineSplitter struct {
	tell func([]byte) bool // whether it was news
	rest *tailbuf.Writer
	part []byte
}

func (l *lineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	if l.tell == nil {
		return l.rest.Write(p)
	}
	for {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			break
		}
		l.take(append(l.part, p[:at]...))
		l.part, p = l.part[:0], p[at+1:]
	}
	if l.part = append(l.part, p...); len(l.part) > maxLine {
		_, _ = l.rest.Write(l.part)
		l.part = l.part[:0]
	}
	return n, nil
}

func (l *lineSplitter) take(line []byte) {
	if !l.tell(line) {
		_, _ = l.rest.Write(append(line, '\n'))
	}
}

// end passes on what came after the last line.
func (l *lineSplitter) end() {
	_, _ = l.rest.Write(l.part)
	l.part = nil
}
