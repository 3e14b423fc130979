// Package host runs agents in this process: their tools work in a sandbox, and the
// agent itself, its transcript and its calls of models stay on the host.
package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/prompt"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/config"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Host runs agents of an installation.
type Host struct {
	*provide.Installation
	models  *service.Service
	commits *deliver.Deliverer
	egress  *egress.Service
	// browsers are those beside the sandboxes of sessions.
	browsers *browsers.Service

	backgrounds backgrounds
}

// New returns the agents of an installation.
func New(models *service.Service, relay *deliver.Deliverer, names *egress.Service, b *browsers.Service) *Host {
	h := &Host{Installation: models.Installation, models: models, commits: relay, egress: names, browsers: b}
	h.backgrounds.ctx, h.backgrounds.stop = context.WithCancel(context.Background())
	return h
}

// Options say which agent works, and within what.
type Options struct {
	Who       provide.Subject
	Below     string // directory below the workspace that tools begin in; "" is the workspace
	HostTools bool
	Model     string // provider/id; "" is the agent's own
	SessionID string // which transcript; "" is the session's own
	Run       string // id in records and bills; "" is a new one
	Budget    grant.Budget
	Limits    agent.Limits
	Watch     func(agent.Event)
	// BeforeKeys, if set, is called when the sandbox is there and before keys are
	// read: what follows needs no further sandbox. Inside one there are no keys.
	BeforeKeys func() error
	// History is what was said before, for a transcript that begins here.
	History []chat.Message
	Branch  string // key of the branch that its commits are for; "" if none are wanted
	// Checkout is the directory whose git checkout the branch is of, where the
	// configuration names no repository.
	Checkout string
	System   string            // more instructions
	Headers  map[string]string // that go with its model calls, see grant.Headers
	// Thinking is how much models think; Trace is the trace that it all belongs to.
	Thinking chat.Level
	Trace    string
	// KnownAs is the id of the run as who asked knows it, if that is not Run.
	KnownAs string
	Models  *service.Proxy // the proxy to ask through; nil opens one for this agent alone
	Demo    bool           // the scripted model answers
	// Attachments are put into the workspace before the agent begins.
	Attachments Attachments
}

// Worker is an agent with everything it works with. Close it.
type Worker struct {
	agent.Agent
	Run     string
	Session string // id of the transcript
	Plan    *plan.Plan
	Box     *Toolbox
	Notices []string
	host    *Host
	account string
	key     string // of the session
	knownAs string
	settle  func() error // ends its use of models
	ledger  *usage.Ledger
	branch  *agentBranch // nil if no commits are wanted
	// attached names the files that came with the task, a line each.
	attached string
	undo     []func() error // what was opened, in that order
}

// Close gives everything back, the last first.
func (w *Worker) Close() error {
	var problems []error
	for _, undo := range slices.Backward(w.undo) {
		problems = append(problems, undo())
	}
	w.undo = nil
	return errors.Join(problems...)
}

// Spent ends the agent's use of models and returns what all of it did cost: what
// an answer costs is written down only after its last byte.
func (w *Worker) Spent(ctx context.Context) (usage.Charge, error) {
	if err := w.endModels(); err != nil {
		return usage.Charge{}, err
	}
	return w.SpentSoFar(ctx)
}

// SpentSoFar may lack an answer that has just come.
func (w *Worker) SpentSoFar(ctx context.Context) (usage.Charge, error) {
	return w.ledger.Spent(ctx, usage.ScopeRun, w.Run)
}

func (w *Worker) endModels() error {
	settle := w.settle
	if w.settle = nil; settle == nil {
		return nil
	}
	return settle()
}

// NewWorker makes an agent ready: its sandbox first, so that nothing is asked of a
// model before the tools are there.
func (h *Host) NewWorker(ctx context.Context, o Options) (*Worker, error) {
	w := &Worker{Run: o.Run, host: h, account: o.Who.Account, key: o.Who.SessionKey, knownAs: o.KnownAs}
	if w.Run == "" {
		w.Run = "run-" + strings.ToLower(rand.Text())
	}
	if err := w.prepare(ctx, h, &o); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context, h *Host, o *Options) (err error) {
	o.Who = inPlace(o.Who)
	if err := h.canAsk(o); err != nil {
		return err
	}
	if err := w.awaitBranch(ctx, o); err != nil {
		return err
	}
	if w.Box, err = h.Tools(ctx, o.Who, o.HostTools); err != nil {
		return err
	}
	w.undo = append(w.undo, func() error { w.Box.Release(); return nil })
	w.Box.keepBackground()
	w.Plan, w.Notices = w.Box.Plan, w.Box.Notices
	w.Box.Workdir = path.Join(w.Box.Workdir, o.Below)
	w.stayInPlace()
	if err := w.stage(ctx, o); err != nil {
		return err
	}
	w.Tools = agent.Toolset{Set: w.Box.Set}
	w.Limits, w.Watch, w.Thinking = o.Limits, o.Watch, o.Thinking
	if err := w.prepareBranch(ctx); err != nil {
		return err
	}
	if err := w.openTranscript(h, o); err != nil {
		return err
	}
	if err := w.chooseModels(ctx, h, o); err != nil {
		return err
	}
	w.instruct(h)
	if o.System != "" {
		w.System += "\n\n" + o.System
	}
	return nil
}

