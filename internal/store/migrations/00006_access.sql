-- +goose Up
-- Tokens of the gateway. Only a hash of the secret part is kept.
CREATE TABLE gateway_tokens (
    id              TEXT    NOT NULL PRIMARY KEY,
    hash            BLOB    NOT NULL,
    name            TEXT    NOT NULL,
    scope           TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    quota           TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL,
    revoked_at_ms   INTEGER,
    last_used_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- Devices that showed a key of their own. One speaks for the token that it was
-- paired under, and for nothing else; its own token is kept as a hash.
CREATE TABLE gateway_devices (
    id              TEXT    NOT NULL PRIMARY KEY,
    public_key      BLOB    NOT NULL,
    token           TEXT    NOT NULL,
    hash            BLOB,
    client          TEXT    NOT NULL,
    platform        TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    approved_at_ms  INTEGER,
    last_used_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE gateway_devices;
DROP TABLE gateway_tokens;
