package escapetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
)

// What a workspace may hold that is attacked. The attacks stop by themselves at
// about a gigabyte and at a hundred thousand files.
const (
	roomSize  = 48 << 20
	roomFiles = 2000
)

func rationed(s *sandbox.Spec) {
	s.Limits.Workspace = sandbox.WorkspaceQuota{Size: roomSize, Files: roomFiles}
}

// startRationed returns a sandbox with a quota: all processes in it are killed when it is full,
// but not those that pass the wire on. So one sandbox takes all of these attacks.
func (a *arena) startRationed() *cell {
	a.t.Helper()
	if a.home != nil {
		return a.atHome()
	}
	return a.start(rationed)
}

// overfill writes more into the workspace, which is on the host's disk, than it
// may hold. It must be ended, with the reason; then files can be removed, and
// everything is as before.
func (a *arena) overfill(want wire.QuotaLimit, attack ...string) {
	c := a.startRationed()
	out, result := c.attack(attack...)
	a.t.Logf("%s, %q\n%s", ended(result), result.QuotaExceeded, out)
	if result.QuotaExceeded != machine.QuotaLimit(want) {
		a.t.Errorf("it was ended for %q, want %q: nothing stopped it", result.QuotaExceeded, want)
	}
	c.alive()
	if out, result := c.attack("clear", workdir); result.ExitCode != 0 {
		a.t.Fatalf("it cannot be cleared (%d, %q): %s", result.ExitCode, result.QuotaExceeded, out)
	}
	if out, result := c.attack("fill", workdir, "8", "8"); result.ExitCode != 1 {
		a.t.Errorf("8 MiB do not fit any more (%d, %q): %s", result.ExitCode, result.QuotaExceeded, out)
	}
	a.wantCanary("host")
}

// fillBehind fills the workspace with a process that outlives its command. It is
// ended too, and the command does not wait for it.
func fillBehind(a *arena) {
	c := a.startRationed()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	if _, err := c.machine.Exec(ctx, &machine.Command{Argv: []string{program, "fill-behind", workdir, "1000"}, Dir: workdir}); err != nil {
		a.t.Fatal(err)
	}
	const quiet = 20 // looks that must find nothing new
	for last, same := int64(-1), 0; same < quiet; time.Sleep(100 * time.Millisecond) {
		size := c.held()
		if same++; size != last || size < roomSize {
			last, same = size, 0
		}
		if size >= 900<<20 || ctx.Err() != nil {
			a.t.Fatalf("it goes on, or never began: %d MiB", size>>20)
		}
	}
	c.alive()
	if out, result := c.attack("clear", workdir); result.ExitCode != 0 {
		a.t.Fatalf("it cannot be cleared (%d, %q): %s", result.ExitCode, result.QuotaExceeded, out)
	}
}

// fillQuick has several processes write as fast as they can: they get no further than
// one limit each, whenever the guest measures next. While the workspace is full no
// command adds to it, also not after a restart; files can be removed, and then there
// is room again.
func fillQuick(a *arena) {
	const writers, each = 4, "200"
	c := a.startRationed()
	out, result := c.attack("fill-quick", workdir, each, strconv.Itoa(writers))
	a.t.Logf("%s, %q\n%s", ended(result), result.QuotaExceeded, out)
	size := c.held()
	if most := int64(writers*roomSize + 16<<20); size > most || size < roomSize {
		a.t.Errorf("%d MiB were written, at most %d can be", size>>20, most>>20)
	}
	c.addsNothing(size)
	if !a.Copies { // of which one that is full may be lost with its sandbox
		c = c.killAndStart()
		c.addsNothing(size)
	}
	if out, result := c.attack("clear", workdir); result.ExitCode != 0 {
		a.t.Fatalf("it cannot be cleared (%d, %q): %s", result.ExitCode, result.QuotaExceeded, out)
	}
	if out, result := c.attack("fill", workdir, "8", "8"); result.ExitCode != 1 {
		a.t.Errorf("8 MiB do not fit any more (%d, %q): %s", result.ExitCode, result.QuotaExceeded, out)
	}
}

func (c *cell) killAndStart() *cell {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_ = c.machine.Close()
	if err := errors.Join(c.instance.Kill(ctx), c.instance.Start(ctx)); err != nil {
		c.t.Fatal(err)
	}
	return c.enter(c.spec, c.instance)
}

// addsNothing runs commands in a full workspace, which cannot write.
func (c *cell) addsNothing(size int64) {
	c.t.Helper()
	for range 3 {
		out, result := c.attack("fill", workdir, "8", "8")
		if !strings.Contains(out, unix.EFBIG.Error()) || result.ExitCode != 0 {
			c.t.Errorf("a command in a full workspace ended with %d, %q, for %q\n%s", result.ExitCode, result.Signal, result.QuotaExceeded, out)
		}
	}
	if now := c.held(); now > size {
		c.t.Errorf("commands added %d bytes to a full workspace", now-size)
	}
}

// held is how much the files in the workspace hold. Of a copy only the sandbox can tell.
func (c *cell) held() (total int64) {
	c.t.Helper()
	if !c.Copies {
		return heldIn(c.path("workspace"))
	}
	for deadline := time.Now().Add(patience); ; {
		out, _ := c.attack("held", workdir)
		if _, err := fmt.Sscanf(out, "held %d", &total); err == nil {
			return total
		}
		if time.Now().After(deadline) { // it ends with others that fill the workspace
			c.t.Fatalf("it does not say how much it holds: %q", out)
		}
	}
}

// heldIn is how much the files in a directory hold.
func heldIn(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
