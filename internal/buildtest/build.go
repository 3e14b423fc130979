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

// HeadStart is the linker's flag by which atoll-docker has its head start.
const HeadStart = "-E " + module + "/internal/dockercli/headstart.Entry"

// Programs builds programs into a directory.
func Programs(ctx context.Context, dir string, names ...string) error {
	for _, name := range names {
		flags := "-s -w"
		if name == "atoll-docker" {
			flags += " " + HeadStart
		}
		if err := Program(ctx, filepath.Join(dir, name), name, flags); err != nil {
			return err
		}
	}
	return nil
}

// Program builds one program with flags of the linker, in an environment with more
// variables.
func Program(ctx context.Context, path, name, flags string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", path, module+"/cmd/"+name)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build of %s: %w\n%s", name, err, out)
	}
	return nil
}
