package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
)

// An init process that cannot enter a control group runs nothing: there is no
// process outside its limits.
func TestInitOutsideItsGroup(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "tasks")); err != nil {
		t.Fatal(err)
	}
	program, err := os.Open("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	refuses := &cgroups.Group{Dirs: []cgroups.Dir{{Controller: "memory", Path: dir}}}
	e, err := startInit(program, account{os.Geteuid(), os.Getegid()}, nil, refuses)
	failed, ok := errors.AsType[*spawn.Error](err)
	if e != nil || !ok || failed.Stage != spawn.StageGroup || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, %v", e, err)
	}
	if strings.Contains(err.Error(), "user namespaces") {
		t.Errorf("the error blames something else: %v", err)
	}
	missing := &cgroups.Group{Dirs: []cgroups.Dir{{Path: filepath.Join(dir, "gone")}}}
	if e, err := startInit(program, account{os.Geteuid(), os.Getegid()}, nil, missing); e != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", e, err)
	}
}
