package clustertest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Listen listens on a port of the loopback interface of the nodes, which take registries
// there without TLS.
func (c *Cluster) Listen(tb testing.TB) net.Listener {
	tb.Helper()
	need.Root(tb, "it listens in the network namespace of the cluster")
	pid, err := os.ReadFile(filepath.Join(c.dir, "containerd1.pid"))
	if err != nil {
		tb.Fatal(err)
	}
	type result struct {
		listener net.Listener
		err      error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		l, err := listenIn(tb.Context(), "/proc/"+strings.TrimSpace(string(pid))+"/ns/net")
		made <- result{l, err}
	}()
	got := <-made
	if got.err != nil {
		tb.Fatal(got.err)
	}
	tb.Cleanup(func() { _ = got.listener.Close() })
	return got.listener
}

func listenIn(ctx context.Context, namespace string) (net.Listener, error) {
	fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
}
