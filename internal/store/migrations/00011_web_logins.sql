-- +goose Up
-- Web browsers that are logged in to the gateway's pages. One acts for the token that
-- it logged in with; of its cookie and its page's secret only hashes are kept.
CREATE TABLE gateway_web_logins (
    id              TEXT    NOT NULL PRIMARY KEY,
    cookie_hash     BLOB    NOT NULL,
    page_hash       BLOB    NOT NULL,
    token           TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    scope           TEXT    NOT NULL,
    account         TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE gateway_web_logins;
