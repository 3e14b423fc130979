package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gate/overlays"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// Options say whose sandbox a session works in, and what it may do.
type Options struct {
	Agents *host.Host
	Models *service.Service // writes commands to the audit log
	Sync   *overlays.Service
	// Subject is whose sandbox it is, and Changes the same for Sync.
	Subject provide.Subject
	Changes api.SyncSubject
	// Propose returns egress rules for what was learned; nil if that cannot be asked.
	Propose func(context.Context) (string, error)
	// AllowDestroy lets sandbox_destroy work without asking a person.
	AllowDestroy bool
	// KeepRunning leaves the sandbox running when the session ends.
	KeepRunning bool
	// Public takes paths of the host out of everything but what comes from inside.
	Public bool
}

// Session is one client's use of a sandbox, which is made when a call first needs it.
type Session struct {
	Options
	plan     *plan.Plan
	life     context.Context // of commands, which may outlive their calls
	end      context.CancelFunc
	slots    chan struct{} // calls that work at once
	held     heldCalls
	patience time.Duration // until a command that still runs is held
	closed   sync.Once

	mu      sync.Mutex
	opening *opening
	started []string      // commands in the background
	active  int           // calls and held commands under way
	over    bool          // no more begin
	idle    chan struct{} // closed when it is over and nothing is under way
}

// opening is a toolbox that is being made, or was.
type opening struct {
	done chan struct{} // closed when the rest is set
	box  *host.Toolbox
	err  error
}

// Open plans the sandbox of a session and makes nothing yet. The session must be closed.
// Whatever the configuration says of the mode, it works in a sandbox and never on the host.
func Open(ctx context.Context, o Options) (*Session, error) {
	o.Subject.Adjust = sandboxed(o.Subject.Adjust)
	p, err := o.Agents.Plan(o.Subject)
	if err != nil {
		return nil, err
	}
	s := &Session{Options: o, plan: p, slots: make(chan struct{}, maxCalls), patience: answerWithin, idle: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// sandboxed returns an adjustment that also has every session sandboxed.
func sandboxed(adjust func(*config.Agent)) func(*config.Agent) {
	return func(agent *config.Agent) {
		if adjust != nil {
			adjust(agent)
		}
		agent.Sandbox.Mode = config.ModeAll
	}
}

// tools returns the tools of the sandbox, which is made ready if it is not. A call that
// is cancelled does not end the making: another may wait for it.
func (s *Session) tools(ctx context.Context) (*host.Toolbox, error) {
	s.mu.Lock()
	o := s.opening
	if o == nil {
		o = &opening{done: make(chan struct{})}
		s.opening = o
		go s.open(o)
	}
	s.mu.Unlock()
	select {
	case <-o.done:
		return o.box, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Session) open(o *opening) {
	defer close(o.done)
	o.box, o.err = s.Agents.Tools(s.life, s.Subject, false)
	if o.err != nil {
		s.forget(o)
	}
}

// forget has the next call make the tools anew; it reports whether they were in use.
func (s *Session) forget(o *opening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening != o {
		return false
	}
	s.opening, s.started = nil, nil
	return true
}

// drop ends the use of the sandbox: the next call makes it ready again.
func (s *Session) drop() {
	s.mu.Lock()
	o := s.opening
	s.mu.Unlock()
	if o == nil {
		return
	}
	<-o.done
	if s.forget(o) && o.box != nil {
		o.box.Release()
	}
}

// dropBox is drop for the tools that a call found to be gone.
func (s *Session) dropBox(box *host.Toolbox) {
	s.mu.Lock()
	same := s.opening != nil && s.opening.box == box
	s.mu.Unlock()
	if same {
		s.drop()
	}
}

// closePatience bounds what the end of a session waits for.
const closePatience = 15 * time.Second

// Close ends what the session's calls run, and stops the sandbox if nobody else uses it.
func (s *Session) Close() {
	s.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), closePatience)
		defer cancel()
		s.endStarted(ctx)
		s.end()
		s.wait(ctx)
		s.drop()
		if !s.KeepRunning {
			s.stopIdle(ctx)
		}
	})
}

// enter counts a call or a held command; it reports false if the session is over.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.active++
	}
	return !s.over
}

// leave is the end of what enter counted.
func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.over && s.active == 0 {
		close(s.idle)
	}
}

// wait lets no more begin, and waits for what is under way, whose commands have been ended.
func (s *Session) wait(ctx context.Context) {
	s.mu.Lock()
	s.over = true
	if s.active == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
	case <-ctx.Done():
	}
}

// endStarted ends the commands that the session left in the background.
func (s *Session) endStarted(ctx context.Context) {
	s.mu.Lock()
	o, ids := s.opening, s.started
	s.mu.Unlock()
	if o == nil || len(ids) == 0 {
		return
	}
	<-o.done
	for _, at := range []*tool.Location{o.box.Isolated, o.box.Networked} {
		for _, id := range ids {
			if at != nil {
				_ = at.Machine.End(ctx, id, endGrace) // it may be over, or in the other half
			}
		}
	}
}

// endGrace lies between the two signals that end a command.
const endGrace = time.Second

// stopIdle stops the sandbox if it runs nothing and nobody uses it.
func (s *Session) stopIdle(ctx context.Context) {
	running, err := s.Agents.Running(ctx, s.plan.Spec.Name)
	if err == nil && len(running) == 0 {
		err = s.stop(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Agents.Logger.DebugContext(ctx, "the sandbox was left running", "error", err)
	}
}

// stop stops the sandbox, or both halves.
func (s *Session) stop(ctx context.Context) error {
	names := []string{s.plan.Spec.Name}
	if s.plan.Net != nil {
		names = append(names, s.plan.Net.Name)
	}
	for _, name := range names {
		if err := s.Agents.Stop(ctx, name, false); err != nil {
			return err
		}
	}
	return nil
}
