package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

const (
	// agents work at once when the node is lost.
	agents = 50
	// lostNode is the one that is killed.
	lostNode = "node2"
)

// TestNodeLost: one gateway, agents on two nodes, and one node is killed while all of them
// work. The runs on it end as interrupted with the reason, the others with their answer, and
// nothing of either is left in the cluster.
func TestNodeLost(t *testing.T) {
	c := clustertest.Alone(t, 2)
	release := make(chan struct{})
	model, err := fakellm.Listen(t.Context(), "tcp", "127.0.0.1:0", fakellm.Script{{Text: "It is 42.", Hold: release, HoldAfter: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	g := startGateway(t, c, model)
	runs := g.startRuns(t)
	g.awaitAsked(t, model, runs)
	nodes := g.nodes(t, c)
	c.KillNode(t, lostNode)
	killed := time.Now()
	lost := g.awaitInterrupted(t, runs, nodes)
	t.Logf("%d runs were interrupted, the last %.1f s after the node was killed", lost, time.Since(killed).Seconds())
	close(release)
	g.awaitEnds(t, runs, nodes)
	t.Logf("all runs were over %.1f s after the node was killed", time.Since(killed).Seconds())
	c.PutOutOfService(t, lostNode)
	g.nothingLeft(t, c)
}

// gateway is one that runs as a process, and a client of it.
type gateway struct {
	*client.Client
	namespace string
	cmd       *exec.Cmd
}

// startGateway starts the gateway of an installation of its own.
func startGateway(t *testing.T, c *clustertest.Cluster, model *fakellm.Server) *gateway {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g := &gateway{namespace: c.Namespace(t, "atoll-lost")}
	config := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(config, g.config(t, c, model), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := buildtest.Programs(t.Context(), dir, "atoll-kube"); err != nil {
		t.Fatal(err)
	}
	g.open(t, dir, config)
	return g
}

// open starts the process of the gateway, and returns when it is ready.
func (g *gateway) open(t *testing.T, dir, config string) {
	t.Helper()
	socket := g.process(t, dir, config)
	var err error
	if g.Client, err = client.New(client.Options{Socket: socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if _, err = g.Ready(t.Context()); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the gateway is not ready: %v", err)
		}
	}
}

// process starts the gateway, which ends with the test, and returns the path of its socket.
func (g *gateway) process(t *testing.T, dir, config string) string {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	cmd := exec.Command(filepath.Join(dir, "atoll-kube"), "gateway", "--private", "--idle", "1h", "--grace", "1s", "--config", config)
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+state, "FAKE_KEY=key-1234567890")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.cmd = cmd
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the gateway's log: %s", text[max(0, len(text)-100_000):])
		}
		_ = log.Close()
	})
	return filepath.Join(state, "gateway.sock")
}

// asks is the program of the agents, which asks the model as clients of OpenAI do.
const asks = `curl -fsS --no-buffer {base-url}/v1/chat/completions -H 'Content-Type: application/json' \
 -d '{"model": "{model}", "stream": true, "messages": [{"role": "user", "content": "{task}"}]}' >answer && grep -q DONE answer && echo finished {task}`

