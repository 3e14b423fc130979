package dockercli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/terminal"
)

func (c *cli) logsVerb() *verb {
	tail, follow := "all", false
	return &verb{usage: " [OPTIONS] CONTAINER", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.text(&tail, "tail", "n")
			f.boolean(&follow, "follow", "f")
			f.refuse(whyNoTimes, "since", "until", "timestamps,t!", "details!")
		},
		run: func(ctx context.Context, args []string) error { return c.logs(ctx, args[0], tail, follow) }}
}

// logs prints what the main command wrote: from the guest while it runs, from
// the record afterwards. The two outputs are each in order; which of two lines
// in different ones came first is not recorded. On a terminal, what could act
// there is escaped.
func (c *cli) logs(ctx context.Context, ref, tail string, follow bool) error {
	for _, w := range []*io.Writer{&c.Out, &c.Err} {
		if terminal.IsTerminal(*w) {
			*w = terminal.Harmless(*w)
		}
	}
	x, s, err := c.get(ctx, ref)
	if err != nil {
		return err
	}
	switch {
	case s != statusRunning:
		return c.printSaved(ctx, x, tail, nil)
	case x.Main.Process == "" && follow:
		return c.printSaved(ctx, x, tail, func() bool { return c.entry.Held(attachedLock(x)) })
	case x.Main.Process == "":
		return c.printSaved(ctx, x, tail, nil)
	}
	m, release, err := c.entry.Enter(ctx, x)
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

// savedOutput is what was kept of one output, and where it is printed.
type savedOutput struct {
	file *os.File
	to   io.Writer
}

// openSaved opens the saved outputs. They stay readable if the container is removed
// meanwhile.
func (c *cli) openSaved(x *Container) (all []savedOutput, err error) {
	for _, o := range []struct {
		stream string
		to     io.Writer
	}{{"stdout", c.Out}, {"stderr", c.Err}} {
		file, err := os.Open(c.records.outputPath(x.Name, o.stream))
		if err == nil {
			all = append(all, savedOutput{file, o.to})
		} else if !errors.Is(err, os.ErrNotExist) {
			return all, err
		}
	}
	return all, nil
}

// printSaved prints the saved outputs, and goes on while more may come: an attached
// `docker run` in another process writes them.
func (c *cli) printSaved(ctx context.Context, x *Container, tail string, more func() bool) error {
	kept, err := c.openSaved(x)
	defer func() {
		for _, o := range kept {
			_ = o.file.Close()
		}
	}()
	if err != nil {
		return err
	}
	for _, o := range kept {
		data, err := io.ReadAll(o.file)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(o.to, lastLines(string(data), tail)); err != nil {
			return err
		}
	}
	return followSaved(ctx, kept, more)
}

// followSaved prints what is appended, until no process appends any more.
func followSaved(ctx context.Context, kept []savedOutput, more func() bool) error {
	for goOn := true; goOn && more != nil; {
		goOn = more() // asked first: it may have written before its end
		for _, o := range kept {
			if _, err := io.Copy(o.to, o.file); err != nil {
				return err
			}
		}
		if err := sleep(ctx, waitStep); goOn && err != nil {
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
