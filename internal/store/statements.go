package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
)

// connector opens connections that keep their statements.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(connection)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver lacks a part that is needed"), opened.Close())
	}
	return &cachingConn{connection: inner, kept: map[string]statement{}}, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return c.driver }

// connection is all that database/sql makes use of.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxStatements is how many a connection keeps. Our own are fewer.
const maxStatements = 64

// cachingConn is a connection with a cache of prepared statements: preparing one takes
// longer than running it. Like every connection it is used by one goroutine at a time.
type cachingConn struct {
	connection
	kept map[string]statement // those not in use
}

// isCacheable reports whether a query is worth keeping: one statement about rows.
func isCacheable(query string) bool {
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(verb) {
	case "SELECT", "INSERT", "UPDATE", "DELETE":
		return !strings.Contains(query, ";")
	}
	return false
}

// prepareCached returns a prepared statement; putBack returns it to the cache.
func (k *cachingConn) prepareCached(ctx context.Context, query string) (statement, error) {
	if s, ok := k.kept[query]; ok {
		delete(k.kept, query)
		return s, nil
	}
	made, err := k.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(statement)
	if !ok {
		return nil, errors.Join(errors.New("the SQLite driver's statements lack a part that is needed"), made.Close())
	}
	return s, nil
}

// putBack returns a statement to the cache.
func (k *cachingConn) putBack(query string, s statement) error {
	if _, ok := k.kept[query]; ok || k.kept == nil {
		return s.Close()
	}
	var err error
	if len(k.kept) >= maxStatements {
		for other, old := range k.kept { // any of them
			delete(k.kept, other)
			err = old.Close()
			break
		}
	}
	k.kept[query] = s
	return err
}

// ExecContext implements driver.ExecerContext.
func (k *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !isCacheable(query) {
		return k.connection.ExecContext(ctx, query, args)
	}
	s, err := k.prepareCached(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	if err != nil {
		_ = s.Close() // it repeats the error
		return nil, err
	}
	return result, k.putBack(query, s)
}

// QueryContext implements driver.QueryerContext.
func (k *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !isCacheable(query) {
		return k.connection.QueryContext(ctx, query, args)
	}
	s, err := k.prepareCached(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.Close() // it repeats the error
		return nil, err
	}
	return &cachedRows{Rows: rows, keeper: k, query: query, statement: s}, nil
}

// Close implements driver.Conn.
func (k *cachingConn) Close() error {
	var problems []error
	for _, s := range k.kept {
		problems = append(problems, s.Close())
	}
	k.kept = nil
	return errors.Join(append(problems, k.connection.Close())...)
}

// cachedRows are those of a statement that is given back when they are closed.
type cachedRows struct {
	driver.Rows
	keeper    *cachingConn
	query     string
	statement statement
}

// Close implements driver.Rows.
func (r *cachedRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, r.statement.Close())
	}
	return r.keeper.putBack(r.query, r.statement)
}
