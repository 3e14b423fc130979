package grant_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/testkit/granttest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hour are terms for a run that has an hour.
func hour(run string) *grant.Terms { return &grant.Terms{Run: run, Until: time.Now().Add(time.Hour)} }

// TestGrantsOfOneAccount opens several grants in one sandbox, over two openers as in two
// processes. Those of one account are open at the same time; another account is refused
// until the last of them has ended.
func TestGrantsOfOneAccount(t *testing.T) {
	locks, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	inside := &granttest.Sandbox{}
	here, elsewhere := grant.NewGrants("s", inside, locks), grant.NewGrants("s", inside, locks)
	first, err := here.Open(t.Context(), ofAccount("ann", "first"))
	check(t, err)
	second, err := here.Open(t.Context(), ofAccount("ann", "second"))
	check(t, err)
	third, err := elsewhere.Open(t.Context(), ofAccount("ann", "third"))
	check(t, err)
	want := []string{"open " + first.ID(), "share " + second.ID(), "share " + third.ID()}
	if !slices.Equal(inside.Calls, want) {
		t.Errorf("the sandbox was told %q; want %q", inside.Calls, want)
	}
	if _, err := elsewhere.Find(first.ID()); !errors.Is(err, grant.ErrStranger) {
		t.Errorf("a grant of another process: %v", err)
	}
	for _, g := range []*grant.Grant{first, second, third} {
		for _, opener := range []*grant.Grants{here, elsewhere} {
			if _, err := opener.Open(t.Context(), ofAccount("bob", "other")); !errors.Is(err, grant.ErrOtherAccount) {
				t.Errorf("another account beside open grants: %v", err)
			}
		}
		found, err := here.Find(g.ID())
		if g != third && (found != g || err != nil) {
			t.Errorf("%s: %v, %v", g.Terms().Run, found, err)
		}
		check(t, g.Close())
		check(t, g.Close())
		if _, err := here.Find(g.ID()); err == nil {
			t.Errorf("%s is found after its end", g.Terms().Run)
		}
	}
	for _, account := range []string{"bob", "ann", ""} {
		next, err := elsewhere.Open(t.Context(), ofAccount(account, "next"))
		check(t, err)
		if got := inside.Calls[len(inside.Calls)-1]; got != "open "+next.ID() {
			t.Errorf("the sandbox was told %q; want that nothing else is left", got)
		}
		check(t, next.Close())
	}
}

// TestOtherSandboxes: the rule is about one sandbox.
func TestOtherSandboxes(t *testing.T) {
	locks, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	for _, name := range []string{"s", "s of account ann", "another"} {
		g, err := grant.NewGrants(name, &granttest.Sandbox{}, locks).Open(t.Context(), ofAccount(name, "run"))
		check(t, err)
		t.Cleanup(func() { _ = g.Close() })
	}
}

func ofAccount(account, run string) *grant.Terms {
	terms := hour(run)
	terms.Account = account
	return terms
}

