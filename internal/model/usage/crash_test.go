package usage_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/store"
)

// The child process: this test program again, told what to do by variables.
const (
	childDir  = "ATOLL_TEST_USAGE_DIR"
	childStep = "ATOLL_TEST_USAGE_STEP"
	childName = "ATOLL_TEST_USAGE_NAME"
)

func isChild() bool { return os.Getenv(childDir) != "" }

// child opens the ledger and kills itself at the named step.
func child() {
	ctx := context.Background()
	dir, step := os.Getenv(childDir), os.Getenv(childStep)
	db, err := store.Open(ctx, filepath.Join(dir, "atoll.db"))
	check(err)
	book, err := filelock.Open(filepath.Join(dir, "leases"))
	check(err)
	l, err := usage.Open(ctx, usage.Options{Dir: filepath.Join(dir, "usage"), DB: db, Locks: book, Prices: prices(), ProjectEvery: time.Hour})
	check(err)
	if step == "crowd" {
		crowd(ctx, l)
		check(l.Close())
		return
	}
	die := func(at string) {
		if at == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	die("opened")
	first, err := l.Reserve(ctx, call("first", 100, 100))
	check(err)
	die("reserved")
	_, err = first.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 90, Output: 10}, Status: 200})
	check(err)
	die("settled")
	second, err := l.Reserve(ctx, call("second", 100, 100))
	check(err)
	check(l.Flush(ctx))
	die("flushed with one under way")
	second.Release()
	die("released")
	check(l.Close())
	die("closed")
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// run starts a child and waits for its end.
func run(t *testing.T, dir, step, name string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childStep+"="+step, childName+"="+name)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// A process that is killed loses nothing that was settled; what it had under
// way is charged in full, once, by the next process that opens the ledger.
func TestKillAtEveryStep(t *testing.T) {
	const settled, held = 90 + 10*10, 100 + 100*10
	for step, want := range map[string]int64{
		"opened": 0, "reserved": held, "settled": settled, "flushed with one under way": settled + held, "released": settled, "closed": settled,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := state(t)
			if err := run(t, dir, step, ""); err == nil {
				t.Fatal("the child was to be killed")
			}
			for range 2 { // the second finds nothing more to do
				l := open(t, dir)
				for _, k := range [][2]string{{"run", "r1"}, {"session", "s1"}, {"agent", "main"}, {"account", "alice"}} {
					if got := spent(t, l, usage.Scope(k[0]), k[1]).MicroUSD; got != want {
						t.Errorf("%s: %d spent, want %d", k[0], got, want)
					}
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

const (
	crowdSize  = 4
	crowdCalls = 60
	crowdLimit = 100 * 30 // a call costs 30
)

// crowd makes calls against one budget until it is used up.
func crowd(ctx context.Context, l *usage.Ledger) {
	for i := range crowdCalls {
		r, err := l.Reserve(ctx, call(os.Getenv(childName)+"-"+strconv.Itoa(i), 10, 2, usage.Limit{Scope: usage.ScopeAccount, MicroUSD: crowdLimit}))
		if _, over := err.(*usage.BudgetError); over { //nolint:errorlint // it is not wrapped, and a child has no test to fail
			continue
		}
		check(err)
		_, err = r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 10, Output: 2}, Status: 200})
		check(err)
	}
}

// Four processes spend one budget: together exactly what it allows.
func TestProcessesShareABudget(t *testing.T) {
	dir := state(t)
	ends := make(chan error)
	for i := range crowdSize {
		go func() { ends <- run(t, dir, "crowd", strconv.Itoa(i)) }()
	}
	for range crowdSize {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	l := open(t, dir)
	if got := spent(t, l, usage.ScopeAccount, "alice"); got.MicroUSD != crowdLimit || got.Calls != crowdLimit/30 {
		t.Errorf("%d calls spent %d, want %d and %d", got.Calls, got.MicroUSD, crowdLimit/30, crowdLimit)
	}
}