// config is the gateway's file.
func (g *gateway) config(t *testing.T, c *clustertest.Cluster, model *fakellm.Server) []byte {
	t.Helper()
	type o = map[string]any
	text, err := json.Marshal(o{
		"agents": o{"defaults": o{"model": "fake/m", "sandbox": o{"backend": "kubernetes", "docker": o{"image": "openclaw-sandbox:bookworm-slim", "memory": "128m"}}}},
		"llm": o{"providers": o{"fake": o{"kind": "openai", "url": "http://" + model.Addr().String(), "keys": []any{o{"env": "FAKE_KEY"}}, "models": []any{"m"}}},
			"prices": o{"m": o{"input": 1, "output": 2}}},
		"kubernetes": keysOf(c, g.namespace),
		"runs": o{"concurrency": agents, "variants": o{
			"asks":   o{"argv": []any{"/bin/sh", "-c", asks}, "read": "text", "memory": "128m"},
			"sleeps": o{"argv": []any{"/bin/sh", "-c", "echo begun >&2; sleep 40; echo finished {task}"}, "read": "text", "memory": "128m"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// startRuns starts a run of each agent, and returns their ids.
func (g *gateway) startRuns(t *testing.T) (ids []string) {
	t.Helper()
	for n := range agents {
		made, err := g.Start(t.Context(), &api.RunRequest{GraphID: "asks", Message: fmt.Sprintf("task %d", n)}, fmt.Sprintf("key-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.ID)
	}
	return ids
}

// awaitAsked waits until every agent has asked the model, which holds its answers back.
func (g *gateway) awaitAsked(t *testing.T, model *fakellm.Server, runs []string) {
	t.Helper()
	begin := time.Now()
	for deadline := begin.Add(5 * time.Minute); len(model.Requests()) < len(runs); time.Sleep(2 * time.Second) {
		for _, id := range runs {
			r, err := g.Run(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if r.Error != nil {
				t.Fatalf("%+v: %+v", r, r.Error)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d agents have asked the model", len(model.Requests()), len(runs))
		}
	}
	t.Logf("%d agents were at work after %.1f s", len(runs), time.Since(begin).Seconds())
}

// nodes returns on which node the sandboxes are, by their names.
func (g *gateway) nodes(t *testing.T, c *clustertest.Cluster) map[string]string {
	t.Helper()
	var found struct {
		Items []struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct{ NodeName string }
		}
	}
	if err := json.Unmarshal([]byte(c.Kubectl(t, "", "-n", g.namespace, "get", "pods", "-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	nodes, lost := map[string]string{}, 0
	for _, pod := range found.Items {
		nodes[pod.Metadata.Annotations["atoll.dev/name"]] = pod.Spec.NodeName
		if pod.Spec.NodeName == lostNode {
			lost++
		}
	}
	if len(nodes) != agents || lost < agents/4 || lost > agents*3/4 {
		t.Fatalf("%d pods, %d on %s", len(nodes), lost, lostNode)
	}
	return nodes
}

// awaitInterrupted waits until the runs on the lost node have their end, and returns how many
// they are.
func (g *gateway) awaitInterrupted(t *testing.T, runs []string, nodes map[string]string) (lost int) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for _, id := range runs {
		for {
			r, err := g.Run(t.Context(), id)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%+v, %v", r, err)
			}
			if nodes[r.Sandbox] != lostNode {
				break
			}
			if r.Error != nil {
				lost++
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	return lost
}

// awaitEnds waits until all runs are over: interrupted by the loss of their node, or with an
// answer.
func (g *gateway) awaitEnds(t *testing.T, runs []string, nodes map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, id := range runs {
		all.Go(func() {
			r, err := g.Events(ctx, id, 0, func(api.Event) error { return nil })
			if err != nil || r.Step != "done" {
				t.Errorf("%+v, %v", r, err)
				return
			}
			interrupted := r.Error != nil && r.Error.Code == "interrupted" && strings.Contains(r.Error.Message, "node "+lostNode+" is not ready")
			answered := r.Error == nil && strings.HasPrefix(r.Text, "finished task ")
			if onLost := nodes[r.Sandbox] == lostNode; onLost && !interrupted || !onLost && !answered {
				t.Errorf("on %s: %q, %+v", nodes[r.Sandbox], r.Text, r.Error)
			}
		})
	}
	all.Wait()
}

// nothingLeft waits until neither the cluster nor the gateway has anything of the runs: the
// cluster removes pods of a node only after it knows that the node is off.
func (g *gateway) nothingLeft(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	if leases := c.Kubectl(t, "", "-n", g.namespace, "get", "leases", "-o", "name"); leases != "" {
		t.Errorf("left: %s", leases)
	}
	rows, err := g.Sandboxes(t.Context(), api.SandboxQuery{})
	if err != nil || len(rows.Sandboxes) > 0 {
		t.Errorf("the gateway lists %+v, %v", rows, err)
	}
	// A kubelet to which the API server was away reads its pods again up to 90 s later.
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		left := c.Kubectl(t, "", "-n", g.namespace, "get", "pods,leases", "-o", "name")
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %s", left)
		}
	}
}
