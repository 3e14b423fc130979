// Package buildtest builds programs of this tree for tests, as `make build` does.
package buildtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const module = "github.com/atoll-run/atoll"

// Programs builds programs into a directory.
func Programs(ctx context.Context, dir string, names ...string) error {
	for _, name := range names {
		if err := build(ctx, filepath.Join(dir, name), name); err != nil {
			return err
		}
	}
	return nil
}

// build builds one program.
func build(ctx context.Context, path, name string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, module+"/cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build of %s: %w\n%s", name, err, out)
	}
	return nil
}
