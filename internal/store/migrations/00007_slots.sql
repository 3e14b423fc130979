-- +goose Up

-- What the providers of a gateway's configuration are to the proxy: each has a
-- token, and speaks for the run that has leased it, or for nobody.
CREATE TABLE model_slots (
    name       TEXT    NOT NULL PRIMARY KEY,
    token      TEXT    NOT NULL UNIQUE,
    hash       BLOB    NOT NULL,
    open       INTEGER NOT NULL DEFAULT 0, -- callers say themselves who they are
    run        TEXT    NOT NULL DEFAULT '',
    terms      TEXT    NOT NULL DEFAULT '',
    until_ms   INTEGER NOT NULL DEFAULT 0, -- of the lease
    rest_ms    INTEGER NOT NULL DEFAULT 0, -- nobody gets it before
    made_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE model_slots;
