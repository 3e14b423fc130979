package provide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/image/debian"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// The limits of a sandbox that builds an image.
const (
	buildSize    = 16 << 30 // bytes that it may write
	buildFiles   = 1_000_000
	buildReserve = 512 << 20 // bytes that stay free on the disk
	buildTime    = 30 * time.Minute
	// buildUser is the user that it runs as where root builds.
	buildUser = 1000
)

// buildDir is where builds keep what they fetched, below the state directory.
const buildDir = "image-builds"

// ImageBuilder returns what builds images without an engine. report gets a line at
// each step.
func (a *Installation) ImageBuilder(report func(line string)) (*local.Builder, error) {
	store, err := a.Images()
	if err != nil {
		return nil, err
	}
	packages, err := a.npm()
	if err != nil {
		return nil, err
	}
	return &local.Builder{Store: store, Run: a.runBuildStep, Dir: filepath.Join(a.Paths.AtollState, buildDir), Npm: packages, Apt: &debian.Client{}, Report: report}, nil
}

// npm is the machine's npm, or what stands in for it where there is none.
func (a *Installation) npm() (local.Packages, error) {
	client := &npm.Client{}
	if client.Available() == nil {
		return client, nil
	}
	host, err := a.Outbound()
	if err != nil {
		return nil, err
	}
	return npm.NewRegistry(host, a.Getenv), nil
}

// runBuildStep runs the script of a step in a sandbox of its own, which is removed
// afterwards.
func (a *Installation) runBuildStep(ctx context.Context, s *local.Step) (err error) {
	spec := buildSpec(s)
	if spec.User != "" {
		if err := os.Chown(s.Work, buildUser, buildUser); err != nil {
			return err
		}
	}
	handle, err := a.Manager.Ensure(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		handle.Release()
		err = errors.Join(err, a.Manager.Remove(context.WithoutCancel(ctx), spec.Name, nil))
	}()
	said := &tailbuf.Writer{Most: buildMessages}
	result, err := handle.Machine.Exec(ctx, &machine.Command{
		Argv: []string{"/bin/sh", local.ScriptPath}, Env: sandbox.EnvList(s.Env), Dir: s.Dest,
		Stdout: s.Stdout, Stderr: io.MultiWriter(said, s.Stderr), Timeout: buildTime, EndTree: true,
	})
	if err != nil {
		return err
	}
	return buildFailure(result, said.Bytes())
}

// buildMessages is how many bytes of a script's messages are kept for an error.
const buildMessages = 2 << 10

// buildFailure is the error of a script that failed; nil if it did not.
func buildFailure(r *machine.Result, said []byte) error {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	switch {
	case r.TimedOut:
		return fmt.Errorf("the build took longer than %v: %s", buildTime, last)
	case r.QuotaExceeded != "":
		return fmt.Errorf("the build outgrew its limit of %s: %s", r.QuotaExceeded, last)
	case r.OOM:
		return fmt.Errorf("the build ran out of memory: %s", last)
	case r.ExitCode != 0:
		return fmt.Errorf("the build ended with %d: %s", r.ExitCode, last)
	}
	return nil
}

// buildSpec is the sandbox of a step: no network, a read-only root, and one
// directory to write to.
func buildSpec(s *local.Step) *sandbox.Spec {
	spec := &sandbox.Spec{
		Name: s.Name, ScopeKey: "images:build:" + s.Name, AgentID: "images", Backend: BackendLinux, ConfigHash: s.Name, MountsHash: s.Work,
		Image: s.Image, Workdir: s.Dest, ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"},
		Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}},
		Mounts: []sandbox.Mount{
			{Source: s.Work, Target: s.Dest, Kind: sandbox.MountWorkspace, Enclosed: true},
			{Source: s.Inputs, Target: local.InputsPath, ReadOnly: true, Kind: sandbox.MountAgent, Enclosed: true},
		},
		Limits: sandbox.Limits{
			Workspace: sandbox.WorkspaceQuota{Size: buildSize, Files: buildFiles, Reserve: buildReserve},
			Defaults:  sandbox.Defaults{Pids: plan.DefaultPids},
		},
	}
	if os.Geteuid() == 0 {
		spec.User = fmt.Sprintf("%d:%d", buildUser, buildUser)
	}
	return spec
}
