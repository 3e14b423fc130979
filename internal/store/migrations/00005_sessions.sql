-- +goose Up
-- One row per session. An account and a key name it, so that accounts never meet
-- in one. What is set for it, and what it has used, is in entry.
CREATE TABLE sessions (
    account       TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    label         TEXT    NOT NULL,
    entry         TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_time ON sessions (updated_at_ms DESC);
CREATE INDEX sessions_by_account ON sessions (account, updated_at_ms DESC);

-- One row per task, written before it is answered. Numbers are the order in which
-- tasks were accepted, also for the process that goes on after this one.
CREATE TABLE session_tasks (
    number         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    account        TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    request        TEXT    NOT NULL,
    result         TEXT    NOT NULL,
    accepted_at_ms INTEGER NOT NULL,
    started_at_ms  INTEGER NOT NULL,
    ended_at_ms    INTEGER NOT NULL,
    UNIQUE (account, id)
) STRICT;

CREATE INDEX session_tasks_open ON session_tasks (number) WHERE ended_at_ms = 0;
CREATE INDEX session_tasks_ended ON session_tasks (ended_at_ms) WHERE ended_at_ms > 0;
CREATE INDEX session_tasks_by_session ON session_tasks (account, key, number);
CREATE INDEX session_tasks_by_id ON session_tasks (id);

-- +goose Down
DROP TABLE session_tasks;
DROP TABLE sessions;
