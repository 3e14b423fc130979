package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/lima"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// asGateway runs a program as the user of the gateway, with its state directory.
var asGateway = []string{"sudo", "runuser", "-u", "atoll", "--", "env", "HOME=/var/lib/atoll", "ATOLL_STATE_DIR=/var/lib/atoll", "ATOLL_CONFIG=" + steps.ConfigFile}

// Enter returns an atoll that runs inside, in the directory of the project that the
// caller is in. The virtual machine is brought up if it does not run.
func (m *Manager) Enter(ctx context.Context, cwd string, args []string) (*Process, error) {
	workdir, err := m.insideOf(cwd)
	if err != nil {
		return nil, err
	}
	v, _, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	i, err := v.Look(ctx)
	if err != nil {
		return nil, err
	}
	if i.Status != lima.Running {
		if err := m.Up(ctx, ""); err != nil {
			return nil, err
		}
	}
	return newProcess(v, workdir, asGateway, append([]string{steps.ProgramFile}, args...)), nil
}

// insideOf returns where a directory of the project is inside.
func (m *Manager) insideOf(cwd string) (string, error) {
	project, err := filepath.EvalSymlinks(m.home(m.Profile.Mounts.Project))
	if err != nil {
		return "", errhint.With(fmt.Errorf("mounts.project: %w", err), "run `atoll vm init`")
	}
	rel, err := filepath.Rel(project, cwd)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errhint.With(fmt.Errorf("%s is not in the project of profile %s, %s", cwd, m.Profile.Name, project), "change to a directory of the project, or make a profile for this one with `atoll vm init --profile NAME`")
	}
	return path.Join(profile.ProjectPoint, filepath.ToSlash(rel)), nil
}

// remember keeps the gateway inside as a context, with a token of its own.
func (m *Manager) remember(ctx context.Context) error {
	all, err := contexts.Load(m.StateDir)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", m.Profile.Port)
	if known, ok := all.Contexts[m.InstanceName()]; ok && known.URL == address && known.Token != "" {
		return nil
	}
	out, err := m.vm.Run(ctx, strings.Join(asGateway[1:], " ")+" "+steps.ProgramFile+" token create --role admin --name vm --json", nil)
	if err != nil {
		return fmt.Errorf("a token for this machine: %w", err)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return fmt.Errorf("a token for this machine: %w", err)
	}
	m.say("context       %s\n", m.InstanceName())
	return all.Add(m.InstanceName(), contexts.Context{URL: address, Token: made.Token})
}

// forget removes the context of a virtual machine that is gone.
func (m *Manager) forget() error {
	all, err := contexts.Load(m.StateDir)
	if err != nil {
		return err
	}
	if _, ok := all.Contexts[m.InstanceName()]; !ok {
		return nil
	}
	return all.Remove(m.InstanceName())
}
