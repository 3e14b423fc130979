package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
)

// Ensure returns the sandbox of spec, running and answering: made, started or
// found. A failure is a *ProvisionError, and what was half made is removed.
//
// The usual case costs little: with a live wire one ping, in a fresh process
// one call to the machinery. Only a change takes the name's change lock.
func (m *Manager) Ensure(ctx context.Context, spec *Spec) (*Handle, error) {
	if h, err := m.reuseLive(ctx, spec); h != nil || err != nil {
		return h, provision(spec, "reuse", err)
	}
	h, err := m.reuseRunning(ctx, spec)
	if h != nil || err != nil {
		return h, provision(spec, "open", err)
	}
	return m.change(ctx, spec)
}

// provision makes err the one typed error of a sandbox that was not provided.
func provision(spec *Spec, step string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*ProvisionError](err); ok {
		return err
	}
	return errhint.With(&ProvisionError{Name: spec.Name, Step: step, Err: err}, errhint.Of(err))
}

// reuseLive uses the wire that this process already has; nil if it has none
// that answers.
func (m *Manager) reuseLive(ctx context.Context, spec *Spec) (*Handle, error) {
	l, err := m.join(ctx, spec)
	if l == nil || err != nil {
		return nil, err
	}
	if err := ping(ctx, l.machine); err != nil {
		defer m.leave(l)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m.retire(l)
		return nil, nil
	}
	if isDetached(l.instance, spec) || unlimited(l.instance) != nil || keepClaim(ctx, l.instance, spec) != nil {
		m.leave(l)
		return nil, nil
	}
	m.touch(ctx, l)
	return m.handle(l), nil
}

func ping(ctx context.Context, mach *machine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return mach.Ping(ctx)
}

// reuseRunning looks without any lock, and reuses an unchanged running sandbox
// if it answers. Were it removed between the look and the lock, it would not
// answer: the wire checks that its peer is the process that was seen.
func (m *Manager) reuseRunning(ctx context.Context, spec *Spec) (*Handle, error) {
	inst, seen, err := m.observe(ctx, spec)
	if err != nil {
		return nil, err
	}
	if decide(seen, spec, m.Now()) != actReuse || !seen.registered {
		return nil, nil
	}
	h, err := m.enter(ctx, spec, inst, seen, nil)
	if err != nil && ctx.Err() == nil {
		m.Logger.DebugContext(ctx, "running sandbox does not answer", "sandbox", spec.Name, "error", err)
		return nil, nil
	}
	return h, err
}

// observe reads the registry and the runtime, once each.
func (m *Manager) observe(ctx context.Context, spec *Spec) (Instance, observation, error) {
	entry, err := m.Registry.Get(ctx, spec.Name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, observation{}, err
	}
	backend, name := spec.Backend, spec.Name
	if entry != nil {
		backend, name = entry.Backend, entry.RuntimeName()
	}
	rt, err := m.Runtime(ctx, backend)
	if err != nil {
		return nil, observation{}, err
	}
	inst, err := rt.Open(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil, observation{}, nil
	} else if err != nil {
		return nil, observation{}, err
	}
	// Names carry a short hash of the scope key, so a key can be chosen whose
	// name belongs to another key. The key itself decides.
	known := entry.identify(inst.Seen())
	if owner := known.Labels[LabelSessionKey]; owner != spec.ScopeKey {
		return nil, observation{}, nameTaken(spec, owner)
	}
	seen := interpret(known, entry, spec)
	if isOver(inst, entry) {
		seen.state = StateDead
	}
	seen.registered = entry != nil
	// Other mounts than those it was made with are a changed configuration, which
	// a hot sandbox refuses; only of the same ones it can have lost the sources.
	seen.detached = seen.state == StateRunning && seen.mountsHash == spec.MountsHash && isDetached(inst, spec)
	seen.unlimited = unlimited(inst)
	if seen.registered && entry.MadeAs != "" && seen.mountsHash == spec.MountsHash && !seen.unfinished {
		return inst, seen, keepClaim(ctx, inst, spec)
	}
	return inst, seen, nil
}

