package headstart_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/wire"
)

const notFound = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown\n"

func TestWhatAGuestSays(t *testing.T) {
	exit := func(payload string) string { return frame(wire.FrameExit, payload) }
	const silence, words, end = headstart.Silence, headstart.Words, headstart.End
	for _, c := range []struct {
		frames string
		said   any
		code   int
	}{
		{"", silence, 0},
		{started[:1], silence, 0},
		{started[:4], silence, 0},
		{started[:len(started)-1], silence, 0},
		{started, silence, 0},
		{started + success[:3], silence, 0},
		{started + success[:len(success)-1], silence, 0},
		{started + success, end, 0},
		{started + exit(`{"code":7,"userUs":12,"maxRss":4096}`), end, 7},
		{started + exit(`{"code":256}`), end, 255},
		{started + exit(`{"code":-1}`), end, 0},
		// Everything else is for the whole program to understand.
		{success, words, 0},
		{started + started, words, 0},
		{started + success + success, words, 0},
		{started + success + "x", words, 0},
		{started + exit(""), words, 0},
		{started + exit("{}"), words, 0},
		{started + exit(`{"code":"1"}`), words, 0},
		{started + exit(`{"code":1e3}`), words, 0},
		{started + exit(`{"code":12345678901234567890}`), words, 0},
		{started + exit(`{"code":0,"a name that no exit has, and a long one":1}`), words, 0},
		{started + exit(`{"code":137,"signal":"SIGKILL"}`), words, 0},
		{started + exit(`{"code":0,"stdout":5}`), words, 0},
		{started + exit(`{"code":0,"stderr":5}`), words, 0},
		{frame(wire.FrameError, `{"code":"over"}`), words, 0},
		{started + frame(wire.FrameStdout, "hello"), words, 0},
		{started + frame(wire.FrameStdout, "hello")[:1], words, 0},
		{started + frame(wire.FrameGap, "{}"), words, 0},
		{started + "\x14\xff\xff\xff\xff{}", silence, 0},
		{"\x10\xff\xff\xff\xff", silence, 0},
		{"HTTP/1.1 400\r\n", words, 0},
		{"\x00", words, 0},
	} {
		call, frames := &headstart.Call{}, []byte(c.frames)
		if said, code := call.Understand(frames); said != c.said || code != c.code {
			t.Errorf("%q: %v, %d, want %v, %d", c.frames, said, code, c.said, c.code)
		}
		if n := testing.AllocsPerRun(5, func() { call.Understand(frames) }); n != 0 {
			t.Errorf("%q takes from the heap %v times", c.frames, n)
		}
	}
}

// TestTheWholeProgramGoesOn with a command that was asked for, whatever was heard
// of it up to then.
func TestTheWholeProgramGoesOn(t *testing.T) {
	hello, sorry := frame(wire.FrameStdout, "hello\n"), frame(wire.FrameStderr, "sorry\n")
	three := frame(wire.FrameExit, `{"code":3,"stdout":6,"stderr":6}`)
	for _, c := range []struct {
		name      string
		now, then []string // what the guest says, at once and to the whole program
		want      string
		code      int
	}{
		{"words", []string{started, hello, sorry, three}, nil, "hello\nsorry\n", 3},
		{"words in pieces", []string{started, hello[:2]}, []string{hello[2:], sorry, three}, "hello\nsorry\n", 3},
		{"nothing for a while", nil, []string{started, hello, sorry, three}, "hello\nsorry\n", 3},
		{"nothing more for a while", []string{started}, []string{success}, "", 0},
		{"many words", []string{started, strings.Repeat(hello, 1000)}, []string{frame(wire.FrameExit, `{"code":0,"stdout":6000}`)}, strings.Repeat("hello\n", 1000), 0},
		{"no such program", []string{frame(wire.FrameError, `{"code":"not_found","message":"x"}`)}, nil, notFound, 127},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			heard := l.serve(c.now...)
			args := l.words("exec some sh")
			call := &headstart.Call{}
			defer call.Close()
			if !call.Ask(args, l.environ()) {
				t.Fatal("nothing was asked for")
			}
			guest := <-heard
			if code, over := call.Hear(); over {
				t.Fatalf("over, with %d", code)
			}
			defer guest.conn.Close()
			begun, err := call.Take()
			check(t, err)
			for _, frame := range c.then {
				_, err := io.WriteString(guest.conn, frame)
				check(t, err)
			}
			if out, code := l.whole(begun, "", args); out != c.want || code != c.code {
				t.Errorf("%q %d, want %q %d", out, code, c.want, c.code)
			}
		})
	}
}

// TestInputIsPassedOnOnce: its end at once, the rest by the whole program.
func TestInputIsPassedOnOnce(t *testing.T) {
	for _, c := range []struct {
		name, input string
	}{
		{"none", ""},
		{"some", "some input"},
		{"more than fits", strings.Repeat("0123456789", 10_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			from, to, err := os.Pipe()
			check(t, err)
			defer from.Close()
			go func() { _, _ = io.WriteString(to, c.input); _ = to.Close() }()
			heard := l.serve(started)
			args := l.words("exec -i some cat")
			call := &headstart.Call{}
			call.Stdin(from)
			defer call.Close()
			if !call.Ask(args, l.environ()) {
				t.Fatal("nothing was asked for")
			}
			guest := <-heard
			if code, over := call.Hear(); over {
				t.Fatalf("over, with %d", code)
			}
			got := make(chan string)
			go func() {
				var text strings.Builder
				frames := wire.NewReader(guest.conn)
				for {
					frame, err := frames.Frame()
					if err != nil || frame.Type == wire.FrameStdinEOF {
						break
					}
					text.Write(frame.Payload)
				}
				_, _ = io.WriteString(guest.conn, success)
				got <- text.String()
			}()
			begun, err := call.Take()
			check(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				rest, err := io.ReadAll(from)
				check(t, err)
				if out, code := l.whole(begun, string(rest), args); out != "" || code != 0 {
					t.Errorf("%q %d", out, code)
				}
			}()
			if got := <-got; got != c.input {
				t.Errorf("%d bytes arrived, of %d", len(got), len(c.input))
			}
			<-done
		})
	}
}
