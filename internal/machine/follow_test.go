package machine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// gathered is what a follower was given, of standard output.
type gathered struct {
	bytes.Buffer
	lost int64
}

func (g *gathered) take(part *machine.OutputPart) error {
	if !part.Stderr {
		g.lost += part.Lost
		g.Write(part.Bytes)
	}
	return nil
}

// A command in the background waits for those that follow it, however slow, and loses
// nothing from when they came; without a follower it does not wait.
func TestFollow(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: `echo 0; read go; seq 1 200000; echo over >&2; exit 4`, Stdin: strings.NewReader("")})
	var all sync.WaitGroup
	outputs := make([]gathered, 3)
	started := make(chan struct{}, len(outputs))
	for i := range outputs {
		all.Go(func() {
			o, parts := &outputs[i], 0
			result, err := m.Follow(patience(t), id, 0, 0, func(part *machine.OutputPart) error {
				if parts++; parts == 1 {
					started <- struct{}{} // it follows
				}
				if i == 0 && parts%4 == 0 {
					time.Sleep(time.Millisecond)
				}
				return o.take(part)
			})
			if err != nil || result.ExitCode != 4 || o.lost != 0 || bytes.Count(o.Bytes(), []byte("\n")) != 200_001 || !bytes.HasSuffix(o.Bytes(), []byte("\n200000\n")) {
				t.Errorf("follower %d: %+v, %v: %d bytes, %d lost", i, result, err, o.Len(), o.lost)
			}
		})
	}
	for range outputs {
		<-started
	}
	if _, err := m.Follow(cancelled(t), id, 0, 0, (&gathered{}).take); err == nil {
		t.Error("no error")
	}
	if err := m.Write(patience(t), id, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// What was written before a follower came is given as far as it is kept, from the
// offset that the follower names; one that leaves ends nothing.
func TestFollowLater(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: `seq 1 300000; echo more >&2; read line; echo last`, Stdin: strings.NewReader("")})
	for {
		logs, err := m.Logs(patience(t), id, machine.LogRequest{Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if logs.Process.Stderr > 0 {
			break
		}
	}
	var early gathered
	stop := errors.New("enough")
	_, err := m.Follow(patience(t), id, 0, 0, func(part *machine.OutputPart) error {
		if err := early.take(part); err != nil || !bytes.HasSuffix(early.Bytes(), []byte("\n300000\n")) {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) || early.lost == 0 || !bytes.HasPrefix(early.Bytes(), []byte("1\n2\n")) {
		t.Errorf("%v: %d bytes, %d lost", err, early.Len(), early.lost)
	}
	if err := m.Write(patience(t), id, []byte("\n"), true); err != nil {
		t.Fatal(err)
	}
	process, err := m.Process(patience(t), id)
	if err != nil {
		t.Fatal(err)
	}
	var late gathered
	if result, err := m.Follow(patience(t), id, process.Stdout, 0, late.take); err != nil || result.ExitCode != 0 || late.lost != 0 || !strings.HasSuffix("last\n", late.String()) {
		t.Errorf("%+v, %v: %q", result, err, late.String())
	}
	if _, err := m.Follow(patience(t), "no-such-id", 0, 0, late.take); !errors.Is(err, machine.ErrNoProcess) {
		t.Errorf("%v", err)
	}
}

// A follower that takes nothing does not keep a command from being ended.
func TestFollowStalled(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: `exec cat /dev/zero`})
	ctx, leave := context.WithCancel(patience(t))
	holding, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		once := sync.OnceFunc(func() { close(holding) })
		_, _ = m.Follow(ctx, id, 0, 0, func(*machine.OutputPart) error { once(); <-ctx.Done(); return ctx.Err() })
	}()
	<-holding
	if err := m.End(patience(t), id, time.Millisecond); err != nil {
		t.Error(err)
	}
	leave()
	<-done
	if result, err := m.Wait(patience(t), id); err != nil || result.Signal == "" {
		t.Errorf("%+v, %v", result, err)
	}
}

// A command that waits for its first follower loses nothing before that comes.
func TestFollowedLosesNothing(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Shell: `seq 1 200000`, Followed: true})
	for written := int64(0); ; time.Sleep(20 * time.Millisecond) { // until it waits
		p, err := m.Process(patience(t), id)
		if err != nil {
			t.Fatal(err)
		}
		if p.Stdout == written && written > 0 {
			break
		}
		written = p.Stdout
	}
	var all gathered
	result, err := m.Follow(patience(t), id, 0, 0, all.take)
	if err != nil || result.ExitCode != 0 || all.lost != 0 || bytes.Count(all.Bytes(), []byte("\n")) != 200_000 {
		t.Errorf("%+v, %v: %d bytes, %d lost", result, err, all.Len(), all.lost)
	}
}
