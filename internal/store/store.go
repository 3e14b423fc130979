// Package store opens Atoll's SQLite file: driver, settings, migrations and
// transactions. What is in the tables belongs to the domain that owns them;
// no query lives here.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the newest migration. It is also written to the
// file's user_version, so that a process that finds it current asks nothing else.
var schemaVersion = newestMigration()

// newestMigration reads the number that the name of the last migration begins with.
func newestMigration() int {
	entries, err := migrations.ReadDir("migrations") // sorted by name
	if err != nil || len(entries) == 0 {
		panic(fmt.Sprintf("store: no migrations: %v", err))
	}
	number, _, _ := strings.Cut(entries[len(entries)-1].Name(), "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		panic("store: a migration without a number: " + number)
	}
	return version
}

// busyTimeout is how long a statement waits for another process's transaction,
// and busyPause how long between two tries where it does not wait by itself.
const (
	busyTimeout = 10 * time.Second
	busyPause   = 2 * time.Millisecond
)

// maxIdleConnections stay open: opening one takes longer than most queries.
const maxIdleConnections = 16

// logPages is how long the write-ahead log grows before it is moved into the
// file: every process that opens the file reads the log first.
const logPages = 200

// The states a file can be in that keep us from using it.
var (
	ErrDamaged = errors.New("damaged")
	ErrTooNew  = errors.New("made by a newer version of Atoll")
)

// ErrFull means that the disk of the file takes no more.
var ErrFull = errors.New("the disk is full")

// DB is the open file. Several processes may have it open at once.
type DB struct {
	*sql.DB
	path string
}

// Open opens the file at path, making or migrating it as needed. A file that
// cannot be read as ours is refused and left as it is.
func Open(ctx context.Context, path string) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := makePrivate(path); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	handle := sql.OpenDB(&connector{&sqlite.Driver{}, dsn(path)})
	handle.SetMaxIdleConns(maxIdleConnections)
	db := &DB{DB: handle, path: path}
	if err := db.prepare(ctx); err != nil {
		_ = handle.Close()
		return nil, db.Explain(err)
	}
	return db, nil
}

func dsn(path string) string {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"synchronous(NORMAL)",
		"foreign_keys(ON)",
		fmt.Sprintf("wal_autocheckpoint(%d)", logPages),
	}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// prepare brings the schema up to date. The common case is one small query.
func (db *DB) prepare(ctx context.Context) error {
	version, err := db.version(ctx)
	switch {
	case err != nil:
		return err
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("schema %d: %w", version, ErrTooNew)
	}
	return db.migrate(ctx)
}

func (db *DB) version(ctx context.Context) (version int, err error) {
	err = retryBusy(ctx, func() error {
		return db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	})
	return version, err
}

// retryBusy repeats f while another process holds a lock. SQLite itself waits for most
// locks, but not while a file is switched to write-ahead logging.
func retryBusy(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(busyTimeout); ; {
		err := f()
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(busyPause):
		}
	}
}

func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlitelib.SQLITE_BUSY
}

// migrate runs under a lock of its own: the migration tool has none for SQLite,
// and twenty processes may find a fresh directory at the same moment.
func (db *DB) migrate(ctx context.Context) error {
	book, err := filelock.Open(db.path + ".lock")
	if err != nil {
		return err
	}
	lock, err := book.Hold(ctx, "migrate")
	if err != nil {
		return err
	}
	defer lock.Release()
	if version, err := db.version(ctx); err != nil || version == schemaVersion {
		return err
	}
	// The mode stays with the file, so it is set once, here.
	err = retryBusy(ctx, func() error {
		_, err := db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
	if err != nil {
		return err
	}
	scripts, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	steps, err := goose.NewProvider(goose.DialectSQLite3, db.DB, scripts)
	if err != nil {
		return err
	}
	if _, err := steps.Up(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion))
	return err
}

// Tx runs f in one write transaction: all of it happens, or nothing.
func (db *DB) Tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return db.Explain(err)
	}
	if err := f(tx); err != nil {
		return errors.Join(db.Explain(err), ignoreDone(tx.Rollback()))
	}
	return db.Explain(tx.Commit())
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Path is the file's path, for messages.
func (db *DB) Path() string { return db.path }

// Explain adds the file and a remedy to an error that SQLite gave.
func (db *DB) Explain(err error) error {
	switch {
	case err == nil || errors.Is(err, sql.ErrNoRows):
		return err
	case errors.Is(err, ErrTooNew):
		return errhint.With(fmt.Errorf("database %s: %w", db.path, err), "use the newer atoll, or another ATOLL_STATE_DIR")
	case isDamage(err):
		return errhint.With(fmt.Errorf("database %s: %w: %w", db.path, ErrDamaged, err), db.damageHint())
	case hasCode(err, sqlitelib.SQLITE_FULL):
		return errhint.With(fmt.Errorf("database %s: %w: %w", db.path, ErrFull, err), "free space on its disk, then try again; what was recorded before is kept")
	case hasCode(err, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_PERM):
		return errhint.With(fmt.Errorf("database %s: %w", db.path, err), "make the file and its directory writable, or set another ATOLL_STATE_DIR")
	default:
		return fmt.Errorf("database %s: %w", db.path, err)
	}
}

// IsTransient reports whether an error is of the disk or of another process, so that
// the same write may succeed later.
func IsTransient(err error) bool {
	return hasCode(err, sqlitelib.SQLITE_FULL, sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_CANTOPEN)
}

// The time between two tries of a write, which doubles from the first to the second.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Retry repeats a write while its error is transient, until the context ends. Failed
// is called with every error that leads to another try.
func Retry(ctx context.Context, write func() error, failed func(error)) error {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := write()
		if err == nil || !IsTransient(err) {
			return err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// damageHint returns what a person can do about a damaged file. Nothing is emptied
// automatically: the registry may be the only record of what is running.
func (db *DB) damageHint() string {
	return fmt.Sprintf("restore it from a backup, or set it aside with `mv %[1]s %[1]s.damaged && rm -f %[1]s-wal %[1]s-shm` "+
		"and run `atoll sandbox prune`: sandboxes of this installation are found again by their label", db.path)
}

func isDamage(err error) bool {
	if _, ok := errors.AsType[*sqlite.Error](err); ok {
		return hasCode(err, sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB)
	}
	return strings.Contains(err.Error(), "malformed")
}

// hasCode reports whether SQLite gave one of the primary result codes.
func hasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, e.Code()&0xff)
}
