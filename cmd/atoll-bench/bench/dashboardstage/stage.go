// Package dashboardstage measures the gateway's web pages in a real browser: what they
// load, what they cost while they are live, and how soon they show what happens; and what
// tracing costs a run.
package dashboardstage

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/gatewaychild"
)

// config has sandboxes of the machine's own programs, a provider that nothing asks, a run
// that says the time and one that ends at once.
const config = `{
  agents: { defaults: { model: "p/m", sandbox: { backend: "linux", docker: { image: "host" } } } },
  llm: { providers: { p: { url: "http://127.0.0.1:9", keys: [{ env: "NO_KEY" }], models: ["m"] } } },
  runs: { variants: {
    clock: { name: "Clock", argv: ["/bin/sh", "-c", "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo at=$(date +%s%3N) >&2; sleep 0.1; done; echo over"], read: "text" },
    short: { name: "Short", argv: ["/bin/sh", "-c", "echo done"], read: "text" },
  } },
}`

// stage is a gateway in a process of its own, on an address.
type stage struct {
	*gatewaychild.Gateway
	address string
}

// newStage starts the gateway of a program, with more of its environment.
func newStage(ctx context.Context, program string, env ...string) (*stage, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	g, err := gatewaychild.Start(ctx, program, config, append(env, "NO_KEY=none"), "--listen", address)
	if err != nil {
		return nil, err
	}
	return &stage{g, address}, nil
}

// cpu returns the CPU time of the gateway's process.
func (s *stage) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