// TranscriptLock is the name of the lock of a transcript.
func TranscriptLock(path string) string { return "transcript " + path }

// openTranscript opens the conversation, for this process alone.
func (w *Worker) openTranscript(h *Host, o *Options) error {
	kept := h.sessions(w.Plan, o.Who.Account)
	kept.Own = cmp.Or(o.SessionID, kept.Own)
	w.Session, w.Box.Sessions = kept.Own, kept
	path, err := kept.File(w.Session)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kept.Dir, 0o700); err != nil {
		return err
	}
	lock, err := h.Locks.TryHold(TranscriptLock(path))
	if errors.Is(err, filelock.ErrHeld) {
		return errhint.With(fmt.Errorf("session %s is in use by another process", w.Session), "wait for it, or choose another with --session-id")
	}
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() error { lock.Release(); return nil })
	if w.Transcript, err = agent.OpenTranscript(path, w.Session); err != nil {
		return err
	}
	w.undo = append(w.undo, w.Transcript.Close)
	return w.recall(o.History)
}

// recall begins a transcript with what was said before.
func (w *Worker) recall(history []chat.Message) error {
	if len(w.Transcript.Messages()) > 0 {
		return nil
	}
	for _, m := range history {
		if err := w.Transcript.Add(m); err != nil {
			return err
		}
	}
	return nil
}

// instruct writes the system prompt. Behaviour files come from the agent's
// workspace on the host, never from the copy that the sandbox writes to.
func (w *Worker) instruct(h *Host) {
	p := w.Plan
	files, problems := prompt.Files(p.Agent.Workspace)
	for _, problem := range problems {
		w.Notices = append(w.Notices, problem.Error())
	}
	var skills []prompt.Skill
	for _, s := range workspace.Skills(w.seen(), h.SkillOptions(p)) {
		skills = append(skills, prompt.Skill(s))
	}
	w.System = prompt.Compose(w.facts(), files, w.seen().Access == config.AccessRW, skills)
}

// seen is the layout that the agent's tools see: on the host that is its
// workspace itself.
func (w *Worker) seen() workspace.Layout {
	l := w.Plan.Layout
	if !w.Plan.Sandboxed {
		l.Access, l.AgentDir = config.AccessRW, w.Plan.AgentDir()
	}
	return l
}

func (w *Worker) facts() *prompt.Facts {
	p := w.Plan
	f := &prompt.Facts{Agent: p.Agent.ID, Workdir: w.Box.Workdir}
	for _, function := range w.Tools.Functions() {
		f.Tools = append(f.Tools, function.Name)
	}
	if inside() {
		f.Sandbox, f.Runtime, f.Image, f.Network = "of this task", "yours alone", "as you find it", "none"
		return f
	}
	if !p.Sandboxed || w.Box.Isolated.Host {
		return f
	}
	s := p.Spec
	f.Sandbox, f.Runtime, f.Image, f.Network = s.Name, s.Backend, s.Image, s.Network
	f.ReadOnly = p.Layout.Access == config.AccessRO
	if f.ReadOnly {
		f.AgentDir = policy.AgentTarget
	}
	f.Overlay = p.Layout.Access == config.AccessOverlay
	f.Branch = w.branchName()
	f.NetworkTools, f.NetworkCommands = p.Agent.Sandbox.NetworkAllow, p.Agent.Sandbox.NetworkExecAllow
	f.Limits = w.BoxLimits()
	return f
}

// BoxLimits is what the agent's sandbox may use at most, in words; "" if there
// are no limits.
func (w *Worker) BoxLimits() string {
	return limitsInWords(w.Plan.Spec.Limits.Memory, w.Plan.Spec.Limits.Pids)
}

func limitsInWords(memory, pids int64) string {
	var parts []string
	if memory > 0 {
		parts = append(parts, fmt.Sprintf("%d MB of memory", memory>>20))
	}
	if pids > 0 {
		parts = append(parts, fmt.Sprintf("%d processes", pids))
	}
	return strings.Join(parts, ", ")
}

// canAsk refuses an agent that could ask no model, before anything is made for it.
func (h *Host) canAsk(o *Options) error {
	if o.Demo || o.Models != nil {
		return nil
	}
	p, err := h.Plan(o.Who)
	if err != nil {
		return err
	}
	return h.models.CheckModel(p.Agent, o.Model)
}
