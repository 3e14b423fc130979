package escapetest

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// swapping exchanges a directory with a link, over and over, as code in a
// sandbox beside the one that starts could. It returns how to stop.
func (a *arena) swapping(place, link string) (stop func()) {
	a.t.Helper()
	return a.exchanging(place, func() error { return os.Symlink(link, place) })
}

// exchanging puts something else in the place of a file or directory.
func (a *arena) exchanging(place string, other func() error) (stop func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			_ = os.Rename(place, place+".own")
			_ = other()
			time.Sleep(time.Millisecond)
			_ = os.Remove(place)
			_ = os.Rename(place+".own", place)
			time.Sleep(time.Millisecond) // as long in the one state as in the other
		}
	})
	return func() { cancel(); running.Wait() }
}

// startsUnderSwap makes sandboxes while names are being exchanged. They may
// start or be refused; attack says what must not be possible in those that do.
func (a *arena) startsUnderSwap(spec func(*sandbox.Spec), attack ...string) {
	starts := 8
	if a.Slow {
		starts = 3
	}
	for range starts {
		c, err := a.tryStart(a.spec(spec))
		if err != nil {
			a.t.Logf("refused: %v", err)
			a.sweep()
			continue
		}
		if out, result, err := c.attackIn("/", attack...); err == nil && result.ExitCode == 1 {
			a.t.Errorf("a sandbox that was started meanwhile is open\n%s", out)
		}
		a.sweep()
	}
}

// swappedTargets is CVE-2021-30465 and the mount races of 2025: a mount's target lies
// in a directory that hostile code can change. The mount must never be made outside,
// nor a directory for it.
func swappedTargets(a *arena) {
	a.mkdir("workspace/sub")
	a.mkdir("workspace/sub/inner")
	stop := a.swapping(a.path("workspace/sub"), a.path("host"))
	a.startsUnderSwap(func(s *sandbox.Spec) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: a.path("readonly"), Target: workdir + "/sub/inner", ReadOnly: true, Kind: sandbox.MountBind})
	}, "read-host-file", a.path("host/canary"), canaryWords)
	stop()
	a.wantCanary("host")
	a.wantNoMount(a.path("host"))
}

func (a *arena) wantNoMount(below string) {
	a.t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		a.t.Fatal(err)
	}
	if strings.Contains(string(text), below) {
		a.t.Errorf("something is mounted below %s", below)
	}
}

// swappedSources has a mount's source in a directory that hostile code can change:
// what is mounted must be what was checked, or nothing.
func swappedSources(a *arena) {
	a.mkdir("shared")
	a.mkdir("shared/data")
	var stat unix.Stat_t
	if err := unix.Stat(a.path("shared/data"), &stat); err != nil {
		a.t.Fatal(err)
	}
	stop := a.swapping(a.path("shared/data"), a.path("host"))
	a.startsUnderSwap(func(s *sandbox.Spec) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: a.path("shared/data"), Target: "/data", Kind: sandbox.MountBind, Device: stat.Dev, Inode: stat.Ino})
	}, "read-host-file", "/data/canary", canaryWords)
	stop()
	a.wantCanary("host")
}

// hardSources is swappedSources with files and hard links, whose paths do not say
// what they are links of.
func hardSources(a *arena) {
	a.mkdir("shared")
	a.write("shared/data", "nothing", 0o644)
	var stat unix.Stat_t
	if err := unix.Stat(a.path("shared/data"), &stat); err != nil {
		a.t.Fatal(err)
	}
	stop := a.exchanging(a.path("shared/data"), func() error { return os.Link(a.path("host/canary"), a.path("shared/data")) })
	a.startsUnderSwap(func(s *sandbox.Spec) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: a.path("shared/data"), Target: "/data", Kind: sandbox.MountBind, Device: stat.Dev, Inode: stat.Ino})
	}, "read-host-file", "/data", canaryWords)
	stop()
	a.wantCanary("host")
}

// hardTargets has a mount's target that is a hard link of the host's file: making the
// mount must not change that file.
func hardTargets(a *arena) {
	a.write("workspace/point", "", 0o666)
	stop := a.exchanging(a.path("workspace/point"), func() error { return os.Link(a.path("host/canary"), a.path("workspace/point")) })
	a.startsUnderSwap(func(s *sandbox.Spec) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Source: a.path("readonly/canary"), Target: workdir + "/point", ReadOnly: true, Kind: sandbox.MountBind})
	}, "child")
	stop()
	a.wantCanary("host")
	a.wantCanary("readonly")
	a.wantNoMount(a.path("host"))
}
