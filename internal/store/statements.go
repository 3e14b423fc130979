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
	return &keeper{connection: inner, kept: map[string]statement{}}, nil
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

// keptStatements is how many a connection keeps. Our own are fewer.
const keptStatements = 64

// keeper is a connection that keeps the statements it was asked for: the same few
// are asked again and again, and to read one takes longer than to carry it out.
// Like every connection it is used by one goroutine at a time.
type keeper struct {
	connection
	kept map[string]statement // those that nobody uses now
}

// isKept reports whether a query is worth keeping: one statement about rows.
func isKept(query string) bool {
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(verb) {
	case "SELECT", "INSERT", "UPDATE", "DELETE":
		return !strings.Contains(query, ";")
	}
	return false
}

// take returns a statement that nobody else uses until it is given back.
func (k *keeper) take(ctx context.Context, query string) (statement, error) {
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

// give keeps a statement for the next who asks for it.
func (k *keeper) give(query string, s statement) error {
	if _, ok := k.kept[query]; ok || k.kept == nil {
		return s.Close()
	}
	var err error
	if len(k.kept) >= keptStatements {
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
func (k *keeper) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !isKept(query) {
		return k.connection.ExecContext(ctx, query, args)
	}
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	if err != nil {
		_ = s.Close() // it repeats the error
		return nil, err
	}
	return result, k.give(query, s)
}

// QueryContext implements driver.QueryerContext.
func (k *keeper) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !isKept(query) {
		return k.connection.QueryContext(ctx, query, args)
	}
	s, err := k.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.Close() // it repeats the error
		return nil, err
	}
	return &keptRows{Rows: rows, keeper: k, query: query, statement: s}, nil
}

// Close implements driver.Conn.
func (k *keeper) Close() error {
	var problems []error
	for _, s := range k.kept {
		problems = append(problems, s.Close())
	}
	k.kept = nil
	return errors.Join(append(problems, k.connection.Close())...)
}

// keptRows are those of a statement that is given back when they are closed.
type keptRows struct {
	driver.Rows
	keeper    *keeper
	query     string
	statement statement
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return errors.Join(err, r.statement.Close())
	}
	return r.keeper.give(r.query, r.statement)
}
