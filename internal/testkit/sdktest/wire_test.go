package sdktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// The wire of a sandbox breaks in the middle of a stream. The program inside asks
// its SDK again, as programs do, and is given the answer that was paid for.
func TestSDKsAskAgainAfterABrokenWire(t *testing.T) {
	for _, backend := range []string{"linux", "docker"} {
		for _, program := range []string{"openai.mjs", "anthropic.mjs"} {
			t.Run(backend+" "+program, func(t *testing.T) { askAgain(t, backend, program) })
		}
	}
}

func askAgain(t *testing.T, backend, program string) {
	hold := make(chan struct{})
	turn := fakellm.Say("one two three")
	turn.Hold, turn.HoldAfter, turn.Usage = hold, 4, fakellm.Usage{Prompt: 5, Completion: 3}
	d := newDesk(t, fixtureOptions{
		backend: backend, binds: []string{installed(t) + "/node_modules:/node_modules:ro"},
		models: map[string]litellmtest.Model{"held": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{turn}}},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(hold)
		d.begun()
		d.breakWires()
	}()
	g := d.grant("wire-1", 0, "held")
	got := d.checks(g, program, "again")
	<-done
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(object{"failed": true, "text": "one two three"}, got["again"].Result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := got["again"].Requests; n < 2 { // more while there is no wire: the SDK tries again by itself
		t.Errorf("the SDK made %d requests", n)
	}
	if n := len(d.upstream.Requests()); n != 1 {
		t.Errorf("LiteLLM was asked %d times", n)
	}
	if r := d.receipt("wire-1"); r.Calls != 1 || r.Tokens.Output != 3 {
		t.Errorf("receipt %+v", r)
	}
}

// begun waits until the program inside says that it has read something.
func (d *fixture) begun() {
	path := filepath.Join(d.in.Plan.Layout.WorkspaceDir, "begun")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	d.Error("the program inside never read anything")
}

// breakWires breaks every connection that this process has to a guest.
func (d *fixture) breakWires() {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		d.Error(err)
	}
	broken := 0
	for _, entry := range fds {
		fd := 0
		for _, digit := range entry.Name() {
			fd = fd*10 + int(digit-'0')
		}
		peer, err := unix.Getpeername(fd)
		if err != nil {
			continue
		}
		if at, ok := peer.(*unix.SockaddrUnix); ok && strings.HasSuffix(at.Name, "guest.sock") && unix.Shutdown(fd, unix.SHUT_RDWR) == nil {
			broken++
		}
	}
	if broken == 0 {
		d.Error("there was no wire to break")
	}
}
