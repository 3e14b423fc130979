-- +goose Up

-- Sandboxes that programs made through the gateway's API. Each has a row in sandboxes
-- too, from which on it exists; a row in another phase than ready that nobody works on
-- was left by a crash.
CREATE TABLE api_sandboxes (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL, -- its name in sandboxes
    account        TEXT    NOT NULL,
    phase          TEXT    NOT NULL, -- creating, ready, removing
    created_at_ms  INTEGER NOT NULL,
    deadline_ms    INTEGER NOT NULL,
    on_deadline    TEXT    NOT NULL, -- remove, stop
    template       TEXT    NOT NULL,
    metadata       TEXT    NOT NULL, -- JSON object of texts
    details        TEXT    NOT NULL  -- JSON object: what is needed to work in it
) STRICT, WITHOUT ROWID;

CREATE INDEX api_sandboxes_created ON api_sandboxes (account, created_at_ms, id);
CREATE INDEX api_sandboxes_deadline ON api_sandboxes (deadline_ms) WHERE phase = 'ready';
CREATE UNIQUE INDEX api_sandboxes_name ON api_sandboxes (name);

-- +goose Down
DROP TABLE api_sandboxes;
