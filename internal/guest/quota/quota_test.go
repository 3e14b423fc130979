package quota

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const mebi = 1 << 20

// Everything below the directories counts: names of every kind, what hard links
// share once, and holes not at all.
func TestMeasure(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	deep := mkdir(t, filepath.Join(one, strings.Repeat("d/", 100)))
	write(t, filepath.Join(deep, "a"), mebi)
	write(t, filepath.Join(two, "b"), mebi)
	for _, err := range []error{
		os.Link(filepath.Join(two, "b"), filepath.Join(two, "again")), os.Symlink("/", filepath.Join(two, "link")),
		unix.Mkfifo(filepath.Join(two, "fifo"), 0o600), os.Truncate(filepath.Join(deep, "a"), 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u := (&Limits{Dirs: []string{one, two}}).Measure(nil)
	if u.Files != 100+1+4 || u.Bytes < 2*mebi || u.Bytes > 4*mebi || u.Endless || u.Free <= 0 {
		t.Errorf("%+v, want 105 files, 2 MiB and a little", u)
	}
}

// A directory of many files is read piece by piece, each once.
func TestMeasureManyFiles(t *testing.T) {
	dir := t.TempDir()
	for n := range 3000 {
		if n%3 == 0 {
			mkdir(t, filepath.Join(dir, fmt.Sprintf("directory-%d", n)))
			continue
		}
		write(t, filepath.Join(dir, fmt.Sprintf("file-%d", n)), 0)
	}
	if u := (&Limits{Dirs: []string{dir}}).Measure(nil); u.Files != 3000 {
		t.Errorf("%d files, want 3000", u.Files)
	}
}

// Files without a name count as long as a process holds them.
func TestMeasureNamelessFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hidden")
	write(t, path, mebi)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	twice, err := os.Open(path) // it is the same
	if err != nil {
		t.Fatal(err)
	}
	defer twice.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r := &Limits{Dirs: []string{dir}}
	if u := r.Measure(nil); u.Bytes >= mebi {
		t.Errorf("without processes %+v", u)
	}
	if u := r.Measure(func(f func(int)) { f(os.Getpid()) }); u.Bytes < mebi || u.Bytes >= 2*mebi || u.Files != 1 {
		t.Errorf("with the process that holds it %+v", u)
	}
}

// What is closed, or too deep to be opened, hides nothing.
func TestMeasureFindsWhatIsHidden(t *testing.T) {
	if os.Geteuid() == 0 {
		dropToNobody(t)
		return
	}
	dir := t.TempDir()
	closed := mkdir(t, filepath.Join(dir, "closed"))
	within := mkdir(t, filepath.Join(closed, "within"))
	write(t, filepath.Join(within, "a"), mebi)
	if err := errors.Join(os.Chmod(within, 0o400), os.Chmod(closed, 0)); err != nil { // in this order
		t.Fatal(err)
	}
	if u := (&Limits{Dirs: []string{dir}}).Measure(nil); u.Files != 3 || u.Bytes < mebi {
		t.Errorf("behind closed directories: %+v", u)
	}
	t.Chdir(dir)
	for range 40 {
		name := strings.Repeat("x", 200)
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil { //nolint:usetesting // deeper than a path can say
			t.Fatal(err)
		}
	}
	r := &Limits{Dirs: []string{dir}, Files: 1000}
	if u := r.Measure(nil); !u.Endless || r.Exceeded(&u) != wire.QuotaFiles {
		t.Errorf("deeper than a path can say: %+v", u)
	}
}

func TestOver(t *testing.T) {
	r := &Limits{Size: 10, Files: 5, Reserve: 3}
	for name, c := range map[string]struct {
		usage Usage
		want  wire.QuotaLimit
	}{
		"within":      {Usage{Bytes: 10, Files: 5, Free: 3}, ""},
		"too large":   {Usage{Bytes: 11, Files: 5, Free: 3}, wire.QuotaSize},
		"too many":    {Usage{Bytes: 10, Files: 6, Free: 3}, wire.QuotaFiles},
		"nearly full": {Usage{Bytes: 10, Files: 5, Free: 2}, wire.QuotaDisk},
		"endless":     {Usage{Free: 3, Endless: true}, wire.QuotaFiles},
	} {
		if got := r.Exceeded(&c.usage); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if !(&Limits{}).None() || !(&Limits{Dirs: []string{"/"}}).None() || (&Limits{Dirs: []string{"/"}, Files: 1}).None() {
		t.Error("what is limited is not told from what is not")
	}
}

// A directory that is closed again and again while it is measured is counted
// all the same: what is behind it does not become more than can be counted.
func TestClosedMeanwhile(t *testing.T) {
	if os.Getuid() == 0 {
		dropToNobody(t)
		return
	}
	dir := t.TempDir()
	closed := mkdir(t, filepath.Join(dir, "closed"))
	within := mkdir(t, filepath.Join(closed, "within"))
	for n := range 20 {
		if err := os.WriteFile(filepath.Join(within, strconv.Itoa(n)), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Microsecond):
				_ = os.Chmod(closed, 0)
			}
		}
	}()
	r := &Limits{Dirs: []string{dir}, Size: 1 << 30, Files: 1000}
	for range 500 {
		if u := r.Measure(nil); u.Endless || u.Files != 22 {
			t.Errorf("%+v", u)
			break
		}
	}
	close(stop)
	<-done
	_ = os.Chmod(closed, 0o700)
}
