package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// Up makes the virtual machine if there is none, starts it, compares its mounts and does
// the steps, from the named one on.
func (m *Manager) Up(ctx context.Context, from string) error {
	mounts, err := m.check(ctx)
	if err != nil {
		return err
	}
	setup, err := m.setup()
	if err != nil {
		return err
	}
	if _, err := steps.Plan(setup.List(), from); err != nil {
		return err
	}
	if err := m.started(ctx, mounts); err != nil {
		return err
	}
	if err := m.vm.CheckMounts(ctx, mounts); err != nil {
		return err
	}
	m.say("mounts        %d of %d as declared\n", len(mounts), len(mounts))
	if err := m.provision(ctx, setup, from); err != nil {
		return err
	}
	if err := m.remember(ctx); err != nil {
		return err
	}
	m.say("gateway       http://localhost:%d   %s\n", m.Profile.Port, m.health(ctx))
	return nil
}

func (m *Manager) say(format string, args ...any) { fmt.Fprintf(m.Log, format, args...) }

// check reports everything that is wrong with the profile at once.
func (m *Manager) check(ctx context.Context) ([]profile.Mount, error) {
	mounts, err := profile.Mounts(&m.Profile, m.Host)
	err = errors.Join(err, profile.Sizes(&m.Profile))
	_, version, limaErr := m.open(ctx)
	if err = errors.Join(err, limaErr); err != nil {
		return nil, fmt.Errorf("profile %s: %w", m.Profile.Name, err)
	}
	m.say("✓ limactl %s   ✓ profile %s   ✓ %d mounts exist\n", version, m.Profile.Name, len(mounts))
	return mounts, nil
}

// started makes and starts the virtual machine where that is not done.
func (m *Manager) started(ctx context.Context, mounts []profile.Mount) error {
	instance, err := m.vm.Look(ctx)
	if err != nil {
		return err
	}
	if instance.Status == lima.Running {
		return m.drift(mounts)
	}
	if err := profile.PortFree(&m.Profile); err != nil {
		return err
	}
	if instance.Status == "" {
		err = m.create(ctx, mounts)
	} else {
		err = m.drift(mounts)
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := m.vm.Start(ctx); err != nil {
		return err
	}
	m.say("started       %s in %.0f s\n", m.vm.Name, time.Since(begin).Seconds())
	return nil
}

// create writes Lima's file and makes the virtual machine.
func (m *Manager) create(ctx context.Context, mounts []profile.Mount) error {
	version, err := m.vm.Version(ctx)
	if err != nil {
		return err
	}
	text, err := lima.YAML(&m.Profile, mounts, lima.Target{Version: version, System: m.System, Arch: m.Arch})
	if err != nil {
		return err
	}
	made, err := json.MarshalIndent(Made{version.String(), m.Profile, mounts}, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(m.write(yamlName, text), m.write(madeName, made)); err != nil {
		return err
	}
	m.say("creating      %s (%d CPUs, %s, %s)\n", m.vm.Name, m.Profile.CPUs, profile.Size(m.Profile.Memory), profile.Size(m.Profile.Disk))
	return m.vm.Create(ctx, m.YAMLPath())
}

// drift tells how the virtual machine differs from its profile, and refuses what would
// make the profile untrue.
func (m *Manager) drift(mounts []profile.Mount) error {
	was, err := m.made()
	if err != nil || was == nil {
		return err
	}
	var fatal []error
	for _, d := range was.Differences(m, mounts) {
		if d.Fatal {
			fatal = append(fatal, errhint.With(errors.New(d.What), d.Remedy))
			continue
		}
		m.say("differs       %s: %s\n", d.What, d.Remedy)
	}
	if len(fatal) > 0 {
		return errhint.With(fmt.Errorf("%s is not as its profile says: %w", m.vm.Name, errors.Join(fatal...)), again)
	}
	return nil
}

// provision does the steps and says what each of them did.
func (m *Manager) provision(ctx context.Context, setup *steps.Setup, from string) error {
	count := map[steps.Result]int{}
	err := steps.Run(ctx, m.vm, setup.List(), from, func(s *steps.Step, r steps.Result) {
		count[r]++
		switch r {
		case steps.Skipped:
			m.say("  %-11s –  %s\n", s.Name, s.Skip)
		default:
			m.say("  %-11s ✓  %s\n", s.Name, r)
		}
	})
	if err != nil {
		return err
	}
	if count[steps.Changed] == 0 {
		m.say("provisioning  nothing to change, %d skipped\n", count[steps.Skipped])
		return nil
	}
	m.say("provisioning  %d changed, %d unchanged, %d skipped\n", count[steps.Changed], count[steps.Unchanged], count[steps.Skipped])
	return nil
}

// healthPatience is how long the gateway may take to answer.
const healthPatience = 3 * time.Second

// health asks the gateway whether it is well, through the forwarded port.
func (m *Manager) health(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/health", m.Profile.Port), nil)
	if err != nil {
		return err.Error()
	}
	answer, err := (&http.Client{}).Do(r)
	if err != nil {
		return "does not answer; see `atoll vm logs`"
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "says " + answer.Status
	}
	return "healthy"
}
