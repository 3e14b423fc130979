package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// text joins the chunks of a log, with a mark where bytes are lost.
func text(log machine.Log) string {
	var out strings.Builder
	next := int64(0)
	for i, chunk := range log.Chunks {
		if i > 0 && chunk.Offset != next {
			fmt.Fprintf(&out, "[%d lost]", chunk.Offset-next)
		}
		out.Write(chunk.Bytes)
		next = chunk.Offset + int64(len(chunk.Bytes))
	}
	return out.String()
}

func background(t *testing.T, m *machine.Machine, command *machine.Command) string {
	t.Helper()
	id, err := m.Start(patience(t), command)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestBackgroundProcess(t *testing.T) {
	g, m := start(t)
	id := background(t, m, &machine.Command{Shell: `echo ready; while read line; do echo "got $line"; done; echo end >&2; exit 3`, Stdin: strings.NewReader("")})
	logs, err := m.Logs(patience(t), id, machine.LogRequest{Wait: 5 * time.Second})
	if err != nil || text(logs.Stdout) != "ready\n" || logs.Process.Result != nil || !logs.Process.Background {
		t.Fatalf("%+v %v", logs, err)
	}
	if err := m.Write(patience(t), id, []byte("one\n"), false); err != nil {
		t.Fatal(err)
	}
	logs, err = m.Logs(patience(t), id, machine.LogRequest{Stdout: logs.Stdout.Next, Wait: 5 * time.Second})
	if err != nil || text(logs.Stdout) != "got one\n" {
		t.Fatalf("%+v %v", logs, err)
	}

	// Another host sees it, and ends its input.
	other := g.Machine(t, nil)
	list, err := other.Processes(patience(t))
	if err != nil || len(list) != 1 || list[0].ID != id || !strings.HasPrefix(list[0].Command, "echo ready") || list[0].Result != nil {
		t.Fatalf("%+v %v", list, err)
	}
	if err := other.Write(patience(t), id, []byte("two\n"), true); err != nil {
		t.Fatal(err)
	}
	result, err := m.Wait(patience(t), id)
	if err != nil || result.ExitCode != 3 {
		t.Fatalf("%+v %v", result, err)
	}
	logs, err = m.Logs(patience(t), id, machine.LogRequest{})
	if err != nil || text(logs.Stdout) != "ready\ngot one\ngot two\n" || text(logs.Stderr) != "end\n" || logs.Process.Result.ExitCode != 3 {
		t.Fatalf("after the end: %+v %v", logs, err)
	}
	if err := m.Forget(patience(t), id); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Process(patience(t), id); !errors.Is(err, machine.ErrNoProcess) {
		t.Errorf("forgotten: %v", err)
	}
}

// A command that is to run beside another is started while that runs, and not
// after: over a stream, over a direct wire and in the background.
func TestWhileAnotherRuns(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Argv: []string{"sleep", "1000"}})
	beside := func(while string) *machine.Command { return &machine.Command{Argv: []string{"true"}, While: while} }
	for range 3 {
		if _, err := m.Exec(patience(t), beside(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.End(patience(t), id, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, over := range []string{id, "never"} {
		if _, err := m.Exec(patience(t), beside(over)); !errors.Is(err, machine.ErrOver) {
			t.Errorf("%s: %v", over, err)
		}
		if _, err := m.Start(patience(t), beside(over)); !errors.Is(err, machine.ErrOver) {
			t.Errorf("%s, in the background: %v", over, err)
		}
	}
	if _, err := m.Exec(patience(t), beside("no/id")); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("a malformed id: %v", err)
	}
}

func TestBackgroundSignals(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: `trap 'echo usr1' USR1; trap 'echo int; exit 4' INT; echo ready; while :; do sleep 0.02; done`})
	eventually(t, "it is ready", func() bool { p, err := m.Process(patience(t), id); return err == nil && p.Stdout > 0 })
	if err := m.Signal(patience(t), id, "SIGUSR1", false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "USR1 arrives", func() bool {
		logs, err := m.Logs(patience(t), id, machine.LogRequest{})
		return err == nil && strings.Contains(text(logs.Stdout), "usr1")
	})
	if err := m.Signal(patience(t), id, "SIGNONSENSE", false); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("nonsense: %v", err)
	}
	if err := m.Forget(patience(t), id); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("forget what runs: %v", err)
	}
	if err := m.Signal(patience(t), id, "SIGINT", false); err != nil {
		t.Fatal(err)
	}
	if result, err := m.Wait(patience(t), id); err != nil || result.ExitCode != 4 {
		t.Errorf("%+v %v", result, err)
	}
	if err := m.Signal(patience(t), id, "SIGINT", false); !errors.Is(err, machine.ErrNoProcess) {
		t.Errorf("signal to what has ended: %v", err)
	}
}

