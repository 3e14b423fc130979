package execute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// KeptDir holds the workspaces of runs whose work could not be taken out as
// commits, below the state directory. They stay until a person removes them.
const KeptDir = "kept"

// keepFile marks the directory of a run whose workspace is to be kept.
const keepFile = "keep"

func (e *Executor) keptDir(id string) string { return filepath.Join(e.Paths.AtollState, KeptDir, id) }

// keepWork has Remove keep the workspace, also by a later process.
func (p *Sandbox) keepWork(reason string) (note string, err error) {
	e := p.runs.executor
	err = os.WriteFile(filepath.Join(e.dir(p.order.Run), keepFile), []byte(reason+"\n"), 0o600)
	return fmt.Sprintf("%s; the files are kept in %s (do not run git in it)", reason, e.keptDir(p.order.Run)), err
}

func (p *Sandbox) isKept() bool {
	_, err := os.Stat(filepath.Join(p.runs.executor.dir(p.order.Run), keepFile))
	return err == nil
}

// removeKept removes the sandbox and moves the workspace to where it is kept. A sandbox on
// another machine stays until its files are home.
func (p *Sandbox) removeKept(ctx context.Context, planned *plan.Plan) error {
	e := p.runs.executor
	err := e.Manager.Save(ctx, planned.Spec.Name)
	if err == nil {
		err = e.Manager.ForceRemove(ctx, planned.Spec.Name)
	}
	if err != nil {
		return err
	}
	to := e.keptDir(p.order.Run)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(planned.Layout.SandboxDir, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep the workspace: %w", err)
	}
	return os.RemoveAll(e.dir(p.order.Run))
}
