-- +goose Up
-- One row per run. The request is kept whole, so that asking twice under one id
-- can be told from asking for something else; receipt is there from the answer on.
CREATE TABLE runs (
    id            TEXT    NOT NULL PRIMARY KEY,
    account       TEXT    NOT NULL,
    variant       TEXT    NOT NULL,
    request       TEXT    NOT NULL,
    step          TEXT    NOT NULL,
    receipt       TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    changed_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_time ON runs (created_at_ms DESC);
CREATE INDEX runs_unfinished ON runs (step) WHERE step <> 'done';

CREATE TABLE run_events (
    run   TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    event TEXT    NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE run_events;
DROP TABLE runs;
