package escapetest

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// watchersOfTheHost uses up inotify instances, which the kernel counts by user: those
// of the same user outside must not be used up.
func watchersOfTheHost(a *arena) {
	c := a.start()
	in, typed := io.Pipe()
	held, ended := &firstLines{seen: make(chan struct{})}, make(chan error, 1)
	go func() {
		_, err := c.machine.Exec(a.t.Context(), &machine.Command{Argv: []string{program, "watchers", "4096", "hold"}, Dir: workdir, Stdin: in, Stdout: held, Stderr: held})
		ended <- err
	}()
	select {
	case <-held.seen:
	case err := <-ended:
		a.t.Fatalf("the attack ended: %v", err)
	}
	out, code := outside(a.t, a.dir, "watchers", "8")
	if code != 1 && !a.SharedUsers {
		a.t.Errorf("the host's user has no inotify instances left (%d)\n%s", code, out)
	}
	a.t.Logf("outside, meanwhile: %s", out)
	c.alive()
	_ = typed.Close()
	if err := <-ended; err != nil {
		a.t.Error(err)
	}
}

// firstLines notices when an attack holds what it got.
type firstLines struct {
	text bytes.Buffer
	seen chan struct{}
}

func (f *firstLines) Write(p []byte) (int, error) {
	before := strings.Contains(f.text.String(), "holding")
	n, err := f.text.Write(p)
	if !before && strings.Contains(f.text.String(), "holding") {
		close(f.seen)
	}
	return n, err
}

// inodesOfTmp is how many files a temporary file system is asked to hold.
const inodesOfTmp = 1000

// numberedInodes makes more files than a temporary file system may hold, where a
// number is set: then small files cannot use up the kernel's memory, also without a
// limit of memory.
func numberedInodes(a *arena) {
	c := a.start(func(s *sandbox.Spec) {
		s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: fmt.Sprintf("size=16m,nr_inodes=%d", inodesOfTmp)}}
	})
	if out, result := c.attack("inodes", "/tmp", "100"); result.ExitCode != 1 {
		a.t.Errorf("not even a hundred files can be made (%d)\n%s", result.ExitCode, out)
	}
	c.mustStop(bomb{name: "inodes", large: []string{"inodes", "/tmp", fmt.Sprint(2 * inodesOfTmp)}})
	c.alive()
}

// writableRoot writes to a root that may be changed, which is on the host's disk. The
// limit of the size of files holds there too; there is none of their number.
func writableRoot(a *arena) {
	c := a.start(func(s *sandbox.Spec) {
		s.ReadOnlyRoot, s.User = false, "0:0" // to whom an image's root belongs
		s.Limits.Ulimits = []sandbox.Ulimit{{Name: "fsize", Soft: 32 << 20, Hard: 32 << 20}}
	})
	dir := "/atoll-fill"
	if out, result := c.attack("make-directory", dir); result.ExitCode != 1 {
		a.t.Fatalf("a root that may be written cannot be (%d)\n%s", result.ExitCode, out)
	}
	if out, result := c.attack("fill", dir, "8", "64"); result.ExitCode != 1 {
		a.t.Errorf("a root that may be written cannot be (%d)\n%s", result.ExitCode, out)
	}
	c.mustStop(bomb{name: "fill", large: []string{"fill", dir, "64", "64"}, ends: true})
	c.alive()
}
