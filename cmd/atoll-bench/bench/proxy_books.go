package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/store"
)

// books are what the proxy keeps of requests: the ledger and the audit log.
type books struct {
	db     *store.DB
	ledger *usage.Ledger
	log    *audit.Log
}

// openBooks opens new ones in a directory.
func openBooks(ctx context.Context, dir string) (_ *books, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b := &books{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.db, err = store.Open(ctx, filepath.Join(dir, "atoll.db")); err != nil {
		return nil, err
	}
	leases, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		return nil, err
	}
	price := usage.Price{Input: usage.PerMillion(1), Output: usage.PerMillion(10)}
	b.ledger, err = usage.Open(ctx, usage.Options{
		Dir: filepath.Join(dir, "usage"), DB: b.db, Locks: leases, Prices: usage.NewPrices(map[string]usage.Price{"bench": price}),
	})
	if err != nil {
		return nil, err
	}
	b.log, err = audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	return b, err
}

// close closes what was opened.
func (b *books) close() (err error) {
	if b.log != nil {
		err = b.log.Close()
	}
	if b.ledger != nil {
		err = errors.Join(err, b.ledger.Close())
	}
	if b.db != nil {
		err = errors.Join(err, b.db.Close())
	}
	return err
}
