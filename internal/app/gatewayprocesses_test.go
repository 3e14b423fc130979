package app_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
)

// A process in the background outlives its reader and the gateway, is found again, read,
// written to, followed and ended.
func TestGatewayProcesses(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Second)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{TimeoutSeconds: 900})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.StartProcess(t.Context(), box.ID, &api.StartProcess{Command: `echo ready; while read line; do echo "got $line"; done; seq 1 100000; exit 5`, Stdin: true})
	if err != nil || !p.Running || p.PID == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	// A follower that leaves ends nothing, and neither does the end of the gateway.
	enough := errors.New("enough")
	if _, err := g.FollowProcess(t.Context(), box.ID, p.ID, client.Output{Stdout: writerFunc(func([]byte) (int, error) { return 0, enough })}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	g.signal(syscall.SIGKILL)
	_ = g.ended()
	g = s.gateway(time.Second)
	list, err := g.Processes(t.Context(), box.ID)
	if err != nil || len(list.Processes) != 1 || list.Processes[0].ID != p.ID || !list.Processes[0].Running {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := g.WriteProcess(t.Context(), box.ID, p.ID, []byte("one\n"), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process does not answer", func() bool {
		out, err := g.ProcessOutput(t.Context(), box.ID, p.ID, api.OutputQuery{})
		return err == nil && string(out.Stdout) == "ready\ngot one\n" && out.StdoutNext == int64(len(out.Stdout))
	})
	var out bytes.Buffer
	following := make(chan struct{})
	type end struct {
		result *api.ExecResult
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		first := true
		result, err := g.FollowProcess(t.Context(), box.ID, p.ID, client.Output{Stdout: writerFunc(func(b []byte) (int, error) {
			if first {
				close(following)
				first = false
			}
			return out.Write(b)
		})})
		ended <- end{result, err}
	}()
	<-following
	if err := g.WriteProcess(t.Context(), box.ID, p.ID, nil, true); err != nil {
		t.Fatal(err)
	}
	over := <-ended
	if over.err != nil || over.result.ExitCode != 5 || strings.Count(out.String(), "\n") != 100_002 || !strings.HasSuffix(out.String(), "\n100000\n") {
		t.Errorf("%+v: %d bytes", over, out.Len())
	}
	if found, err := g.Process(t.Context(), box.ID, p.ID, 0); err != nil || found.Running || found.Result.ExitCode != 5 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := g.EndProcess(t.Context(), box.ID, p.ID); err != nil {
		t.Error(err)
	}
	if _, err := g.Process(t.Context(), box.ID, p.ID, 0); !isProblem(err, "process_not_found") {
		t.Errorf("%v", err)
	}
}

// Signals and ends reach a process; what cannot be started is an error of the request.
func TestGatewayProcessSignals(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.StartProcess(t.Context(), box.ID, &api.StartProcess{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SignalProcess(t.Context(), box.ID, p.ID, api.ProcessSignal{Signal: "SIGNOTHING"}); !isProblem(err, "invalid_request") {
		t.Errorf("%v", err)
	}
	if err := g.SignalProcess(t.Context(), box.ID, p.ID, api.ProcessSignal{Signal: "SIGINT"}); err != nil {
		t.Error(err)
	}
	if over, err := g.Process(t.Context(), box.ID, p.ID, 60); err != nil || over.Running || over.Result.Signal != "SIGINT" {
		t.Errorf("%+v, %v", over, err)
	}
	again, err := g.StartProcess(t.Context(), box.ID, &api.StartProcess{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if over, err := g.EndProcess(t.Context(), box.ID, again.ID); err != nil || over.Running {
		t.Errorf("%+v, %v", over, err)
	}
	for name, bad := range map[string]*api.StartProcess{
		"nothing": {}, "both": {Argv: []string{"true"}, Command: "true"}, "no such program": {Argv: []string{"no-such-program"}},
		"a terminal without a size": {Argv: []string{"true"}, Terminal: &api.TerminalSize{}},
	} {
		if _, err := g.StartProcess(t.Context(), box.ID, bad); !isProblem(err, "invalid_request") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Processes(ctx, box.ID); err == nil {
		t.Error("no error")
	}
}
