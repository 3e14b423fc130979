package tool

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

const (
	// logsPage bounds each output in one answer of poll or logs.
	logsPage = 32 << 10
	// maxPolls bounds the processes whose place in the output is remembered.
	maxPolls = 256
)

// polls remembers how far each process's output was shown.
type polls struct {
	mu     sync.Mutex
	places map[string]polled
	count  uint64
}

type polled struct {
	out, errs int64
	at        uint64 // when it was last used
}

func (p *polls) get(id string) polled {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.places[id]
}

// put remembers a place, and forgets the one that was not used for longest if
// there are too many.
func (p *polls) put(id string, place polled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places == nil {
		p.places = map[string]polled{}
	}
	p.count++
	place.at = p.count
	p.places[id] = place
	if len(p.places) <= maxPolls {
		return
	}
	oldest := id
	for other, q := range p.places {
		if q.at < p.places[oldest].at {
			oldest = other
		}
	}
	delete(p.places, oldest)
}

func (p *polls) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.places, id)
}

// logDetails are the fields of a poll or logs result.
type logDetails struct {
	listed
	NextStdout int64 `json:"nextStdout"` // offsets to go on at
	NextStderr int64 `json:"nextStderr"`
	// Egress is what was refused to the process since the last look.
	Egress []string `json:"egress,omitempty"`
}

// poll shows what is new since the last poll of this session.
func (c *call) poll(ctx context.Context, a *processArgs) (*Result, error) {
	place := c.set.polls.get(a.ID)
	wait := min(time.Duration(a.Wait*float64(time.Second)), maxPollWait)
	logs, err := c.at.Machine.Logs(ctx, a.ID, machine.LogRequest{Stdout: place.out, Stderr: place.errs, Max: logsPage, Wait: wait})
	if err != nil {
		return nil, err
	}
	c.set.polls.put(a.ID, polled{out: logs.Stdout.Next, errs: logs.Stderr.Next})
	return c.logsResult(logs, place.out, place.errs), nil
}

// logs shows output from an offset on, whatever was shown before.
func (c *call) logs(ctx context.Context, a *processArgs, p *machine.Process) (*Result, error) {
	from := machine.LogRequest{Stdout: start(a.Offset, p.Stdout), Max: logsPage}
	if a.Stream == streamErr {
		from.Stdout, from.Stderr = 0, start(a.Offset, p.Stderr)
	}
	logs, err := c.at.Machine.Logs(ctx, a.ID, from)
	if err != nil {
		return nil, err
	}
	switch a.Stream {
	case streamOut:
		logs.Stderr = machine.Log{Next: logs.Process.Stderr}
	case streamErr:
		logs.Stdout = machine.Log{Next: logs.Process.Stdout}
	}
	return c.logsResult(logs, from.Stdout, from.Stderr), nil
}

// start is an offset that may count from the end.
func start(offset, total int64) int64 {
	if offset < 0 {
		return max(total+offset, 0)
	}
	return offset
}

func (c *call) logsResult(l *machine.Logs, out, errs int64) *Result {
	p := l.Process
	text := outputs(logText(l.Stdout, out), logText(l.Stderr, errs))
	if rest := p.Stdout - l.Stdout.Next; rest > 0 {
		text += fmt.Sprintf("[%s more of stdout: logs with offset %d]\n", sizeText(rest), l.Stdout.Next)
	}
	if rest := p.Stderr - l.Stderr.Next; rest > 0 {
		text += fmt.Sprintf("[%s more of stderr: logs with stream stderr, offset %d]\n", sizeText(rest), l.Stderr.Next)
	}
	denied := c.at.backgroundDenials(p.ID)
	text += denialLines(denied)
	if p.Result == nil {
		text += "[running]"
	} else {
		text += ending(p.Result, p.Result.Duration)
	}
	return &Result{
		Text:    text,
		IsError: p.Result != nil && (p.Result.ExitCode != 0 || p.Result.OOM || p.Result.TimedOut),
		Details: logDetails{listedOf(p, string(c.half)), l.Stdout.Next, l.Stderr.Next, denied},
	}
}

// logText joins the pieces of one output and marks what lies between them.
func logText(l machine.Log, from int64) string {
	var b strings.Builder
	for _, chunk := range l.Chunks {
		if lost := chunk.Offset - from; lost > 0 {
			fmt.Fprintf(&b, "[… %s are no longer kept …]\n", sizeText(lost))
		}
		from = chunk.Offset + int64(len(chunk.Bytes))
		if isBinary(chunk.Bytes) {
			fmt.Fprintf(&b, "[%s of binary output]\n", sizeText(int64(len(chunk.Bytes))))
			continue
		}
		b.WriteString(clean(chunk.Bytes))
	}
	return b.String()
}
