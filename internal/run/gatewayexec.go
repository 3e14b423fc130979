package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// KeyIssuer gives a run at a gateway the provider whose calls are billed to it.
type KeyIssuer interface {
	// Lease gives a run a provider of the gateway's configuration, whose calls
	// are the run's until it is released. It waits for one that is free.
	Lease(ctx context.Context, terms *grant.Terms) (provider string, err error)
	// Release takes it back; ended is false if the run may still be calling.
	Release(ctx context.Context, run string, ended bool) error
	// Open returns the provider whose callers name the run in headers; "" if there
	// is none.
	Open(ctx context.Context) (provider string, err error)
	// Restarted frees the slots of all earlier runs: the gateway has restarted.
	Restarted(ctx context.Context) error
}

// Branches are where the agents of a gateway commit.
type Branches interface {
	// Prepare puts a job's branch in front of them and returns the directory, as
	// the gateway sees it. Taking the commits is the matter of a Finisher.
	Prepare(ctx context.Context, j *Job) (dir string, err error)
}

// GatewayOptions say which gateway there is.
type GatewayOptions struct {
	// Client returns the one client of the gateway, which is made when the first
	// run wants it.
	Client func(context.Context) (*protocol.Client, error)
	Keys   KeyIssuer
	// Branches is nil if nothing is known of the gateway's files.
	Branches Branches
}

// gatewayExec is an OpenClaw gateway as an Executor.
type gatewayExec struct {
	GatewayOptions

	mu     sync.Mutex
	probed *protocol.Hello // of the gateway that was asked last
	takes  bool            // it takes headers of a session
}

// OpenClawGateway is the real OpenClaw as a service that many runs share.
func OpenClawGateway(o GatewayOptions) Variant {
	return Variant{
		ID: "sandbox:openclaw", Name: "OpenClaw", Description: "The OpenClaw agent of a gateway that many runs share",
		Timeout: 600 * time.Second, Margin: 60 * time.Second, Memory: 1024 << 20, Remote: &gatewayExec{GatewayOptions: o},
	}
}

// Bounds of what is asked of a gateway besides the work itself.
const (
	gatewayPatience = 60 * time.Second // for a connection
	abortPatience   = 20 * time.Second // for the end of a run that was aborted
	maxHistory      = 1 << 20          // of what was said before, in bytes
)

// Check refuses what a service that is shared cannot give.
func (g *gatewayExec) Check(j *Job) error {
	if j.Branch != "" && g.Branches == nil {
		return fail("not_supported", "commits are taken out of the gateway's container, and none is named: set relay.container, or use runs.openclaw.mode \"sandbox\"")
	}
	return nil
}

// Execute lets the gateway's agent do a job in a session of its own.
func (g *gatewayExec) Execute(ctx context.Context, j *Job, terms *grant.Terms, tell func(Event)) (*envelope.Envelope, error) {
	client, hello, err := g.connect(ctx)
	if err != nil {
		return nil, err
	}
	v := &gatewayRun{exec: g, client: client, hello: hello, job: j, key: SessionKey(j.Account, j.ID), onEvent: tell}
	if j.Branch != "" {
		if v.dir, err = g.Branches.Prepare(ctx, j); err != nil {
			return nil, failureOf(err, "relay_failed")
		}
	}
	v.stream = client.Stream(v.key)
	defer v.stream.Close()
	e, err := v.work(ctx, terms)
	if left := v.release(ctx); left != nil && err == nil {
		err = left
	}
	return e, err
}

func (g *gatewayExec) connect(ctx context.Context) (*protocol.Client, *protocol.Hello, error) {
	client, err := g.Client(ctx)
	if err != nil {
		return nil, nil, fail("gateway_unreachable", "%v", err)
	}
	connecting, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	hello, err := client.Hello(connecting)
	if err != nil {
		return nil, nil, gatewayFailure(err)
	}
	return client, hello, nil
}

// Abandon ends what is left of a run that another process began.
func (g *gatewayExec) Abandon(ctx context.Context, j *Job) error {
	ctx, cancel := context.WithTimeout(ctx, abortPatience)
	defer cancel()
	client, hello, err := g.connect(ctx)
	if err != nil {
		return errors.Join(err, g.Keys.Release(context.WithoutCancel(ctx), j.ID, false))
	}
	v := &gatewayRun{exec: g, client: client, hello: hello, job: j, key: SessionKey(j.Account, j.ID), started: true}
	v.stop(ctx)
	return v.release(ctx)
}

// gatewayFailure maps a gateway's refusal to the failure of a run.
func gatewayFailure(err error) error {
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	refusal, ok := errors.AsType[*protocol.Refusal](err)
	switch {
	case errors.Is(err, protocol.ErrRestarted):
		return fail("gateway_restarted", "%v", protocol.ErrRestarted)
	case ok && refusal.Reason.Code == protocol.CodeNotPaired:
		return fail("gateway_refused", "%v: approve the device with `openclaw devices approve`, once", err)
	case ok:
		return fail("gateway_refused", "%v", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, protocol.ErrLost), errors.Is(err, protocol.ErrClosed):
		return fail("gateway_unreachable", "%v", err)
	}
	return err
}

// takesHeaders asks a gateway once whether it takes headers of a session: the
// field is one that the stock program does not know.
func (g *gatewayExec) takesHeaders(ctx context.Context, client *protocol.Client, hello *protocol.Hello, key string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probed != nil && g.probed.SameBoot(hello) {
		return g.takes, nil
	}
	err := client.Call(ctx, "sessions.patch", map[string]any{"key": key, "outboundHeaders": map[string]string{}}, nil)
	refused, ok := errors.AsType[*protocol.Error](err)
	if err != nil && (!ok || !refusesHeaders(refused)) {
		return false, err
	}
	g.probed, g.takes = hello, err == nil
	return g.takes, nil
}

// earlierMessages is what was said before the task, for the agent's instructions.
func earlierMessages(j *Job) (string, error) {
	lines, err := history(j)
	if err != nil || len(lines) == 0 {
		return "", err
	}
	if len(lines) > maxHistory {
		return "", fail("prompt_too_large", "what was said before has %d bytes; a gateway is given at most %d", len(lines), maxHistory)
	}
	return "What was said before this task, a message a line:\n" + strings.TrimSpace(string(lines)), nil
}

// instructions are for an agent at a gateway: where its work is, and what was said
// before the task.
func (v *gatewayRun) instructions() (string, error) {
	said, err := earlierMessages(v.job)
	if v.dir == "" || err != nil {
		return said, err
	}
	where := fmt.Sprintf("The project is in %s, a worktree of git on the branch of this task. Work there and nowhere else, and commit what is to be kept. "+
		"Commits are taken from there and pushed when you have ended; there is no credential here, and nothing to push to.", v.dir)
	return strings.TrimSpace(where + "\n\n" + said), nil
}

func seconds(d time.Duration) int { return max(int(d/time.Second), 1) }

func quote(s string) string { return fmt.Sprintf("%q", s) }
