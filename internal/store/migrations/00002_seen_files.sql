-- +goose Up
-- Which version of a file each session has seen, so that its tools do not
-- overwrite what it does not know. It is a memory, not a record: rows may go.
CREATE TABLE seen_files (
    session    TEXT    NOT NULL,
    file       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    seen_at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, file)
) STRICT, WITHOUT ROWID;

-- The oldest of a session go when it has too many, and of all when they are old.
CREATE INDEX seen_files_by_session ON seen_files (session, seen_at_ms);
CREATE INDEX seen_files_by_age ON seen_files (seen_at_ms);

-- +goose Down
DROP TABLE seen_files;