func TestTermsThatMakeNoSense(t *testing.T) {
	grants := granttest.NewGrants(t, "s")
	for name, spoil := range map[string]func(*grant.Terms){
		"no end":           func(t *grant.Terms) { t.Until = time.Time{} },
		"the past":         func(t *grant.Terms) { t.Until = time.Now().Add(-time.Second) },
		"too long":         func(t *grant.Terms) { t.Until = time.Now().Add(grant.MaxLife + time.Hour) },
		"negative":         func(t *grant.Terms) { t.Budget.Tokens = -1 },
		"a header in it":   func(t *grant.Terms) { t.Run = "a\r\nX-Admin: 1" },
		"a long name":      func(t *grant.Terms) { t.Account = strings.Repeat("a", 257) },
		"a nameless model": func(t *grant.Terms) { t.Models = []string{""} },
		"too many models":  func(t *grant.Terms) { t.Models = strings.Split(strings.Repeat("m,", 256)+"m", ",") },
	} {
		terms := hour("r")
		spoil(terms)
		if _, err := grants.Open(t.Context(), terms); !errors.Is(err, grant.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := grants.Open(t.Context(), hour("r"))
	check(t, err)
	check(t, g.Close())
}

func TestExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	synctest.Test(t, func(t *testing.T) {
		locks, err := filelock.Open(path)
		check(t, err)
		inside := &granttest.Sandbox{}
		grants := grant.NewGrants("s", inside, locks)
		g, err := grants.Open(t.Context(), hour("r"))
		check(t, err)
		ours, theirs := net.Pipe()
		defer ours.Close()
		_, err = g.Bind(theirs)
		check(t, err)
		time.Sleep(59 * time.Minute)
		if found, err := grants.Find(g.ID()); found != g {
			t.Errorf("it ended early: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := grants.Find(g.ID()); !errors.Is(err, grant.ErrNone) || !errors.Is(g.Err(), grant.ErrExpired) {
			t.Errorf("after its end: %v", g.Err())
		}
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("its connection: %v", err)
		}
		if len(inside.Calls) != 2 || inside.Calls[1] != "end "+g.ID() {
			t.Errorf("the sandbox was told %q", inside.Calls)
		}
		next, err := grants.Open(t.Context(), hour("next"))
		check(t, err)
		check(t, next.Close())
	})
}

func TestASandboxThatCannotBeClearedOpensNothing(t *testing.T) {
	locks, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	inside := &granttest.Sandbox{}
	grants := grant.NewGrants("s", inside, locks)
	g, err := grants.Open(t.Context(), hour("r"))
	check(t, err)
	stuck := errors.New("something is left")
	inside.Fail = stuck
	if err := g.Close(); !errors.Is(err, stuck) {
		t.Errorf("close: %v", err)
	}
	if _, err := grants.Open(t.Context(), hour("next")); !errors.Is(err, stuck) {
		t.Errorf("open: %v", err)
	}
	if _, err := grants.Find(g.ID()); !errors.Is(err, grant.ErrNone) {
		t.Errorf("after its end: %v", err)
	}
	inside.Fail = nil
	next, err := grants.Open(t.Context(), hour("next"))
	check(t, err)
	check(t, next.Close())
}

// TestWhoIsServed goes through the callers that a port of a sandbox can have.
func TestWhoIsServed(t *testing.T) {
	grants := granttest.NewGrants(t, "s")
	served := serveNames(t, grants, true)
	if got := served(t, ""); got != "403" {
		t.Errorf("no grant is open: %q", got)
	}
	first, err := grants.Open(t.Context(), hour("first"))
	check(t, err)
	if got := served(t, first.ID()); got != "first" {
		t.Errorf("its own process: %q", got)
	}
	for name, id := range map[string]string{"started under none": "", "forged": "FORGED", "part of it": first.ID()[:5]} {
		if got := served(t, id); got != "403" {
			t.Errorf("%s: %q", name, got)
		}
	}
	check(t, first.Close())
	if got := served(t, first.ID()); got != "403" {
		t.Errorf("after its end: %q", got)
	}
	second, err := grants.Open(t.Context(), hour("second"))
	check(t, err)
	if got := served(t, first.ID()); got != "403" {
		t.Errorf("left over from the first: %q", got)
	}
	if got := served(t, second.ID()); got != "second" {
		t.Errorf("the second's own: %q", got)
	}
	check(t, second.Close())
	if got := serveNames(t, grants, false)(t, second.ID()); got != "" {
		t.Errorf("a listener that knows no strangers: %q", got)
	}
}

// TestStrangersAreFew lets those without a grant keep their connections.
func TestStrangersAreFew(t *testing.T) {
	grants := granttest.NewGrants(t, "s")
	inner := granttest.NewListener()
	l := grants.Listener(inner, true)
	accepted := make(chan net.Conn, 2*grant.MaxStrangers)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	for range grant.MaxStrangers + 3 {
		conn, err := inner.Dial(t.Context(), "")
		check(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	g, err := grants.Open(t.Context(), hour("r"))
	check(t, err)
	conn, err := inner.Dial(t.Context(), g.ID())
	check(t, err)
	defer conn.Close()
	strangers := 0
	for conn := range accepted {
		if grant.Of(conn) == g {
			break
		}
		strangers++
		if strangers == 1 {
			check(t, conn.Close())
		}
	}
	if strangers < grant.MaxStrangers || strangers > grant.MaxStrangers+1 {
		t.Errorf("%d strangers were let in; want %d", strangers, grant.MaxStrangers)
	}
	check(t, l.Close())
	for range accepted { // until the end
	}
	check(t, g.Close())
}

// serveNames answers each connection with the run that it belongs to, and returns
// how to ask.
func serveNames(t *testing.T, grants *grant.Grants, strangers bool) func(t *testing.T, id string) string {
	t.Helper()
	inner := granttest.NewListener()
	l := grants.Listener(inner, strangers)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			name := "403"
			if g := grant.Of(conn); g != nil {
				name = g.Terms().Run
			}
			_, _ = io.WriteString(conn, name)
			_ = conn.Close()
		}
	}()
	return func(t *testing.T, id string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := inner.Dial(ctx, id)
		check(t, err)
		defer conn.Close()
		got, err := io.ReadAll(conn)
		check(t, err)
		return string(got)
	}
}