// A MountKeeper can tell, of a running sandbox and without asking the machinery,
// whether the checked sources of mounts are still what it has mounted: a
// directory that was removed and made again is not. Where it cannot know, it
// says yes.
type MountKeeper interface {
	Keeps(mounts []Mount) bool
}

// isDetached reports whether work in the sandbox would be lost, because the
// directories that it works in are not those of the host any more.
func isDetached(inst Instance, spec *Spec) bool {
	keeper, ok := inst.(MountKeeper)
	return ok && !keeper.Keeps(spec.Mounts)
}

// A LimitKeeper can tell which limits of a running sandbox are not in force any
// more, although they were when it started: another program changed the host's control
// groups. Nil where it cannot know.
type LimitKeeper interface {
	Unlimited() error
}

func unlimited(inst Instance) error {
	if keeper, ok := inst.(LimitKeeper); ok {
		return keeper.Unlimited()
	}
	return nil
}

// interpret combines what the machinery and the registry say.
func interpret(s Summary, entry *Entry, spec *Spec) observation {
	o := observation{exists: true, state: s.State, configHash: s.Labels[LabelConfigHash], mountsHash: s.Labels[LabelMountsHash]}
	switch {
	case entry == nil:
		// The registry was lost. Whether a set-up command had finished is not
		// written anywhere else, so such a sandbox is not trusted.
		o.unfinished = s.Labels[LabelSetup] != ""
	case entry.Backend != spec.Backend:
		o.configHash = "" // made by other machinery: not what is asked for
		fallthrough
	default:
		o.unfinished = entry.Phase != PhaseReady
		o.lastUsed = time.UnixMilli(entry.LastUsedAtMs)
	}
	return o
}

// enter takes a share of the sandbox and proves that it answers, unless it has
// just done so over the wire that the caller has.
func (m *Manager) enter(ctx context.Context, spec *Spec, inst Instance, seen observation, mach *machine.Machine) (*Handle, error) {
	held, err := m.Leases.Share(ctx, useLock(spec.Name))
	switch {
	case err != nil:
	case mach == nil:
		mach, err = m.reach(ctx, spec, inst)
	case spec.SetupCommand != "": // it answered before it was set up: does it still?
		err = m.answers(ctx, mach)
	}
	if err != nil {
		held.Release()
		if mach != nil {
			_ = mach.Close()
		}
		return nil, err
	}
	l := m.publish(&live{name: spec.Name, machine: mach, instance: inst, lease: held, users: 1,
		configHash: seen.configHash, touched: seen.lastUsed})
	m.touch(ctx, l)
	return m.handle(l), nil
}

// publish makes l the process's wire to its name, or joins the one that another
// task published in the meantime.
func (m *Manager) publish(l *live) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.live[l.name]
	if old != nil && old.users > 0 && old.configHash == l.configHash && old.instance.Seen().ID == l.instance.Seen().ID {
		m.closeMachine(l)
		old.users++
		return old
	}
	if old != nil {
		m.retireLocked(old)
	}
	m.live[l.name], m.wires[l] = l, struct{}{}
	return l
}

// change makes the sandbox usable while it holds the change lock.
func (m *Manager) change(ctx context.Context, spec *Spec) (*Handle, error) {
	lock, err := m.Leases.Hold(ctx, changeLock(spec.Name))
	if err != nil {
		return nil, provision(spec, "lock", err)
	}
	defer lock.Release()

	inst, seen, err := m.observe(ctx, spec)
	if err != nil {
		return nil, provision(spec, "open", err)
	}
	users, err := m.Leases.TryHold(useLock(spec.Name))
	if seen.inUse = errors.Is(err, filelock.ErrHeld); err != nil && !seen.inUse {
		return nil, provision(spec, "lock", err)
	}
	// Nobody can start using the name while we change it, and nobody can change
	// it after we let go of this: the change lock is still ours.
	defer users.Release()

	h, err := m.act(ctx, spec, inst, seen, users.Release)
	return h, provision(spec, "ensure", err)
}

