package provide

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
)

// Verified is what was found of one sandbox.
type Verified struct {
	Sandbox string         `json:"sandbox"`
	Backend string         `json:"backend"`
	Image   string         `json:"image"` // "host" is this machine's own programs
	OK      bool           `json:"ok"`
	Checks  []verify.Check `json:"checks"`
	// Hint is what to do about gaps, "" if there are none.
	Hint string `json:"hint,omitempty"`
}

// Verify probes the sandboxes of a session, making them if needed.
func (a *Installation) Verify(ctx context.Context, who Subject) ([]Verified, error) {
	box, err := a.Provide(ctx, who, Options{Pair: true})
	if err != nil {
		return nil, err
	}
	defer box.Release()
	handles := []*sandbox.Handle{box.Handle}
	if box.Net != nil {
		handles = append(handles, box.Net)
	}
	found, err := a.verifyAll(ctx, handles, specs(box.Plan))
	if err != nil {
		return nil, err
	}
	browser, err := a.verifyBrowser(ctx, who, box.Plan)
	return append(found, browser...), err
}

// verifyBrowser probes the browser beside a sandbox, if it runs.
func (a *Installation) verifyBrowser(ctx context.Context, who Subject, p *plan.Plan) ([]Verified, error) {
	b, err := p.Browser()
	if err != nil {
		return nil, err
	}
	h, err := a.Manager.Attach(ctx, b.Spec.Name)
	if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrNotRunning) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer h.Release()
	spec, err := a.browserSpec(ctx, who)
	if err != nil {
		return nil, err
	}
	return a.verifyAll(ctx, []*sandbox.Handle{h}, []*sandbox.Spec{spec})
}

// browserSpec returns the spec of a session's browser, with its backend.
func (a *Installation) browserSpec(ctx context.Context, who Subject) (*sandbox.Spec, error) {
	b, err := a.planBrowser(ctx, who)
	if err != nil {
		return nil, err
	}
	return b.Spec, nil
}

// VerifyNamed probes one sandbox that runs, as it is.
func (a *Installation) VerifyNamed(ctx context.Context, name string) ([]Verified, error) {
	who, err := a.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	h, err := a.Manager.Attach(ctx, name)
	if err != nil {
		return nil, hintedAttach(err)
	}
	defer h.Release()
	spec, err := a.specNamed(ctx, who, name)
	if err != nil {
		return nil, err
	}
	return a.verifyAll(ctx, []*sandbox.Handle{h}, []*sandbox.Spec{spec})
}

// hintedAttach says what to do about a sandbox that cannot be looked into.
func hintedAttach(err error) error {
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return errhint.With(err, "`atoll ps` shows what there is")
	case errors.Is(err, sandbox.ErrNotRunning):
		return errhint.With(err, "only one that runs can be tried: `atoll sandbox verify` without a name, with --agent or --session, starts it")
	}
	return err
}

// specNamed returns the spec of a session's sandbox with this name: the command sandbox,
// its networked half, or the browser.
func (a *Installation) specNamed(ctx context.Context, who Subject, name string) (*sandbox.Spec, error) {
	p, err := a.Plan(who)
	if err != nil {
		return nil, err
	}
	if b, err := p.Browser(); err == nil && b.Spec.Name == name {
		return a.browserSpec(ctx, who)
	}
	if _, err := a.chooseBackend(ctx, p); err != nil {
		return nil, err
	}
	if p.Net != nil && p.Net.Name == name {
		return p.Net, nil
	}
	return p.Spec, nil
}

func (a *Installation) verifyAll(ctx context.Context, handles []*sandbox.Handle, specs []*sandbox.Spec) ([]Verified, error) {
	var all []Verified
	for i, h := range handles {
		checks, err := a.verify(ctx, h, specs[i])
		if err != nil {
			return nil, err
		}
		v := Verified{Sandbox: h.Name, Backend: specs[i].Backend, Image: specs[i].Image, OK: verify.Holds(checks), Checks: checks}
		if !v.OK {
			v.Hint = sandbox.RecreateCommand(specs[i]) + " makes it anew; if a gap stays, `atoll doctor` says what this machine lacks"
		}
		all = append(all, v)
	}
	return all, nil
}

func (a *Installation) verify(ctx context.Context, h *sandbox.Handle, spec *sandbox.Spec) ([]verify.Check, error) {
	entry, err := a.Registry.Get(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	if spec.Backend == BackendLinux && a.showsHost(ctx, spec.Image) { // also below layers of an image
		shown := *spec
		shown.Image, spec = rootfs.HostName, &shown
	}
	found, err := verify.Sandbox(ctx, h.Machine, spec, GuestProgram, a.processOf(ctx, entry.RuntimeName(), entry.Backend))
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", h.Name, err)
	}
	checks := append([]verify.Check{verify.Configuration(spec.ConfigHash, entry.ConfigHash)}, found...)
	return append(checks, a.reserveCheck()), nil
}

// processOf is the number that this host gives to a sandbox's process 1; 0 if
// it is not on this host.
func (a *Installation) processOf(ctx context.Context, name, backend string) int {
	rt, err := a.Runtime(ctx, backend)
	if err != nil {
		return 0
	}
	inst, err := rt.Open(ctx, name)
	if err != nil {
		return 0
	}
	conn, err := inst.Dial(ctx)
	if err != nil {
		return 0
	}
	defer conn.Close()
	return verify.PeerPID(conn)
}

// GuestProgram is where the guest is inside every sandbox.
const GuestProgram = policy.InternalTarget + "/guest"
