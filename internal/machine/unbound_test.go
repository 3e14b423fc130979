package machine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// unboundOn returns a machine with Options.Direct on a guest that listens. Its
// cutter counts the connections.
func unboundOn(t *testing.T, g *machinetest.Guest) (*cutter, *machine.Machine) {
	t.Helper()
	c := &cutter{guest: g}
	m := machine.New(c.dial, &machine.Options{Direct: true})
	t.Cleanup(func() { _ = m.Close() })
	return c, m
}

// listening returns a guest that listens, and a machine that watches it.
func listening(t *testing.T) (*machinetest.Guest, *machine.Machine) {
	t.Helper()
	g, watcher := start(t)
	check(t, watcher.Ping(patience(t)))
	return g, watcher
}

// outcome is all that Exec returns and writes for a command.
type outcome struct {
	Code           int
	Signal         string
	TimedOut, Left bool
	Stdout, Stderr machine.Output
	Out, Err       string
	Failure        string
	Status         int // of a command that was not started
}

// sizes in messages say how long a request is, which depends on the wire.
var sizes = regexp.MustCompile(`[0-9]+`)

func outcomeOf(ctx context.Context, m *machine.Machine, command *machine.Command) (outcome, error) {
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	result, err := m.Exec(ctx, command)
	got := outcome{Out: out.String(), Err: errs.String()}
	if err != nil {
		got.Failure, got.Status = sizes.ReplaceAllString(err.Error(), "N"), machine.ExitStatus(err)
	}
	if result != nil {
		got.Code, got.Signal, got.TimedOut, got.Left = result.ExitCode, result.Signal, result.TimedOut, result.Left
		got.Stdout, got.Stderr = result.Stdout, result.Stderr
	}
	return got, err
}

// directCommand is a command, and its outcome over any connection.
type directCommand struct {
	command func() *machine.Command // anew for every wire: input is used up
	code    int
	out     string
	want    error
}

func (tt *directCommand) check(t *testing.T, got outcome, err error) {
	t.Helper()
	if !errors.Is(err, tt.want) || got.Code != tt.code || got.Out != tt.out {
		t.Errorf("code %d, %d bytes %.80q, error %v; want %d, %d bytes %.80q, %v", got.Code, len(got.Out), got.Out, err, tt.code, len(tt.out), tt.out, tt.want)
	}
}

// TestUnboundIsLikeStreams: the outcome of a command is the same over a direct
// connection without a parent and over a stream.
func TestUnboundIsLikeStreams(t *testing.T) {
	g, m := listening(t)
	sh(t, m, "echo x > "+g.Dir+"/plain")
	large := strings.Repeat("0123456789abcdef\n", 300_000)
	endless, writer := io.Pipe()
	defer writer.Close()
	script := func(s string) func() *machine.Command {
		return func() *machine.Command { return &machine.Command{Argv: []string{"/bin/sh", "-c", s}} }
	}
	with := func(c machine.Command) func() *machine.Command { return func() *machine.Command { return &c } }
	input := func(s string, argv ...string) func() *machine.Command {
		return func() *machine.Command { return &machine.Command{Argv: argv, Stdin: strings.NewReader(s)} }
	}
	tests := map[string]directCommand{
		"success":                  {command: with(machine.Command{Argv: []string{"true"}})},
		"both outputs and a code":  {command: script("echo out; echo err >&2; exit 42"), code: 42, out: "out\n"},
		"a signal":                 {command: script("kill -9 $$"), code: 137},
		"directory, environment":   {command: with(machine.Command{Argv: []string{"/bin/sh", "-c", "pwd; echo $A"}, Dir: "/usr/lib", Env: []string{"A=x y"}}), out: "/usr/lib\nx y\n"},
		"text that is none":        {command: with(machine.Command{Argv: []string{"printf", "%s", "a\xff\x01\nb\"\\é"}}), out: "a\xff\x01\nb\"\\é"},
		"large environment":        {command: with(machine.Command{Shell: "echo ${#A} ${#B}", Env: []string{"A=" + large[:100_000], "B=" + large[:100_000], "PATH=/bin"}}), out: "100000 100000\n"},
		"no input":                 {command: with(machine.Command{Argv: []string{"cat"}})},
		"empty input":              {command: input("", "cat")},
		"small input":              {command: input("some input", "cat"), out: "some input"},
		"large input":              {command: input(large, "cat"), out: large},
		"input that is not read":   {command: input(large, "true")},
		"input that does not end":  {command: with(machine.Command{Argv: []string{"echo", "over"}, Stdin: endless}), out: "over\n"},
		"over in time":             {command: with(machine.Command{Argv: []string{"true"}, Timeout: time.Minute})},
		"timeout":                  {command: with(machine.Command{Argv: []string{"sleep", "1000"}, Timeout: 100 * time.Millisecond}), code: 143},
		"limited output":           {command: with(machine.Command{Shell: "printf AAAAA; head -c 3000000 /dev/zero; printf ZZZZZ", OutputLimit: 10}), out: "AAAAAZZZZZ"},
		"a child that stays":       {command: script("sleep 1000 & exit 5"), code: 5},
		"a child that must not":    {command: with(machine.Command{Argv: []string{"/bin/sh", "-c", "sleep 2000 & exit 6"}, EndTree: true, Grace: time.Millisecond}), code: 6},
		"missing":                  {command: with(machine.Command{Argv: []string{"no-such-program"}}), want: machine.ErrNotFound},
		"not executable":           {command: with(machine.Command{Argv: []string{g.Dir + "/plain"}}), want: machine.ErrNotExecutable},
		"no directory":             {command: with(machine.Command{Argv: []string{"true"}, Dir: "/no/such"}), want: machine.ErrNoDirectory},
		"beside one that is over":  {command: with(machine.Command{Argv: []string{"true"}, While: "ended"}), want: machine.ErrOver},
		"a grant that is not open": {command: with(machine.Command{Argv: []string{"true"}, Grant: "closed"}), want: machine.ErrNoGrant},
		"argument too long":        {command: with(machine.Command{Argv: []string{"true", large[:200_000]}}), want: machine.ErrInvalid},
		"request too long":         {command: with(machine.Command{Argv: []string{"true"}, Env: slices.Repeat([]string{"X=" + large[:100_000]}, 20)}), want: machine.ErrInvalid},
		"nothing":                  {command: with(machine.Command{}), want: machine.ErrInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			usual, err := outcomeOf(patience(t), m, tt.command())
			tt.check(t, usual, err)
			c, alone := unboundOn(t, g)
			got, err := outcomeOf(patience(t), alone, tt.command())
			tt.check(t, got, err)
			if got != usual {
				got.Out, usual.Out = "", "" // looked at above
				t.Errorf("alone %+v\nusual %+v", got, usual)
			}
			if c.count() > 1 {
				t.Errorf("it took %d wires", c.count())
			}
		})
	}
	if left := alive(t, m); slices.Contains(left, "sleep 2000") || count(left, "sleep 1000") != 2 {
		t.Errorf("left behind: %q", left)
	}
}

