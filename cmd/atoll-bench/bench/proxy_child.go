package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/wire"
)

// ProxyChild is the process that the benchmark measures: the whole proxy, with
// policy, budgets, ledger and audit log.
type ProxyChild struct {
	Dir      string // where its socket and its state are
	Upstream string // address of the model
	Guest    string // socket of a sandbox whose port it serves too; "" for none
}

// Serve serves until the end of its input, and answers each line of that with
// its status.
func (c *ProxyChild) Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	debug.SetGCPercent(proxy.GCPercent) // as in atoll proxy
	books, err := openBooks(ctx, filepath.Join(c.Dir, "state"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, books.close()) }()
	server, err := newBenchProxy(ctx, c.Upstream, books)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	authenticate, err := benchAuthenticate()
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(c.Dir, "atoll.sock"))
	if err != nil {
		return err
	}
	go serveBench(server, l, authenticate)
	if c.Guest != "" {
		m := machine.New(func(ctx context.Context) (net.Conn, error) { return wire.DialSocket(ctx, c.Guest) }, nil)
		defer m.Close()
		if l, err = listenInside(ctx, m); err != nil {
			return err
		}
		go serveBench(server, l, authenticate)
	}
	return tellStatus(in, out)
}

func serveBench(s *proxy.Server, l net.Listener, authenticate proxy.Authenticate) {
	_ = s.Serve(l, authenticate)
}

// listenInside listens in a sandbox as it is done for grants: the guest looks for
// the grant of each caller. Everybody is let in.
func listenInside(ctx context.Context, m *machine.Machine) (net.Listener, error) {
	return m.Listen(ctx, modelPort, &machine.PortOptions{
		WithGrant: true, MaxConns: wireStreams, Gate: func(context.Context, machine.Caller) error { return nil },
	})
}

func newBenchProxy(ctx context.Context, upstream string, b *books) (*proxy.Server, error) {
	keys, err := secret.NewPool(ctx, secret.PoolOptions{}, secret.Literal{Value: secret.New("sk-bench-0123456789abcdef")})
	if err != nil {
		return nil, err
	}
	return proxy.New(proxy.Options{
		Providers: []proxy.Provider{{Upstream: proxy.Upstream{URL: upstream}, Keys: keys}},
		Ledger:    b.ledger, Audit: b.log, MaxPerCaller: 4096,
	})
}

// benchAuthenticate returns an Authenticate that accepts every request as the same run, which has budgets.
func benchAuthenticate() (proxy.Authenticate, error) {
	caller, err := proxy.NewCaller(&grant.Terms{
		Account: "account", Agent: "main", Session: "agent:main:main", Run: "run", Graph: "bench", Models: []string{"bench"},
		Budget: grant.Budget{MicroUSD: 1e12}, Until: time.Now().Add(grant.MaxLife),
	}, []usage.Limit{{Scope: usage.ScopeDay, MicroUSD: 1e12}})
	return func(net.Conn) proxy.Admit {
		return func(*h1.Request) (*proxy.Caller, *dialect.Problem) { return caller, nil }
	}, err
}

func tellStatus(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		runtime.GC()
		debug.FreeOSMemory()
		text, err := json.Marshal(childStatus{Goroutines: runtime.NumGoroutine(), Memory: residentBytes(os.Getpid())})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", text)
	}
	return lines.Err()
}

// residentBytes is the memory of a process that is its own.
func residentBytes(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
