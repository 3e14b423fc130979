package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// create makes the sandbox and runs its set-up, and returns it with the wire
// over which it answered. The row comes first, so that whatever a crash leaves
// has a name that the next start looks for. On failure everything that was made
// is removed. The caller holds the change lock.
func (m *Manager) create(ctx context.Context, spec *Spec) (_ Instance, _ *machine.Machine, err error) {
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return nil, nil, provision(spec, "runtime", err)
	}
	if gaps := rt.Check(ctx, spec); len(gaps) > 0 {
		return nil, nil, provision(spec, "check", gapError(gaps))
	}
	if err := refuseSetID(spec); err != nil {
		return nil, nil, provision(spec, "check", err)
	}
	m.Checkpoint("before intent")
	if err := m.Registry.Put(ctx, m.intent(spec)); err != nil {
		return nil, nil, provision(spec, "register", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.undo(ctx, rt, spec))
		}
	}()
	if err := m.Registry.SetSettings(ctx, spec.Name, spec.Settings); err != nil {
		return nil, nil, provision(spec, "register", err)
	}
	m.Checkpoint("after intent")
	made, err := m.withRoots(spec)
	if err != nil {
		return nil, nil, provision(spec, "certificates", err)
	}
	inst, err := rt.Create(ctx, made)
	if err != nil {
		return nil, nil, provision(spec, "create", err)
	}
	m.Checkpoint("after create")
	if err := inst.Start(ctx); err != nil {
		return nil, nil, provision(spec, "start", err)
	}
	m.Checkpoint("after start")
	mach, err := m.setUp(ctx, spec, inst)
	if err != nil {
		return nil, nil, err
	}
	m.Checkpoint("before ready")
	if err := m.Registry.SetPhase(ctx, spec.Name, PhaseReady); err != nil {
		_ = mach.Close()
		return nil, nil, provision(spec, "register", err)
	}
	m.Checkpoint("after ready")
	return inst, mach, nil
}

// withRoots returns a spec with the certificates that programs inside are to trust.
func (m *Manager) withRoots(spec *Spec) (*Spec, error) {
	if m.TrustedRoots == nil || spec.Kind == KindPool {
		return spec, nil
	}
	made := *spec
	var err error
	made.TrustedRoots, err = m.TrustedRoots(spec)
	return &made, err
}

func (m *Manager) intent(spec *Spec) *Entry {
	now := m.Now().UnixMilli()
	return &Entry{
		ContainerName: spec.Name, SessionKey: spec.ScopeKey, CreatedAtMs: now, LastUsedAtMs: now,
		Image: spec.Image, ConfigHash: spec.ConfigHash, Kind: cmp.Or(spec.Kind, KindSandbox), Phase: PhaseCreating,
		Backend: spec.Backend, AgentID: spec.AgentID, Account: spec.Account, MountsHash: spec.MountsHash,
		WorkspaceDir: workspaceOf(spec),
	}
}

// workspaceOf is the host directory that the sandbox of spec works in.
func workspaceOf(spec *Spec) string {
	for _, mount := range spec.Mounts {
		if mount.Kind == MountWorkspace {
			return cmp.Or(mount.Base, mount.Source)
		}
	}
	return ""
}

// entryOf rebuilds a row from what the sandbox itself carries.
func entryOf(s Summary, backend string) *Entry {
	made := s.CreatedAt.UnixMilli()
	if ms, err := strconv.ParseInt(s.Labels[LabelCreatedAtMs], 10, 64); err == nil {
		made = ms
	}
	return &Entry{
		ContainerName: s.Name, SessionKey: s.Labels[LabelSessionKey], CreatedAtMs: made, LastUsedAtMs: made,
		Image: s.Image, ConfigHash: s.Labels[LabelConfigHash], Kind: kindOf(s), Phase: PhaseReady,
		Backend: backend, AgentID: s.Labels[LabelAgent], Account: s.Labels[LabelAccount], MountsHash: s.Labels[LabelMountsHash],
		WorkspaceDir: s.Labels[LabelWorkspace],
	}
}

