package access_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStore returns a token store on a real file, with a clock that stands still.
func newStore(t *testing.T) (*access.TokenStore, *clocktest.Clock, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll.db")
	c := clocktest.At(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	return otherProcess(t, path, c), c, path
}

// otherProcess returns the token store of another process on the same file.
func otherProcess(t *testing.T, path string, c *clocktest.Clock) *access.TokenStore {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return access.NewTokenStore(access.TokenStoreOptions{DB: db, Now: c.Now})
}

// keep runs a token store's background work for the length of a test.
func keep(t *testing.T, d *access.TokenStore) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	work.Go(func() { d.Maintain(ctx) })
	t.Cleanup(func() { cancel(); work.Wait() })
}

// ends waits for a channel to be closed.
func ends(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nobody was told", what)
	}
}

func open(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

func all(d *access.TokenStore, c *clocktest.Clock) *access.Access {
	return &access.Access{Tokens: d, Devices: access.NewDevices(d), Limiter: access.NewLimiter(access.LimiterOptions{Now: c.Now}), Throttle: access.NewThrottle(c.Now)}
}
