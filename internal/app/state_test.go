package app_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// A registry that cannot be read is refused and left as it is. Following the
// hint word by word brings everything back.
func TestDamagedRegistryIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"not a database": func([]byte) []byte { return []byte(strings.Repeat("no database ", 1000)) },
		"cut off":        func(data []byte) []byte { return data[:len(data)/2+100] },
		"pages overwritten": func(data []byte) []byte {
			return append(data[:4096:4096], bytes.Repeat([]byte{0x5a}, len(data)-4096)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			a := s.open()
			before := s.provide(a, session("kept"))
			before.Release()
			a.Close()
			database := filepath.Join(s.state, "atoll.db")
			data, err := os.ReadFile(database)
			if err != nil {
				t.Fatal(err)
			}
			broken := damage(data)
			if err := os.WriteFile(database, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			hint := s.wantDamaged(database)
			if now, err := os.ReadFile(database); err != nil || !bytes.Equal(now, broken) {
				t.Errorf("the damaged file was changed: %d bytes, were %d, %v", len(now), len(broken), err)
			}
			s.followHint(hint)
			after := s.provide(s.open(), session("kept"))
			if after.Created {
				t.Error("the sandbox was not found again by its label")
			}
			if left := s.ours(); len(left) != 1 {
				t.Errorf("%d containers", len(left))
			}
		})
	}
}

// wantDamaged uses the installation until the damage shows, and returns what
// the error advises.
func (s *site) wantDamaged(database string) string {
	s.t.Helper()
	a, err := s.try()
	if err == nil {
		defer a.Close()
		_, err = a.Provide(s.t.Context(), session("kept"), provide.Options{})
	}
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), database) {
		s.t.Fatalf("%v: want that %s is damaged", err, database)
	}
	return errhint.Of(err)
}

// followHint runs the command that a hint gives between backquotes.
func (s *site) followHint(hint string) {
	s.t.Helper()
	_, rest, _ := strings.Cut(hint, "`")
	command, _, ok := strings.Cut(rest, "`")
	if !ok {
		s.t.Fatalf("hint %q gives no command", hint)
	}
	if out, err := exec.CommandContext(s.t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func TestDamagedInstallationIDIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.open().Close()
	path := filepath.Join(s.state, "installation")
	for _, content := range []string{"", "nonsense\n", strings.Repeat("A", 1<<20)} {
		s.write(path, content)
		_, err := s.try()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(errhint.Of(err), "backup") {
			t.Errorf("with %.20q: %.300v", content, err)
		}
		if now, _ := os.ReadFile(path); string(now) != content {
			t.Errorf("it was changed to %q", now)
		}
	}
}

// TestLostInstallationIDIsFoundInTheDatabase: without the file the sandboxes are
// still ours. Where the database does not have the id either, nothing starts.
func TestLostInstallationIDIsFoundInTheDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	id := a.ID
	s.provide(a, session("kept")).Release()
	a.Close()
	path := filepath.Join(s.state, "installation")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	a = s.open()
	if again := s.provide(a, session("kept")); a.ID != id || again.Created {
		t.Errorf("the id is %s, was %s; the sandbox was made anew: %v", a.ID, id, again.Created)
	} else {
		again.Release()
	}
	a.Close()
	if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != id {
		t.Errorf("the file holds %q, %v", text, err)
	}

	db, err := store.Open(t.Context(), filepath.Join(s.state, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "DELETE FROM facts WHERE name = 'installation'")
	if err := errors.Join(err, db.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.try(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(errhint.Of(err), "backup") {
		t.Errorf("without the id anywhere: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new id was made, and the sandbox is another program's now")
	}
	s.write(path, id+"\n")
}

// stateOn puts the state directory on a file system of its own.
func (s *site) stateOn(size string) {
	s.t.Helper()
	need.Root(s.t, "it mounts a file system")
	s.mkdir(s.state)
	if err := unix.Mount("tmpfs", s.state, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		s.t.Fatalf("mount a tmpfs: %v", err)
	}
	s.t.Cleanup(func() {
		s.clear()
		if err := unix.Unmount(s.state, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

func TestReadOnlyStateDirectory(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"never used": false, "used before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.stateOn("320m")
			if used {
				s.open().Close()
			}
			if err := unix.Mount("", s.state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			_, err := s.try()
			if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), s.state) || !strings.Contains(errhint.Of(err), "ATOLL_STATE_DIR") {
				t.Errorf("%v (hint: %s)", err, errhint.Of(err))
			}
		})
	}
}

// fill leaves room for about spare bytes on the state's file system.
func (s *site) fill(spare int64) (free func()) {
	s.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(s.state, &st); err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.state, "filler")
	f, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if size := int64(st.Bavail)*st.Bsize - spare; size > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			s.t.Error(err)
		}
	}
}

