package kube

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// trialTimeout bounds the trial beyond the time that a pod may take to run.
	trialTimeout = time.Minute
	// extraProcesses is how many processes beyond the limit a trial starts.
	extraProcesses = 16
	// maxTrialProcesses is the highest limit that is tried: each process takes memory.
	maxTrialProcesses = 2048
)

// trial makes a pod of a sandbox, without the directories, and removes it: only a node
// can tell whether it has the images, the profile of system calls and a limit of processes.
// With agent-sandbox the pod comes by a claim: only the claim shows whether its controller runs.
func (r *Runtime) trial(ctx context.Context, spec *sandbox.Spec) []sandbox.Finding {
	ctx, cancel := context.WithTimeout(ctx, r.startTimeout()+trialTimeout)
	defer cancel()
	tried := *spec
	tried.Name, tried.Mounts, tried.Workdir, tried.SetupCommand = "doctor-"+strings.ToLower(rand.Text()), nil, "/", ""
	tried.AgentID = tried.Name // the name of the pool contains it, so that no other sandbox takes its pod
	endPool, err := r.trialPool(ctx, &tried)
	if err != nil {
		return []sandbox.Finding{notFine("provider", err)}
	}
	found, err := r.tryPod(ctx, &tried)
	if err = errors.Join(err, endPool(ctx)); err != nil {
		found = append(found, notFine("pod", err))
	}
	return found
}

// tryPod makes the sandbox of a trial, looks at it, and removes it.
func (r *Runtime) tryPod(ctx context.Context, spec *sandbox.Spec) ([]sandbox.Finding, error) {
	began := time.Now()
	made, err := r.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	found, err := r.examineSandbox(ctx, made.(*Instance), began)
	return found, errors.Join(err, made.(*Instance).removeNow(ctx))
}

// examineSandbox starts the sandbox of a trial and looks at it.
func (r *Runtime) examineSandbox(ctx context.Context, i *Instance, began time.Time) ([]sandbox.Finding, error) {
	if err := i.Start(ctx); err != nil {
		return nil, err
	}
	m := machine.New(i.Dial, &machine.Options{Log: r.logger})
	defer m.Close()
	if _, err := m.Info(ctx); err != nil {
		return nil, err
	}
	how := ""
	if i.current().Annotations[noteClaim] != "" {
		how = ", by a SandboxClaim"
	}
	found := []sandbox.Finding{fine("pod", "one ran on %s after %.1f s%s", i.currentPod().Spec.NodeName, time.Since(began).Seconds(), how)}
	ring, err := r.examineNetwork(ctx, i, m)
	if err != nil {
		return found, err
	}
	engine, err := i.examineEngine(ctx, m)
	if err != nil {
		return found, err
	}
	pids, err := r.examinePids(ctx, m)
	return append(append(append(found, ring...), engine...), pids...), err
}

// examineEngine says what the engine of the node decides and no pod can ask for: whether buffers
// of sockets count as memory, and how many files a process may open.
func (i *Instance) examineEngine(ctx context.Context, m *machine.Machine) ([]sandbox.Finding, error) {
	var out bytes.Buffer
	const script = "ulimit -Hn; test ! -e /sys/fs/cgroup/memory/memory.limit_in_bytes"
	res, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Stdout: &out, Timeout: trialTimeout / 2, EndTree: true})
	if err != nil {
		return nil, err
	}
	found := []sandbox.Finding{fine("open files", "%s a process, by the engine of the node; as many descriptors can be in flight between sockets", short(strings.TrimSpace(out.String())))}
	if res.ExitCode == 0 {
		return append(found, fine("socket buffers", "buffers of sockets count as memory")), nil
	}
	return append(found, sandbox.Finding{
		Name: "socket buffers", Level: sandbox.FindingWarning, Detail: "buffers of sockets do not count as memory on " + i.currentPod().Spec.NodeName + ", which has control groups of version 1",
		Remedy: "boot the nodes with systemd.unified_cgroup_hierarchy=1 to have control groups of version 2",
	}), nil
}

// examineNetwork tries from inside what keeps the sandbox from the network.
func (r *Runtime) examineNetwork(ctx context.Context, i *Instance, m *machine.Machine) ([]sandbox.Finding, error) {
	ring := i.current().Annotations[noteNetwork]
	if ring == networkCluster {
		return []sandbox.Finding{{Name: "network", Level: sandbox.FindingWarning, Detail: "sandboxes have the cluster's network", Remedy: "set docker.network to none, and name what is reached in sandbox.egress"}}, nil
	}
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	reached, err := firstReached(ctx, m, ring, probeTargets(ctx, c, i.currentPod()))
	switch {
	case err != nil:
		return nil, err
	case reached != "":
		return []sandbox.Finding{{Name: "network", Level: sandbox.FindingFailed, Detail: "a sandbox reaches " + reached, Remedy: "check kubernetes.seccompProfile on the nodes, and the NetworkPolicy of the namespace"}}, nil
	}
	return []sandbox.Finding{fine("network", "none, by %s: nothing was reached from inside", ring)}, nil
}

// examinePids tries whether a node limits the processes of a pod as kubernetes.podPidsLimit
// says that it does.
func (r *Runtime) examinePids(ctx context.Context, m *machine.Machine) ([]sandbox.Finding, error) {
	limit := r.settings.PodPidsLimit
	if limit == 0 || limit > maxTrialProcesses {
		return nil, nil
	}
	var out bytes.Buffer
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 60 & i=$((i+1)); done; echo all of them", limit+extraProcesses)
	if _, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Stdout: &out, Timeout: trialTimeout / 2, EndTree: true}); err != nil {
		return nil, err
	}
	if strings.Contains(out.String(), "all of them") {
		return []sandbox.Finding{{
			Name: "processes", Level: sandbox.FindingFailed, Detail: fmt.Sprintf("a pod started %d processes, although kubernetes.podPidsLimit is %d", limit+extraProcesses, limit),
			Remedy: fmt.Sprintf("set podPidsLimit of the kubelets to %d, or correct kubernetes.podPidsLimit", limit),
		}}, nil
	}
	return []sandbox.Finding{fine("processes", "a pod has at most %d", limit)}, nil
}
