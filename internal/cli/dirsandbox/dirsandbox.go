// Package dirsandbox makes the sandbox of the directory that a verb is called in ready.
// It belongs to the top level of a repository, or to the directory itself.
package dirsandbox

import (
	"context"
	"errors"
	"os"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/agent/preset/hostprogram"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Default returns the directory whose sandbox a verb uses that names no agent and no
// workspace: the git checkout that it is called in, if the configuration is silent about
// sandboxes. It is nil elsewhere.
func Default(e *console.Env, a *app.App) *directory.Directory {
	if !a.Config.IsSilent() {
		return nil
	}
	return Checkout(e)
}

// Checkout returns the git checkout that a verb is called in; nil if it is called in
// none.
func Checkout(e *console.Env) *directory.Directory {
	cwd, err := os.Getwd()
	if err != nil {
		return nil
	}
	d, err := directory.Locate(cwd, hostpath.Homes(e.Getenv))
	if err != nil || !d.IsRepository() {
		return nil
	}
	return d
}

// HostSearch looks for programs of the host that a directory does not have itself.
func HostSearch(e *console.Env, d *directory.Directory) hostprogram.Search {
	return hostprogram.Search{Path: e.Getenv("PATH"), Not: d.Path}
}

// HostPrograms returns what of the host's programs the sandbox of a directory shows:
// those of all presets, so that commands and agents use one sandbox.
func HostPrograms(e *console.Env, a *app.App, d *directory.Directory) ([]string, error) {
	all, err := preset.All(a.Paths.AtollState)
	if err != nil {
		return nil, err
	}
	return HostSearch(e, d).Shown(all), nil
}

// IsHostImage reports whether the sandbox of a directory shows the host's programs, or
// has not been made yet.
func IsHostImage(a *app.App, d *directory.Directory) bool {
	recorded, err := a.Directories().Find(d)
	return err != nil || recorded.Image == "" || recorded.Image == provide.HostImage
}

// CommandOptions returns how the sandbox of a directory is for a command: as it was for
// the last use, or made of the host's programs, or of the image that is named.
func CommandOptions(e *console.Env, a *app.App, d *directory.Directory, image string) (provide.DirectoryOptions, error) {
	if image != "" && image != provide.HostImage {
		return provide.DirectoryOptions{Image: image}, nil
	}
	if image == "" && !IsHostImage(a, d) {
		return provide.DirectoryOptions{}, nil
	}
	programs, err := HostPrograms(e, a, d)
	return provide.DirectoryOptions{Image: provide.HostImage, Programs: programs}, err
}

// Record records the directory and the image of its sandbox, and says if it was moved.
func Record(ctx context.Context, e *console.Env, a *app.App, d *directory.Directory, image string) (*directory.Directory, error) {
	d, err := a.Directories().Record(ctx, d, image)
	if err == nil && d.Moved != "" {
		e.Notice("this directory was " + d.Moved + ": its sandbox and changes came along")
	}
	return d, err
}

// Provide makes the sandbox of a recorded directory ready and shows its notices.
func Provide(ctx context.Context, e *console.Env, a *app.App, d *directory.Directory, o provide.DirectoryOptions) (*provide.ReadySandbox, error) {
	if o.Access == config.AccessRW {
		e.Notice("--access rw: what is changed inside is changed in " + d.Path + " at once, and nothing is held for review")
	}
	done := e.Progress("preparing the sandbox")
	box, err := a.ProvideDirectory(ctx, d, o)
	done()
	if errors.Is(err, sandbox.ErrBusy) {
		err = errhint.With(err, "end what runs in this directory's sandbox, which was made with other settings; `atoll ps` shows it")
	}
	if err != nil {
		return nil, err
	}
	for _, n := range box.Notices {
		e.Notice(n)
	}
	return box, nil
}
