package clustertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// disturbing keeps tests that stop programs of the cluster apart from those that use it, in
// this process and in others.
var disturbing struct {
	mu   sync.Mutex
	lock *os.File // nil while no test of this process holds it
	uses int
}

// hold locks the cluster until the test ends.
func (c *Cluster) hold(tb testing.TB, how int) {
	tb.Helper()
	d := &disturbing
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uses == 0 {
		file, err := os.OpenFile(filepath.Join(c.dir, "tests.lock"), os.O_CREATE|os.O_RDWR, 0o666)
		if err == nil {
			err = flock(file, how)
		}
		if err != nil {
			tb.Fatal(err)
		}
		d.lock = file
	}
	d.uses++
	tb.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.uses--; d.uses == 0 {
			_ = d.lock.Close()
		}
	})
}

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Alone returns the cluster with so many nodes or more for a test that stops parts of it: no
// other test uses it meanwhile. It is left out where the cluster has fewer nodes.
func Alone(tb testing.TB, nodes int) *Cluster {
	tb.Helper()
	c := &Cluster{dir: filepath.Dir(need.Cluster(tb))}
	need.Root(tb, "it stops and starts programs of the cluster")
	c.hold(tb, syscall.LOCK_EX)
	if c.nodes(tb) < nodes {
		tb.Skipf("this test needs a cluster with %d nodes: run make test-cluster", nodes)
	}
	shared := Shared(tb)
	tb.Cleanup(func() { shared.Start(tb, shared.stopped...) })
	return shared
}

// nodes returns how many nodes the cluster has.
func (c *Cluster) nodes(tb testing.TB) int {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "nodes"))
	if err != nil {
		tb.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// Stop asks programs of the cluster to end, and waits until they have: etcd, apiserver,
// controllers, scheduler, containerdN, kubeletN.
func (c *Cluster) Stop(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, program := range programs {
		c.stopped = append(c.stopped, program)
		c.script(tb, "stop", program)
	}
}

// Kill ends a program of the cluster at once.
func (c *Cluster) Kill(tb testing.TB, program string) {
	tb.Helper()
	c.stopped = append(c.stopped, program)
	text, err := os.ReadFile(filepath.Join(c.dir, program+".pid"))
	if err != nil {
		tb.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		tb.Fatal(err)
	}
	for syscall.Kill(pid, 0) == nil && running(pid) {
		time.Sleep(10 * time.Millisecond)
	}
}

// running reports whether a process has not ended, with a parent that does not wait for it.
// While other threads of it end, its ports are in use still.
func running(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, _ := os.ReadFile(dir + "/stat")
	threads, _ := os.ReadDir(dir + "/task")
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && (rest[0] != 'Z' || len(threads) > 1)
}

// Start starts programs again, and waits for the API server if it is one of them.
func (c *Cluster) Start(tb testing.TB, programs ...string) {
	tb.Helper()
	for _, program := range programs {
		c.script(tb, "start", program)
	}
	if slices.Contains(programs, "apiserver") || slices.Contains(programs, "etcd") {
		c.awaitReady(tb)
	}
}

func (c *Cluster) awaitReady(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(askTimeout); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.Try(context.WithoutCancel(tb.Context()), "", "get", "--raw", "/readyz")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("the API server does not answer: %v: %s", err, out)
		}
	}
}

// Deny lets nothing from the address of a pod through until the test ends, as a network
// plug-in that enforces a NetworkPolicy does.
func (c *Cluster) Deny(tb testing.TB, address string) {
	tb.Helper()
	c.script(tb, "deny", address)
	tb.Cleanup(func() { c.script(tb, "allow", address) })
}

// script calls scripts/test-cluster.sh.
func (c *Cluster) script(tb testing.TB, args ...string) {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), filepath.Join(repository(tb), "scripts", "test-cluster.sh"), args...)
	cmd.Env = append(os.Environ(), "ATOLL_TEST_CLUSTER_DIR="+c.dir)
	cmd.WaitDelay = time.Second // what it starts holds its output
	if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		tb.Fatalf("test-cluster.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// repository is the directory above that has scripts/test-cluster.sh.
func repository(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, found := os.Stat(filepath.Join(dir, "scripts", "test-cluster.sh")); found == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// outOfService is the taint of a node that is surely off: the cluster forgets its pods.
const outOfService = "node.kubernetes.io/out-of-service"

// KillNode ends a node, named node1 or node2, and all that runs on it, as if its power was
// cut. It is started again when the test ends.
func (c *Cluster) KillNode(tb testing.TB, node string) {
	tb.Helper()
	number := strings.TrimPrefix(node, "node")
	c.script(tb, "kill-node", number)
	tb.Cleanup(func() {
		c.Start(tb, "containerd"+number, "kubelet"+number)
		_, _ = c.Try(context.WithoutCancel(tb.Context()), "", "taint", "node", node, outOfService+"-")
		c.AwaitNode(tb, node, "True")
	})
}

// PutOutOfService says that a node which was killed will not come back.
func (c *Cluster) PutOutOfService(tb testing.TB, node string) {
	tb.Helper()
	c.Kubectl(tb, "", "taint", "node", node, outOfService+"=nodeshutdown:NoExecute")
}

// AwaitNode waits until the cluster calls a node ready (True), or not (Unknown).
func (c *Cluster) AwaitNode(tb testing.TB, node, ready string) {
	tb.Helper()
	for deadline := time.Now().Add(askTimeout); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.Try(context.WithoutCancel(tb.Context()), "", "get", "node", node, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out == ready {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("node %s is not %s: %v: %s", node, ready, err, out)
		}
	}
}
