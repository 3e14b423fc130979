package grant_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
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

func TestOneGrantAtATime(t *testing.T) {
	book, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	here, elsewhere := grant.NewDesk("s", &granttest.Place{}, book), grant.NewDesk("s", &granttest.Place{}, book)
	other := grant.NewDesk("another sandbox", &granttest.Place{}, book)
	first, err := here.Open(t.Context(), hour("first"))
	check(t, err)
	if _, err := here.Open(t.Context(), hour("second")); !errors.Is(err, grant.ErrOpen) || !strings.Contains(err.Error(), `"first"`) {
		t.Errorf("beside an open one: %v; want ErrOpen and the name of the run", err)
	}
	if _, err := elsewhere.Open(t.Context(), hour("second")); !errors.Is(err, grant.ErrOpen) {
		t.Errorf("at another desk: %v", err)
	}
	beside, err := other.Open(t.Context(), hour("second"))
	check(t, err)
	check(t, beside.Close())
	check(t, first.Close())
	check(t, first.Close())
	next, err := elsewhere.Open(t.Context(), hour("third"))
	check(t, err)
	check(t, next.Close())
}

func TestTermsThatMakeNoSense(t *testing.T) {
	desk := granttest.NewDesk(t, "s")
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
		if _, err := desk.Open(t.Context(), terms); !errors.Is(err, grant.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := desk.Open(t.Context(), hour("r"))
	check(t, err)
	check(t, g.Close())
}

func TestExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	synctest.Test(t, func(t *testing.T) {
		book, err := filelock.Open(path)
		check(t, err)
		place := &granttest.Place{}
		desk := grant.NewDesk("s", place, book)
		g, err := desk.Open(t.Context(), hour("r"))
		check(t, err)
		ours, theirs := net.Pipe()
		defer ours.Close()
		_, err = g.Bind(theirs)
		check(t, err)
		time.Sleep(59 * time.Minute)
		if desk.Present() != g {
			t.Error("it ended early")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if desk.Present() != nil || !errors.Is(g.Err(), grant.ErrExpired) {
			t.Errorf("after its end: %v", g.Err())
		}
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("its connection: %v", err)
		}
		if len(place.Told) != 2 || place.Told[1] != "end "+g.ID() {
			t.Errorf("the sandbox was told %q", place.Told)
		}
		next, err := desk.Open(t.Context(), hour("next"))
		check(t, err)
		check(t, next.Close())
	})
}

func TestASandboxThatCannotBeClearedOpensNothing(t *testing.T) {
	book, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	place := &granttest.Place{}
	desk := grant.NewDesk("s", place, book)
	g, err := desk.Open(t.Context(), hour("r"))
	check(t, err)
	stuck := errors.New("something is left")
	place.Fail = stuck
	if err := g.Close(); !errors.Is(err, stuck) {
		t.Errorf("close: %v", err)
	}
	if _, err := desk.Open(t.Context(), hour("next")); !errors.Is(err, stuck) {
		t.Errorf("open: %v", err)
	}
	if desk.Present() != nil {
		t.Error("a grant is open")
	}
	place.Fail = nil
	next, err := desk.Open(t.Context(), hour("next"))
	check(t, err)
	check(t, next.Close())
}

// TestWhoIsServed goes through the callers that a port of a sandbox can have.
func TestWhoIsServed(t *testing.T) {
	desk := granttest.NewDesk(t, "s")
	served := serveNames(t, desk, true)
	if got := served(t, ""); got != "403" {
		t.Errorf("no grant is open: %q", got)
	}
	first, err := desk.Open(t.Context(), hour("first"))
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
	second, err := desk.Open(t.Context(), hour("second"))
	check(t, err)
	if got := served(t, first.ID()); got != "403" {
		t.Errorf("left over from the first: %q", got)
	}
	if got := served(t, second.ID()); got != "second" {
		t.Errorf("the second's own: %q", got)
	}
	check(t, second.Close())
	if got := serveNames(t, desk, false)(t, second.ID()); got != "" {
		t.Errorf("a listener that knows no strangers: %q", got)
	}
}

// TestStrangersAreFew lets those without a grant keep their connections.
func TestStrangersAreFew(t *testing.T) {
	desk := granttest.NewDesk(t, "s")
	inner := granttest.NewListener()
	l := desk.Listener(inner, true)
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
	g, err := desk.Open(t.Context(), hour("r"))
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
func serveNames(t *testing.T, desk *grant.Desk, strangers bool) func(t *testing.T, id string) string {
	t.Helper()
	inner := granttest.NewListener()
	l := desk.Listener(inner, strangers)
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
