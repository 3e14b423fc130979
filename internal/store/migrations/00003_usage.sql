-- +goose Up
-- One row per settled call to a model. cost is what our own prices or the
-- upstream's answer said, billed what reconciliation found upstream; a call of
-- a process that died holds its whole reservation and is marked.
CREATE TABLE usage_calls (
    at_ms         INTEGER NOT NULL,
    id            TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    day           TEXT    NOT NULL,
    dialect       TEXT    NOT NULL,
    model_asked   TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    status        INTEGER NOT NULL,
    input         INTEGER NOT NULL,
    cached_input  INTEGER NOT NULL,
    cache_write   INTEGER NOT NULL,
    output        INTEGER NOT NULL,
    reasoning     INTEGER NOT NULL,
    cost          INTEGER NOT NULL,
    billed        INTEGER,
    priced        INTEGER NOT NULL,
    estimated     INTEGER NOT NULL,
    crashed       INTEGER NOT NULL,
    PRIMARY KEY (at_ms, id)
) STRICT, WITHOUT ROWID;

-- Rows come in the order of time, so most of them are appended; each index
-- more would cost as much again for every call.
CREATE INDEX usage_calls_by_run ON usage_calls (run, at_ms);

-- What was spent, by scope and key: budgets read one row.
CREATE TABLE usage_totals (
    scope        TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    micro_usd    INTEGER NOT NULL,
    calls        INTEGER NOT NULL,
    unpriced     INTEGER NOT NULL,
    estimated    INTEGER NOT NULL,
    input        INTEGER NOT NULL,
    cached_input INTEGER NOT NULL,
    cache_write  INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    reasoning    INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- How far the journal has been taken over; it moves with the rows above, in the
-- same transaction.
CREATE TABLE usage_journal (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL,
    position   INTEGER NOT NULL
) STRICT;

-- Session tokens of the shared proxy. Only a hash of the secret part is kept.
CREATE TABLE session_tokens (
    id            TEXT    NOT NULL PRIMARY KEY,
    hash          BLOB    NOT NULL,
    account       TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    run           TEXT    NOT NULL,
    attempt       TEXT    NOT NULL DEFAULT '',
    graph         TEXT    NOT NULL DEFAULT '',
    trace         TEXT    NOT NULL DEFAULT '',
    models        TEXT    NOT NULL DEFAULT '[]',
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX session_tokens_by_expiry ON session_tokens (expires_at_ms);

-- +goose Down
DROP TABLE session_tokens;
DROP TABLE usage_journal;
DROP TABLE usage_totals;
DROP TABLE usage_calls;
