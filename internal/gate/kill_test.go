package gate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// A test that kills a gate starts the test binary again, with this variable telling
// it what to do.
const orderVariable = "ATOLL_GATE_TEST_ORDER"

// rounds is how often a test repeats what it tries; the variable sets another number.
func rounds(t *testing.T, variable string, number int) int {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		var err error
		if number, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return number
}

// recoverOnly is the order to open a gate and nothing else.
const recoverOnly = "recover"

// killOrder is what such a process does.
type killOrder struct {
	Dir    string // of the site
	Undo   string // the batch to undo; "" approves everything that passes
	DieAt  string // the step that it ends itself at, with SIGKILL
	DieNth int    // the how manieth of these steps, from 0
}

// TestMain is also the program that is killed, and what scripts call for attributes.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && (os.Args[1] == "xattr" || os.Args[1] == "hexattr") { // file, name, value
		value, err := []byte(os.Args[4]), error(nil)
		if os.Args[1] == "hexattr" {
			value, err = hex.DecodeString(os.Args[4])
		}
		if err := errors.Join(err, unix.Lsetxattr(os.Args[2], os.Args[3], value, 0)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if text := os.Getenv(orderVariable); text != "" {
		var o killOrder
		if err := errors.Join(json.Unmarshal([]byte(text), &o), o.carryOut(context.Background())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (o *killOrder) carryOut(ctx context.Context) error {
	tree, err := overlay.Load(filepath.Join(o.Dir, "state/overlay/slug/0"))
	if err != nil {
		return err
	}
	seen := 0
	g, err := Open(ctx, Options{Dir: filepath.Join(o.Dir, "state/sync"), Base: tree.Base, Source: tree, checkpoint: func(step string) {
		if step != o.DieAt {
			return
		}
		if seen++; seen > o.DieNth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		return err
	}
	defer g.Close()
	if o.Undo == recoverOnly {
		return nil
	}
	if o.Undo != "" {
		_, err = g.Undo(ctx, o.Undo, "killed")
		return err
	}
	set, err := g.Last()
	if err != nil || len(set.Entries) == 0 || o.DieAt == "staged one" || o.DieAt == "set" {
		if set, err = g.Collect(ctx); err != nil {
			return err
		}
	}
	_, err = g.Approve(ctx, passing(set), Decision{By: "killed", ConfirmDeletions: true})
	return err
}

// run runs an order and reports whether it was killed.
func (s *site) run(o killOrder) bool {
	s.t.Helper()
	o.Dir = s.dir
	text, err := json.Marshal(o)
	s.must(err)
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		s.t.Fatalf("%+v: %v\n%s", o, err, out)
	}
	return false
}

// reopen opens a gate, which recovers, and looks for what is left over.
func (s *site) reopen(during string) *Gate {
	s.t.Helper()
	tree, err := overlay.Load(s.source.Dir)
	s.must(err)
	s.load(tree)
	g, err := Open(s.t.Context(), s.opt)
	s.must(err)
	if strings.Contains(s.tree("base"), TempPrefix) {
		s.t.Fatalf("%s: temporary files are left\n%s", during, s.tree("base"))
	}
	return g
}

// points are the steps at which a process is killed.
func points() []string {
	return []string{"staged one", "set", "begun", "written", "ready", "looked", "exchanged", "placed one", "synced", "placed", "kept one", "kept", "noted", "ended"}
}

// TestInvariant_SYNC_ALL_OR_NOTHING_A_FILE kills a gate at every step of applying
// and undoing: the next one finishes the batch or takes it back, as a whole.
func TestInvariant_SYNC_ALL_OR_NOTHING_A_FILE(t *testing.T) {
	s := newSite(t, project())
	before := s.tree("base")
	s.inside(everyKind)
	g, err := Open(t.Context(), s.opt)
	s.must(err)
	s.approveAll(g, s.collect(g))
	after := s.tree("base")
	last := g.History()[0].ID
	_, err = g.Undo(t.Context(), last, "me")
	s.must(err)
	s.must(g.Close())
	applied, takenBack := 0, 0
	for round := range rounds(t, "ATOLL_GATE_KILL_ROUNDS", 2) {
		for _, point := range points() {
			during := fmt.Sprintf("%s, round %d", point, round)
			g := s.reopen(during)
			s.readyToApply(g)
			s.must(g.Close())
			killed := s.run(killOrder{DieAt: point, DieNth: round % 11})
			s.twice(point, round)
			g = s.reopen(during)
			switch now := s.tree("base"); {
			case now == after:
				applied++
			case now == before && killed:
				takenBack++
				s.must(g.Close())
				continue
			default:
				t.Fatalf("%s: killed %v, the base has\n%s", during, killed, now)
			}
			id := g.History()[0].ID
			s.must(g.Close())
			killed = s.run(killOrder{Undo: id, DieAt: point, DieNth: round % 11})
			g = s.reopen(during)
			switch now := s.tree("base"); {
			case now == before:
			case now == after && killed:
				_, err := g.Undo(t.Context(), id, "me")
				s.must(err)
			default:
				t.Fatalf("undo, %s: killed %v, the base has\n%s", during, killed, now)
			}
			if now := s.tree("base"); now != before {
				t.Fatalf("undo after %s: the base has\n%s", during, now)
			}
			s.must(g.Close())
		}
	}
	if applied == 0 || takenBack == 0 {
		t.Errorf("%d were finished and %d taken back", applied, takenBack)
	}
}

// twice kills the recovery too, every other time.
func (s *site) twice(point string, round int) {
	if round%2 == 1 {
		at := "took back one"
		if point == "placed" || point == "kept one" || point == "kept" {
			at = "kept one"
		}
		s.run(killOrder{Undo: recoverOnly, DieAt: at, DieNth: round % 3})
	}
}

// readyToApply collects, if nothing is collected, and overrides what needs it.
func (s *site) readyToApply(g *Gate) {
	s.t.Helper()
	set, err := g.Last()
	s.must(err)
	if len(set.Entries) == 0 {
		set = s.collect(g)
	}
	for _, e := range set.Entries {
		if e.Verdict == Approval {
			s.must(g.Override(e.Path, e.SHA256, "the test says so", "me"))
		}
	}
}

// ordinary is the uid that some tests run as once more.
const ordinary = 65534

// The attacks fail and the invariants hold for an ordinary user as well.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // they do already
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "gate.test")
	otheruser.Self(t, program)
	otheruser.Open(t, dir)
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, ordinary, ordinary)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "Attack|SEEN|WAY_BACK|EXACT|PRIVILEGES|COUNTED|CollectApproveUndo")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME=/nonexistent", "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