func TestBackgroundLogsKeepBothEnds(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: "echo BEGIN; head -c 5000000 /dev/zero; echo END"})
	if _, err := m.Wait(patience(t), id); err != nil {
		t.Fatal(err)
	}
	logs, err := m.Logs(patience(t), id, machine.LogRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(logs.Stdout.Chunks); n != 2 {
		t.Fatalf("%d chunks", n)
	}
	head, tail := logs.Stdout.Chunks[0], logs.Stdout.Chunks[1]
	if !bytes.HasPrefix(head.Bytes, []byte("BEGIN\n")) || !bytes.HasSuffix(tail.Bytes, []byte("END\n")) {
		t.Errorf("%.20q … %.20q", head.Bytes, tail.Bytes)
	}
	if total := int64(5000000 + 10); logs.Stdout.Next != total || tail.Offset+int64(len(tail.Bytes)) != total || logs.Process.Stdout != total {
		t.Errorf("offsets: next %d, tail %d+%d, total %d", logs.Stdout.Next, tail.Offset, len(tail.Bytes), logs.Process.Stdout)
	}
	again, err := m.Logs(patience(t), id, machine.LogRequest{Stdout: logs.Stdout.Next - 4, Max: 2})
	if err != nil || text(again.Stdout) != "EN" {
		t.Errorf("a part: %q %v", text(again.Stdout), err)
	}
}

func TestBackgroundSurvivesItsHost(t *testing.T) {
	g, m := start(t)
	id := background(t, m, &machine.Command{Argv: []string{"sleep", "1000"}})
	_ = m.Close()
	if err := m.Ping(patience(t)); !errors.Is(err, machine.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	other := g.Machine(t, nil)
	if p, err := other.Process(patience(t), id); err != nil || p.Result != nil {
		t.Errorf("%+v %v", p, err)
	}
	if err := other.End(patience(t), id, time.Millisecond); err != nil {
		t.Error(err)
	}
	if result, err := other.Wait(patience(t), id); err != nil || result.Signal == "" {
		t.Errorf("%+v %v", result, err)
	}
}

func TestManyEndedProcessesAreForgotten(t *testing.T) {
	_, m := start(t)
	for range 150 {
		background(t, m, &machine.Command{Argv: []string{"true"}})
	}
	eventually(t, "few are left", func() bool {
		list, err := m.Processes(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, p := range list {
			if p.Result != nil {
				ended++
			}
		}
		if ended == len(list) {
			background(t, m, &machine.Command{Argv: []string{"true"}})
		}
		return ended == len(list) && ended <= 65
	})
}

func TestWaitCanBeLeft(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Argv: []string{"sleep", "1000"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Errorf("leaving must not harm the wire: %v", err)
	}
	if err := m.End(patience(t), id, time.Millisecond); err != nil {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	_, m := start(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	resize := make(chan machine.Size)
	done := make(chan error, 1)
	go func() {
		result, err := m.Exec(patience(t), &machine.Command{
			Argv:  []string{"/bin/sh", "-c", `stty -echo; tty; stty size; echo ready; while read line; do echo "got $line"; stty size; done; echo over; exit 7`},
			Stdin: inR, Stdout: outW, TTY: &machine.Size{Rows: 11, Cols: 22}, Resize: resize,
		})
		_ = outW.Close()
		if err == nil && result.ExitCode != 7 {
			err = fmt.Errorf("%+v", result)
		}
		done <- err
	}()
	out := &waiter{r: outR}
	out.until(t, "11 22\r\n")
	out.until(t, "ready\r\n")
	resize <- machine.Size{Rows: 33, Cols: 44}
	resize <- machine.Size{Rows: 55, Cols: 66} // taken when the guest has the first
	fmt.Fprint(inW, "hello\n")
	out.until(t, "got hello\r\n")
	fmt.Fprint(inW, "again\n")
	out.until(t, "55 66\r\n")
	_ = inW.Close() // ^D
	out.until(t, "over\r\n")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// waiter reads until something was seen.
type waiter struct {
	r    io.Reader
	seen []byte
}

func (w *waiter) until(t *testing.T, what string) {
	t.Helper()
	for {
		if i := bytes.Index(w.seen, []byte(what)); i >= 0 {
			w.seen = w.seen[i+len(what):]
			return
		}
		buf := make([]byte, 1024)
		n, err := w.r.Read(buf)
		w.seen = append(w.seen, buf[:n]...)
		if err != nil {
			t.Fatalf("waiting for %q: %v after %q", what, err, w.seen)
		}
	}
}

func TestTerminalHangsUp(t *testing.T) {
	_, m := start(t)
	result, err := m.Exec(patience(t), &machine.Command{Shell: "cat", TTY: &machine.Size{}, Timeout: 200 * time.Millisecond, Grace: time.Millisecond})
	if err != nil || !result.TimedOut {
		t.Errorf("%+v %v", result, err)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := m.Resize(patience(t), background(t, m, &machine.Command{Argv: []string{"sleep", "1"}}), machine.Size{}); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("resize without a terminal: %v", err)
	}
}
