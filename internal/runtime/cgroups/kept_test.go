package cgroups

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// What was set is noted as the kernel has it, and a later look notices every
// way to lose it.
func TestLostLimits(t *testing.T) {
	need.Root(t, "it makes control groups")
	f := newTree(t)
	mount := f.unified(t, "", "cpu memory pids")
	g, err := f.find(t).Make("box", some)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(mount, parentName, "box")
	const pid = 4711
	put := func(file, text string) func() {
		return func() {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := put("cgroup.procs", "7\n"+strconv.Itoa(pid)+"\n9\n")
	whole()
	if len(g.Kept) != 4 {
		t.Errorf("kept %v", g.Kept)
	}
	if err := Lost(g.Kept, pid); err != nil {
		t.Errorf("nothing was lost: %v", err)
	}
	for name, c := range map[string]struct {
		harm, mend func()
		want       string
	}{
		"raised":    {put("memory.max", "max\n"), put("memory.max", "1048576\n"), `limit of memory: ` + dir + `/memory.max is "max", was "1048576"`},
		"moved out": {put("cgroup.procs", "7\n47110\n"), whole, "process 4711 is no longer in control group " + dir},
		"removed":   {func() { _ = os.Remove(filepath.Join(dir, "pids.max")) }, put("pids.max", "50"), "pids.max is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			c.harm()
			if err := Lost(g.Kept, pid); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			c.mend()
			if err := Lost(g.Kept, pid); err != nil {
				t.Errorf("mended, and yet %v", err)
			}
		})
	}
}
