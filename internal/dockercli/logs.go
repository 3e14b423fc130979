package dockercli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
)

func (c *cli) logsVerb() *verb {
	tail, follow := "all", false
	return &verb{usage: " [OPTIONS] CONTAINER", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.text(&tail, "tail", "n")
			f.truth(&follow, "follow", "f")
			f.refuse("the times of lines are not recorded", "since", "until", "timestamps,t!", "details!")
		},
		run: func(ctx context.Context, args []string) error { return c.logs(ctx, args[0], tail, follow) }}
}

// logs prints what the main command wrote: from the guest while it runs, from
// the record afterwards. The two outputs are each in order; which of two lines
// in different ones came first is not recorded.
func (c *cli) logs(ctx context.Context, ref, tail string, follow bool) error {
	x, s, err := c.get(ctx, ref)
	if err != nil {
		return err
	}
	if s != statusRunning || x.Main.Process == "" {
		return c.printKept(x, tail)
	}
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return err
	}
	defer release()
	logs, err := m.Logs(ctx, x.Main.Process, machine.LogRequest{})
	if err != nil {
		return err
	}
	_, _ = io.WriteString(c.Out, lastLines(joinLog(logs.Stdout), tail))
	_, _ = io.WriteString(c.Err, lastLines(joinLog(logs.Stderr), tail))
	if !follow {
		return nil
	}
	_, err = c.follow(ctx, m, x.Main.Process, machine.LogRequest{Stdout: logs.Stdout.Next, Stderr: logs.Stderr.Next})
	return err
}

func (c *cli) printKept(x *Container, tail string) error {
	for _, output := range []struct {
		stream string
		to     io.Writer
	}{{"stdout", c.Out}, {"stderr", c.Err}} {
		data, err := os.ReadFile(c.shelf.outputPath(x.Name, output.stream))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if _, err := io.WriteString(output.to, lastLines(string(data), tail)); err != nil {
			return err
		}
	}
	return nil
}

// lastLines is the end of a text; "all", and what is no number, mean all of it.
func lastLines(text, tail string) string {
	n, err := strconv.Atoi(tail)
	if err != nil || n < 0 {
		return text
	}
	at := len(text)
	for range n {
		if at = strings.LastIndexByte(text[:max(at-1, 0)], '\n') + 1; at == 0 {
			break
		}
	}
	return text[at:]
}
