package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// Down stops the virtual machine; with force at once. One that does not run is left.
func (m *Manager) Down(ctx context.Context, force bool) error {
	v, i, err := m.running(ctx)
	if v != nil && i.Status == lima.Stopped {
		m.say("%s is stopped already\n", v.Name)
		return nil
	}
	if v == nil {
		return err
	}
	return v.Stop(ctx, force)
}

// waitingScript lists files above the services' overlays, a line each.
const waitingScript = `for d in /var/lib/openclaw/overlay/*/upper; do [ -d "$d" ] && find "$d" -mindepth 1 ! -type d; done; :`

// ErrWaiting is the cause of a refusal to delete what holds changes.
var ErrWaiting = errors.New("changes wait in it")

// Delete removes the virtual machine. It refuses while changes wait inside, and where
// that is not known, unless they are to be discarded.
func (m *Manager) Delete(ctx context.Context, discard bool) error {
	v, i, err := m.running(ctx)
	switch {
	case v == nil:
		return err
	case discard:
	case i.Status != lima.Running:
		return errhint.With(fmt.Errorf("%s is stopped, so that nobody can say whether changes wait in it", v.Name), "start it with `atoll vm up`, or give --discard")
	default:
		if err := m.waiting(ctx); err != nil {
			return err
		}
	}
	if err := v.Delete(ctx); err != nil {
		return err
	}
	return errors.Join(m.forget(), os.RemoveAll(m.dir()))
}

// waiting returns an error if changes wait inside: files above a service's overlay, or
// files and commits of any sandbox, whoever it is of.
func (m *Manager) waiting(ctx context.Context) error {
	out, err := m.vm.Run(ctx, waitingScript, nil)
	if err != nil {
		return err
	}
	list := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
	all, err := (&inside{ctx, m.vm}).overlays()
	if err != nil {
		return errhint.With(err, "see `atoll vm logs`; --discard deletes it without asking")
	}
	for _, o := range all {
		if o.Waiting+o.Commits > 0 {
			list = append(list, fmt.Sprintf("%d files and %d commits on %s", o.Waiting, o.Commits, o.Base))
		}
	}
	if len(list) > 0 {
		return errhint.With(fmt.Errorf("%s is not deleted: %w: %s", m.vm.Name, ErrWaiting, some(list)),
			"apply them with `atoll vm apply`, reject them with `atoll sync`, or give --discard")
	}
	return nil
}

// some names the first of many.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// Status is what is known of a virtual machine.
type Status struct {
	Name    string      `json:"name"`
	Profile string      `json:"profile"`
	State   string      `json:"state"` // "none" if there is none
	Lima    string      `json:"lima"`
	File    string      `json:"file"`
	Gateway string      `json:"gateway,omitempty"` // of one that runs
	Mounts  string      `json:"mounts,omitempty"`  // of one that runs
	Drift   []Drift     `json:"drift"`
	Steps   []StepState `json:"steps"`
}

// StepState is a step of the set-up, and why it is skipped.
type StepState struct {
	Name string `json:"name"`
	Skip string `json:"skip,omitempty"`
}

// Status looks at everything and changes nothing.
func (m *Manager) Status(ctx context.Context) (*Status, error) {
	v, version, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	i, err := v.Look(ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{Name: v.Name, Profile: m.Profile.Name, State: strings.ToLower(i.Status), Lima: version.String(), File: m.YAMLPath(), Drift: []Drift{}}
	if i.Status == "" {
		s.State = "none"
	}
	mounts, err := profile.Mounts(&m.Profile, m.Host)
	if err != nil {
		return s, err
	}
	if was, err := m.made(); err == nil && was != nil && i.Status != "" {
		s.Drift = append(s.Drift, was.Differences(m, mounts)...)
	}
	if i.Status == lima.Running {
		s.Gateway, s.Mounts = m.health(ctx), "as declared"
		if err := v.CheckMounts(ctx, mounts); err != nil {
			s.Mounts = err.Error()
		}
	}
	for _, step := range (&steps.Setup{Profile: &m.Profile, NeedsDocker: m.NeedsDocker}).List() {
		s.Steps = append(s.Steps, StepState{step.Name, step.Skip})
	}
	return s, nil
}

// Command returns a program inside, or a shell, in the workspace.
func (m *Manager) Command(ctx context.Context, argv []string) (*Process, error) {
	v, _, err := m.running(ctx)
	if err != nil {
		return nil, err
	}
	return newProcess(v, profile.Workspace(&m.Profile), nil, argv), nil
}

// SSHCommand returns the client of ssh, connected to the virtual machine.
func (m *Manager) SSHCommand(ctx context.Context, argv []string) (*Process, error) {
	v, i, err := m.running(ctx)
	if err != nil {
		return nil, err
	}
	return &Process{Argv: append([]string{"ssh", "-F", i.Dir + "/ssh.config", "lima-" + v.Name}, argv...)}, nil
}

// LogCommand returns the program that shows what the gateway wrote inside, or nil and the
// file in which Lima says why it does not run.
func (m *Manager) LogCommand(ctx context.Context, follow bool) (p *Process, file string, err error) {
	v, i, err := m.running(ctx)
	if v == nil {
		return nil, "", err
	}
	if i.Status != lima.Running {
		return nil, i.Dir + "/ha.stderr.log", nil
	}
	argv := []string{"journalctl", "--no-pager", "--unit=atoll-gateway.service", "--lines=200"}
	if follow {
		argv = append(argv, "--follow")
	}
	return newProcess(v, "/", []string{"sudo"}, argv), "", nil
}