// act carries out the decision. releaseUsers drops the exclusive use lock.
func (m *Manager) act(ctx context.Context, spec *Spec, inst Instance, seen observation, releaseUsers func()) (h *Handle, err error) {
	step := decide(seen, spec, m.Now())
	verb, begun := string(step), time.Now()
	defer func() { m.watchStart(ctx, spec, verb, begun, &err) }()
	m.Logger.DebugContext(ctx, "ensure", "sandbox", spec.Name, "action", string(step))
	var mach *machine.Machine
	var ended string // why the one before did
	switch step {
	case actRefuse:
		return nil, provision(spec, "reuse", changeRefusal(spec, seen, m.changes(ctx, spec)))
	case actRestart:
		m.Logger.WarnContext(ctx, "limits were lost, the sandbox is started again", "sandbox", spec.Name, "error", seen.unlimited)
		if err = inst.Kill(ctx); err == nil {
			err = m.start(ctx, spec, inst)
		}
	case actStart:
		err = m.start(ctx, spec, inst)
	case actResume:
		err = resume(ctx, inst)
	case actRecreate:
		ended = inst.Seen().Problem
		if err = m.remove(ctx, spec.Name, inst, saveFor(seen)); err == nil {
			inst, mach, err = m.create(ctx, spec)
		}
	case actCreate:
		if inst, mach, err = m.claimOrCreate(ctx, spec); spec.Claim.gave() || err == nil && memberOf(inst) != "" {
			verb = ActivityClaim
		}
	}
	if err != nil {
		return nil, err
	}
	created := step == actCreate || step == actRecreate
	if created { // its row says so, and when
		seen = observation{configHash: spec.ConfigHash, lastUsed: m.Now()}
	} else if err := m.adopt(ctx, spec, inst); err != nil {
		return nil, provision(spec, "register", err)
	}
	releaseUsers()
	h, err = m.enter(ctx, spec, inst, seen, mach)
	if err != nil {
		return nil, provision(spec, "wire", errhint.With(err, "replace it: "+RecreateCommand(spec)))
	}
	if h.Created = created; created {
		h.Member = memberOf(inst)
	}
	if ended != "" {
		h.Notices = append(h.Notices, madeAnew(spec, ended))
	}
	if seen.configHash != spec.ConfigHash {
		h.Notices = append(h.Notices, configChanged(spec, m.changes(ctx, spec)))
	}
	return h, nil
}

func (m *Manager) start(ctx context.Context, spec *Spec, inst Instance) error {
	if err := inst.Start(ctx); err != nil {
		return provision(spec, "start", err)
	}
	if spec.MountsHash == inst.Seen().Labels[LabelMountsHash] && isDetached(inst, spec) {
		return provision(spec, "start", errors.Join(mountsExchanged(spec), inst.Kill(ctx)))
	}
	m.Checkpoint("started again")
	return nil
}

// saveFor is how long the files of a sandbox that is made anew may take to be brought home.
func saveFor(seen observation) time.Duration {
	if seen.unfinished {
		return 0
	}
	return saveTimeout
}

// Resumer is the ability of an instance to go on after a pause.
type Resumer interface {
	Resume(ctx context.Context) error
}

func resume(ctx context.Context, inst Instance) error {
	r, ok := inst.(Resumer)
	if !ok {
		return errhint.With(fmt.Errorf("it is paused, and this runtime cannot resume it: %w", ErrUnsupported), "resume it with the tool that paused it")
	}
	return r.Resume(ctx)
}

// adopt writes a row for a sandbox that the registry has lost.
func (m *Manager) adopt(ctx context.Context, spec *Spec, inst Instance) error {
	_, err := m.Registry.Get(ctx, spec.Name)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	entry := entryOf(inst.Seen(), spec.Backend)
	entry.LastUsedAtMs = m.Now().UnixMilli()
	return m.Registry.Put(ctx, entry)
}
