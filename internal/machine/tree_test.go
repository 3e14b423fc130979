package machine_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// trees are shell commands that do what they can to outlive their end.
var trees = map[string]string{
	"child":                         `sleep 1000 & wait`,
	"ignores TERM":                  `trap '' TERM INT HUP; sleep 1000 & while :; do wait; sleep 0.1; done`,
	"new session":                   `setsid sleep 1000 & wait`,
	"double fork":                   `(setsid sh -c 'trap "" TERM; sleep 1000 & while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &) ; sleep 1000`,
	"orphan of orphans":             `(setsid sh -c '(setsid sh -c "(setsid sleep 1000 &)" &)' &); trap '' TERM; sleep 1000; sleep 1000`,
	"exits at TERM, leaves a child": `trap 'exit 0' TERM; setsid sh -c 'trap "" TERM; exec sleep 1000' & wait`,
	"forks when told to end":        `f() { setsid sh -c 'trap "" TERM; exec sleep 1000' & }; trap 'f; f; f' TERM; while :; do sleep 0.05; done`,
	"stopped":                       `sleep 1000 & kill -STOP $!; kill -STOP $$`,
	"lowered limits":                `setsid prlimit --locks=5:5 --rttime=7:7 sleep 1000 & setsid prlimit --locks=5:5 sleep 1000 & setsid prlimit --rttime=7:7 sleep 1000 & trap '' TERM; sleep 1000; sleep 1000`,
	"without a leader":              `python3 -c 'import threading,ctypes,time; threading.Thread(target=lambda: time.sleep(1000)).start(); ctypes.CDLL(None).pthread_exit(0)' & sleep 1000`,
}

func TestTimeoutEndsTheWholeTree(t *testing.T) {
	for name, script := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m := start(t)
			result, err := m.Exec(patience(t), &machine.Command{
				Shell: script, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: 300 * time.Millisecond, Grace: 200 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			if !result.TimedOut {
				t.Errorf("result %+v", result)
			}
			if left := alive(t, m); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestCancelEndsTheWholeTree(t *testing.T) {
	for name, script := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m := start(t)
			ctx, cancel := context.WithCancel(patience(t))
			time.AfterFunc(300*time.Millisecond, cancel)
			_, err := m.Exec(ctx, &machine.Command{Shell: script, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: 200 * time.Millisecond})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			if left := alive(t, m); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestEndIsSelective ends one of several trees that all look alike.
func TestEndIsSelective(t *testing.T) {
	_, m := start(t)
	var ids []string
	for range 5 {
		id, err := m.Start(patience(t), &machine.Command{Shell: "(setsid sleep 1000 &); sleep 1000"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	eventually(t, "ten sleeps", func() bool { return count(alive(t, m), "sleep 1000") >= 10 })
	for i, id := range []string{ids[2], ids[0], ids[4]} {
		if err := m.End(patience(t), id, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if n, want := count(alive(t, m), "sleep 1000"), 8-2*i; n != want {
			t.Errorf("%d sleeps are left, want %d", n, want)
		}
	}
}

func count(lines []string, what string) int {
	n := 0
	for _, line := range lines {
		if line == what {
			n++
		}
	}
	return n
}

// TestForgedMarks has a process of one command try to pass for another's.
func TestForgedMarks(t *testing.T) {
	_, m := start(t)
	start := func(script string) string {
		id, err := m.Start(patience(t), &machine.Command{Shell: script})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	// Each tries to take on the limits of all the others, before and after it.
	forge := `while :; do for p in /proc/[0-9]*; do
		l=$(awk '/Max file locks/ {print $5}' $p/limits); r=$(awk '/Max realtime timeout/ {print $5}' $p/limits)
		[ $l = unlimited ] || prlimit --pid $$ --locks=$l:$l; [ $r = unlimited ] || prlimit --pid $$ --rttime=$r:$r
		done 2>/dev/null; echo tried; sleep 0.05; done`
	older := start("exec sleep 2000")
	forger := start("trap '' TERM; " + forge)
	start("exec sleep 3000")
	eventually(t, "the forger has tried", func() bool {
		p, err := m.Process(patience(t), forger)
		return err == nil && p.Stdout > 20
	})
	if err := m.End(patience(t), forger, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	left := alive(t, m)
	if !slices.Contains(left, "sleep 2000") || !slices.Contains(left, "sleep 3000") {
		t.Errorf("others were ended: %q", left)
	}
	for _, line := range left {
		if strings.Contains(line, "trap") {
			t.Errorf("the forger lives: %q", line)
		}
	}
	if err := m.End(patience(t), older, time.Millisecond); err != nil {
		t.Error(err)
	}
}

// forkers keep forking, each in its way. They have the lowest priority: on a machine
// that other tests keep busy too, a guest with a hundredth of a processor would not
// end them in time, and the host would end the sandbox.
var forkers = map[string]string{
	"chain": `import os, signal
os.nice(19)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    if os.fork(): os._exit(0)
    os.setsid()
`,
	"bomb": `import os, signal
os.nice(19)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try: os.fork()
    except OSError: pass
`,
	"eight chains": `import os, signal
os.nice(19)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3): os.fork()
while True:
    try:
        if os.fork(): os._exit(0)
        os.setsid()
    except OSError: pass
`,
}

func TestForkersAreEnded(t *testing.T) {
	for name, program := range forkers {
		t.Run(name, func(t *testing.T) {
			g := machinetest.Start(t, &machinetest.Options{Pids: 200})
			m := g.Machine(t, nil)
			other, err := m.Start(patience(t), &machine.Command{Argv: []string{"sleep", "1000"}})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			result, err := m.Exec(patience(t), &machine.Command{
				Argv: []string{"python3", "-c", program}, Timeout: 500 * time.Millisecond, Grace: 100 * time.Millisecond, EndTree: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v after %v", result, time.Since(begin))
			if left := alive(t, m); len(left) != 1 || left[0] != "sleep 1000" {
				t.Errorf("left: %q", left)
			}
			if p, err := m.Process(patience(t), other); err != nil || p.Result != nil {
				t.Errorf("the other command did not survive: %+v %v", p, err)
			}
		})
	}
}