func TestDiskFullWhileSeeding(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stateOn("320m")
	seed := strings.Repeat("x", 600<<10)
	s.write(filepath.Join(s.agent, "AGENTS.md"), seed)
	s.write(filepath.Join(s.agent, "SOUL.md"), seed)
	s.openAndDiscard()
	a := s.open()
	free := s.fill(1 << 20) // the first fits, the second does not
	_, err := a.Provide(t.Context(), session("full"), provide.Options{})
	s.wantNoSpace(err, "workspace")
	free()
	p, err := a.Plan(session("full"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AGENTS.md", "SOUL.md"} {
		if got, err := os.ReadFile(filepath.Join(p.Layout.SandboxDir, name)); err == nil && string(got) != seed {
			t.Errorf("%s is half-made: %d bytes", name, len(got))
		}
	}
	if rows, containers := s.rows(a), s.ours(); len(rows) != 0 || len(containers) != 0 {
		t.Errorf("left: %v, %v", rows, containers)
	}
	got := s.provide(a, session("full"))
	if out := sh(t, got, "cat AGENTS.md SOUL.md | wc -c"); out != "1228800" {
		t.Errorf("with space again the seeds have %s bytes", out)
	}
}

func TestDiskFullWhileWritingTheRegistry(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stateOn("320m")
	s.openAndDiscard()
	a := s.open()
	a.Manager.Checkpoint = func(step string) {
		if step == "before intent" {
			s.fill(0)
		}
	}
	_, err := a.Provide(t.Context(), session("full"), provide.Options{})
	s.wantNoSpace(err, "register")
	if err := os.Remove(filepath.Join(s.state, "filler")); err != nil {
		t.Fatal(err)
	}
	if rows, containers := s.rows(a), s.ours(); len(rows) != 0 || len(containers) != 0 {
		t.Errorf("left: %v, %v", rows, containers)
	}
	a.Manager.Checkpoint = func(string) {}
	sh(t, s.provide(a, session("full")), "true")
}

// The disk fills up later: the sandbox is there, but its row cannot be finished.
// Then the sandbox must go, or be found and removed by the next start.
func TestDiskFullWhileFinishing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stateOn("320m")
	s.openAndDiscard()
	a := s.open()
	a.Manager.Checkpoint = func(step string) {
		if step == "before ready" {
			s.fill(0)
		}
	}
	got, err := a.Provide(t.Context(), session("full"), provide.Options{})
	if err == nil {
		got.Release() // there was room in the log of the database
	} else {
		s.wantNoSpace(err, "register")
	}
	if left := s.ours(); err != nil && len(left) != 0 {
		t.Errorf("left on the engine: %+v", left)
	}
	if err := os.Remove(filepath.Join(s.state, "filler")); err != nil {
		t.Fatal(err)
	}
	a.Close()
	next := s.open()
	sh(t, s.provide(next, session("full")), "true")
	if rows, containers := s.rows(next), s.ours(); len(rows) != 1 || len(containers) != 1 {
		t.Errorf("%d rows, %d containers", len(rows), len(containers))
	}
}

func TestDiskFullAtFirstUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stateOn("4m")
	free := s.fill(0)
	_, err := s.try()
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), s.state) || errhint.Of(err) == "" {
		t.Errorf("%v (hint: %s)", err, errhint.Of(err))
	}
	if files := filesIn(t, s.state); len(files) != 2 { // itself and the filler
		t.Errorf("half-made: %v", files)
	}
	free()
	s.open()
}

// openAndDiscard lets the installation make what it makes only once.
func (s *site) openAndDiscard() {
	s.t.Helper()
	a := s.open()
	defer a.Close()
	got := s.provide(a, session("first"))
	got.Release()
	if err := a.Discard(s.t.Context(), got.Plan); err != nil {
		s.t.Fatal(err)
	}
}

// wantNoSpace wants the typed error of a full disk, of a step, with advice.
func (s *site) wantNoSpace(err error, step string) {
	s.t.Helper()
	provision, typed := errors.AsType[*sandbox.ProvisionError](err)
	if !typed || provision.Step != step {
		s.t.Fatalf("%v: want a *ProvisionError of step %q", err, step)
	}
	if text := err.Error(); !strings.Contains(text, "no space left") && !strings.Contains(text, "disk is full") {
		s.t.Errorf("%v does not say that the disk is full", err)
	}
	if hint := errhint.Of(err); !strings.Contains(strings.ToLower(hint), "free") {
		s.t.Errorf("hint %q does not say what to do", hint)
	}
}

// The clock is set back after a sandbox was used: it is neither hot for ever
// nor kept from prune.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	future := s.open()
	future.Manager.Now = func() time.Time { return time.Now().Add(20000 * time.Hour) }
	s.provide(future, session("clock")).Release()
	future.Close()
	a := s.open()
	offset := time.Duration(0)
	a.Manager.Now = func() time.Time { return time.Now().Add(offset) }
	if removed, err := a.Prune(t.Context(), false); len(removed) != 0 || err != nil {
		t.Errorf("pruned at once: %+v, %v", removed, err)
	}
	offset = 25 * time.Hour
	if removed, err := a.Prune(t.Context(), false); len(removed) != 1 || err != nil {
		t.Errorf("a day later: %+v, %v", removed, err)
	}
}