// kindOf returns the kind that the label of a sandbox says.
func kindOf(s Summary) Kind {
	switch {
	case s.Labels[LabelPool] == "1":
		return KindPool
	case s.Labels[LabelBrowser] == "1":
		return KindBrowser
	}
	return KindSandbox
}

// setUp waits for the guest and runs the set-up command over its wire.
func (m *Manager) setUp(ctx context.Context, spec *Spec, inst Instance) (*machine.Machine, error) {
	mach, err := m.reach(ctx, spec, inst)
	if err != nil {
		return nil, provision(spec, "wire", err)
	}
	m.Checkpoint("after wire")
	if spec.SetupCommand == "" {
		return mach, nil
	}
	if err := m.runSetup(ctx, spec, mach); err != nil {
		_ = mach.Close()
		return nil, provision(spec, "setup", err)
	}
	m.Checkpoint("after setup")
	return mach, nil
}

// reach returns a wire to a guest that answers.
func (m *Manager) reach(ctx context.Context, spec *Spec, inst Instance) (*machine.Machine, error) {
	mach := machine.New(inst.Dial, &machine.Options{Log: m.Logger, Kill: inst.Kill, Recreate: RecreateCommand(spec)})
	if err := m.answers(ctx, mach); err != nil {
		_ = mach.Close()
		return nil, err
	}
	return mach, nil
}

func (m *Manager) answers(ctx context.Context, mach *machine.Machine) error {
	wait, cancel := context.WithTimeout(ctx, m.WireTimeout)
	defer cancel()
	if err := mach.Reach(wait); err != nil {
		return fmt.Errorf("the guest does not answer: %w", err)
	}
	return nil
}

// EnvList is env in the form that processes are started with.
func EnvList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// outputTail is the end of what a program said, as the end of a message.
func outputTail(w *tailbuf.Writer) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(w.Bytes()), "?"))
	if text == "" {
		return ""
	}
	return ": " + text
}

// undo removes what a failed creation made. It has its own time: the caller's
// context may be what failed. If it cannot, the row stays, and with it the
// knowledge that something is to be removed.
func (m *Manager) undo(ctx context.Context, rt Runtime, spec *Spec) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	inst, err := rt.Open(ctx, spec.Name)
	switch {
	case errors.Is(err, ErrNotFound) || errors.Is(err, ErrForeign):
		return m.deleteRow(ctx, rt, &Entry{ContainerName: spec.Name})
	case err != nil:
		return m.undoLater(ctx, spec, err)
	}
	if err := inst.Remove(ctx); err != nil {
		return m.undoLater(ctx, spec, err)
	}
	return m.Registry.Delete(ctx, spec.Name)
}

func (m *Manager) undoLater(ctx context.Context, spec *Spec, err error) error {
	m.Logger.WarnContext(ctx, "half-made sandbox not removed yet", "sandbox", spec.Name, "error", err)
	return fmt.Errorf("what was made is not removed yet, the next use or `atoll sandbox prune` does it: %w", err)
}

// Labels are the labels a runtime puts on the sandbox of spec.
func Labels(spec *Spec, installation string, now time.Time) map[string]string {
	labels := map[string]string{
		LabelSandbox:      "1",
		LabelSessionKey:   spec.ScopeKey,
		LabelCreatedAtMs:  strconv.FormatInt(now.UnixMilli(), 10),
		LabelConfigHash:   spec.ConfigHash,
		LabelInstallation: installation,
		LabelAgent:        spec.AgentID,
		LabelMountsHash:   spec.MountsHash,
		LabelWorkspace:    workspaceOf(spec),
	}
	if spec.Kind == KindBrowser {
		labels[LabelBrowser], labels[LabelBrowserEpoch] = "1", BrowserEpoch
	}
	if spec.Kind == KindPool {
		labels[LabelPool] = "1"
	}
	if spec.Account != "" {
		labels[LabelAccount] = spec.Account
	}
	if spec.SetupCommand != "" {
		labels[LabelSetup] = "1"
	}
	return labels
}