// TestUnboundOutputWaitsForItsReader: a reader that takes its time gets every byte.
func TestUnboundOutputWaitsForItsReader(t *testing.T) {
	g, _ := listening(t)
	_, m := unboundOn(t, g)
	line := "0123456789abcdef\n"
	const lines = 500_000
	sum := sha256.New()
	slowly := writerFunc(func(b []byte) (int, error) {
		time.Sleep(time.Millisecond)
		return sum.Write(b)
	})
	result, err := m.Exec(patience(t), &machine.Command{Shell: "yes 0123456789abcdef | head -n 500000", Stdout: slowly})
	if err != nil || result.ExitCode != 0 || result.Stdout != (machine.Output{Total: int64(lines * len(line)), Head: int64(lines * len(line))}) {
		t.Fatalf("%+v %v", result, err)
	}
	if want := sha256.Sum256([]byte(strings.Repeat(line, lines))); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("other bytes came")
	}
}

// TestUnboundInputAndOutput: input and output go both ways while the command runs.
func TestUnboundInputAndOutput(t *testing.T) {
	g, _ := listening(t)
	_, m := unboundOn(t, g)
	ours, in := io.Pipe()
	out, theirs := io.Pipe()
	over := make(chan error, 1)
	go func() {
		_, err := m.Exec(patience(t), &machine.Command{Shell: "while read x; do echo got $x; done", Stdin: ours, Stdout: theirs})
		_ = theirs.Close()
		over <- err
	}()
	for _, word := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(in, word+"\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("got \n")+len(word))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != "got "+word+"\n" {
			t.Fatalf("%q %v", got, err)
		}
	}
	_ = in.Close()
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	check(t, <-over)
}

// TestUnboundUnderAnIDThatIsTaken: the command is the one that has the id, as over
// any other wire.
func TestUnboundUnderAnIDThatIsTaken(t *testing.T) {
	g, m := listening(t)
	id := background(t, m, &machine.Command{Argv: []string{"sleep", "1000"}})
	command := func() *machine.Command { return &machine.Command{Argv: []string{"true"}, ID: id} }
	usual, _ := outcomeOf(patience(t), m, command())
	_, alone := unboundOn(t, g)
	if got, err := outcomeOf(patience(t), alone, command()); got != usual || !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("alone %+v\nusual %+v", got, usual)
	}
}

// TestManyUnboundLeaveNothing: a guest keeps nothing of commands whose wires ended
// with them.
func TestManyUnboundLeaveNothing(t *testing.T) {
	g, watcher := listening(t)
	before, err := watcher.Info(patience(t))
	check(t, err)
	for i := range 300 {
		c := &cutter{guest: g}
		m := machine.New(c.dial, &machine.Options{Direct: true})
		result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}})
		_ = m.Close()
		if err != nil || result.ExitCode != 0 || c.count() != 1 {
			t.Fatalf("command %d: %+v %v, %d wires", i, result, err, c.count())
		}
	}
	eventually(t, "the guest is as it was", func() bool {
		info, err := watcher.Info(patience(t))
		check(t, err)
		const others = 2
		return info.Processes == 0 && info.Goroutines <= before.Goroutines+others && info.Descriptors <= before.Descriptors+others
	})
}
