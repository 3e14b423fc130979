package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// OpenIndex opens a file that holds nothing which could not be made again: it
// has no migrations. A file of another version, or one that is damaged, is
// replaced by an empty one with the given schema.
func OpenIndex(ctx context.Context, path string, version int, schema string) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("index directory: %w", err)
	}
	db, err := openIndex(ctx, path, version, schema)
	if err == nil || !isDamage(err) {
		return db, err
	}
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + part); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return openIndex(ctx, path, version, schema)
}

func openIndex(ctx context.Context, path string, version int, schema string) (*DB, error) {
	handle := sql.OpenDB(&connector{&sqlite.Driver{}, dsn(path)})
	db := &DB{DB: handle, path: path}
	if err := db.makeSchema(ctx, version, schema); err != nil {
		_ = handle.Close()
		return nil, db.Explain(err)
	}
	return db, nil
}

// makeSchema makes the schema, in place of whatever another version left.
func (db *DB) makeSchema(ctx context.Context, version int, schema string) error {
	return db.Tx(ctx, func(tx *sql.Tx) error {
		var found int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil || found == version {
			return err
		}
		if err := dropTables(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
}

// dropTables drops what was made by name; the tables behind a full-text index go
// with it.
func dropTables(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE TABLE ''%' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		return err
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("DROP TABLE IF EXISTS %q", name)); err != nil {
			return err
		}
	}
	return nil
}
