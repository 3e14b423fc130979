package headstart_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/wire"
)

const notFound = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown\n"

func TestWhatAGuestSays(t *testing.T) {
	exit := func(payload string) string { return frame(wire.FrameExit, payload) }
	hello, sorry := frame(wire.FrameStdout, "hello"), frame(wire.FrameStderr, "sorry")
	const silence, unclear, end = headstart.Silence, headstart.Unclear, headstart.End
	for _, c := range []struct {
		frames, shown string
		said          any
		code          int
		left          string // "": that does not matter
	}{
		{"", "", silence, 0, ""},
		{started[:1], "", silence, 0, started[:1]},
		{started[:4], "", silence, 0, started[:4]},
		{started[:len(started)-1], "", silence, 0, started[:len(started)-1]},
		{started, "", silence, 0, started},
		{started + success[:3], "", silence, 0, started + success[:3]},
		{started + success[:len(success)-1], "", silence, 0, started + success[:len(success)-1]},
		{started + success, "", end, 0, started + success},
		{started + exit(`{"code":7,"userUs":12,"maxRss":4096}`), "", end, 7, ""},
		{started + exit(`{"code":256}`), "", end, 255, ""},
		{started + exit(`{"code":-1}`), "", end, 0, ""},
		{started + hello, "", silence, 0, started + hello},
		{started + hello[:1], "", silence, 0, started + hello[:1]},
		{started + hello[:7], "", silence, 0, started + hello[:7]},
		{started + hello + sorry[:6], "", silence, 0, started + hello + sorry[:6]},
		{started + hello + sorry + hello, "", silence, 0, started + hello + sorry + hello},
		{started + frame(wire.FrameStdout, ""), "", silence, 0, ""},
		{started + hello + exit(`{"code":7,"stdout":5}`), "hello", end, 7, ""},
		{started + hello + sorry + exit(`{"code":7,"stdout":5,"stderr":5}`), "hello+sorry", end, 7, ""},
		// Everything else is for the whole program to understand.
		{success, "", unclear, 0, success},
		{hello, "", unclear, 0, hello},
		{started + started, "", unclear, 0, started + started},
		{started + success + success, "", unclear, 0, started + success + success},
		{started + success + "x", "", unclear, 0, started + success + "x"},
		{started + exit(""), "", unclear, 0, ""},
		{started + exit("{}"), "", unclear, 0, ""},
		{started + exit(`{"code":"1"}`), "", unclear, 0, ""},
		{started + exit(`{"code":1e3}`), "", unclear, 0, ""},
		{started + exit(`{"code":12345678901234567890}`), "", unclear, 0, ""},
		{started + exit(`{"code":0,"a name that no exit has, and a long one":1}`), "", unclear, 0, ""},
		{started + exit(`{"code":137,"signal":"SIGKILL"}`), "", unclear, 0, ""},
		{started + exit(`{"code":0,"stdout":5}`), "", unclear, 0, ""},
		{started + exit(`{"code":0,"stderr":5}`), "", unclear, 0, ""},
		{started + frame(wire.FrameStdout, "") + success, "", end, 0, ""},
		{started + hello + sorry + hello + exit(`{"code":7,"stdout":10,"stderr":5}`), "hellohello+sorry", end, 7, ""},
		{started + hello + exit(`{"code":0,"stdout":6}`), "", unclear, 0, started + hello + exit(`{"code":0,"stdout":6}`)},
		{started + hello + exit(`{"code":0,"stdout":5}`) + "x", "", unclear, 0, started + hello + exit(`{"code":0,"stdout":5}`) + "x"},
		{frame(wire.FrameError, `{"code":"over"}`), "", unclear, 0, ""},
		{started + frame(wire.FrameGap, "{}"), "", unclear, 0, ""},
		{started + hello + frame(wire.FrameGap, "{}"), "", unclear, 0, started + hello + frame(wire.FrameGap, "{}")},
		{started + "\x14\xff\xff\xff\xff{}", "", silence, 0, ""},
		{started + "\x11\xff\xff\xff\xff{}", "", silence, 0, ""},
		{"\x10\xff\xff\xff\xff", "", silence, 0, ""},
		{"HTTP/1.1 400\r\n", "", unclear, 0, ""},
		{"\x00", "", unclear, 0, ""},
	} {
		call, frames := &headstart.Call{}, []byte(c.frames)
		out, problems := collect(t), collect(t)
		call.Streams(nil, out.to, problems.to)
		said, code, left := call.Understand(frames)
		shown := out.text()
		if text := problems.text(); text != "" {
			shown += "+" + text
		}
		if said != c.said || code != c.code || shown != c.shown || c.left != "" && string(left) != c.left {
			t.Errorf("%q: %v, %d, shows %q, leaves %q, want %v, %d, %q, %q", c.frames, said, code, shown, left, c.said, c.code, c.shown, c.left)
		}
		call.Streams(nil, nil, nil)
		if n := testing.AllocsPerRun(5, func() { call.Understand(frames) }); n != 0 {
			t.Errorf("%q takes from the heap %v times", c.frames, n)
		}
	}
}

// collected is what arrives at the other end of a pipe.
type collected struct {
	t        *testing.T
	from, to *os.File
}

func collect(t *testing.T) *collected {
	t.Helper()
	from, to, err := os.Pipe()
	check(t, err)
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	return &collected{t, from, to}
}

// text is all of it.
func (c *collected) text() string {
	c.t.Helper()
	_ = c.to.Close()
	text, err := io.ReadAll(c.from)
	check(c.t, err)
	return string(text)
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
			call.Streams(from, nil, nil)
			defer call.Close()
			if !call.Ask(args, l.environ()) {
				t.Fatal("nothing was asked for")
			}
			guest := <-heard
			check(t, call.Narrow())
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

// TestItTakesNoLonger: input that never ends, and that is always taken, is passed
// on by the whole program in the end.
func TestItTakesNoLonger(t *testing.T) {
	sink, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0") // which never has enough
	check(t, err)
	defer sink.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", sink.LocalAddr().String())
	check(t, err)
	wire, err := conn.(*net.UDPConn).File()
	check(t, errors.Join(err, conn.Close()))
	defer wire.Close()
	endless, err := os.Open("/dev/zero")
	check(t, err)
	defer endless.Close()
	call := &headstart.Call{}
	call.Streams(endless, nil, nil)
	call.Follow(wire)
	over := make(chan bool)
	began := time.Now()
	go func() {
		_, ended := call.Hear()
		over <- ended
	}()
	select {
	case ended := <-over:
		if ended || time.Since(began) < headstart.Patience {
			t.Errorf("over %v, after %v", ended, time.Since(began))
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on and on")
	}
}
