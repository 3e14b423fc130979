-- +goose Up
-- A row may be of kind pool, and in phase claimed. SQLite cannot change the checks of a
-- table, so it is made anew with the same rows.
DROP INDEX sandboxes_idle;
DROP INDEX sandboxes_age;
DROP INDEX sandboxes_recent;
DROP INDEX sandboxes_unfinished;
DROP INDEX sandboxes_names;
DROP INDEX sandboxes_pool;
DROP INDEX sandboxes_made_as;
ALTER TABLE sandboxes RENAME TO sandboxes_before;
CREATE TABLE sandboxes (
    container_name  TEXT    NOT NULL PRIMARY KEY,
    session_key     TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER NOT NULL,
    image           TEXT    NOT NULL,
    config_hash     TEXT    NOT NULL DEFAULT '', -- of kind pool: the shape
    kind            TEXT    NOT NULL DEFAULT 'sandbox' CHECK (kind IN ('sandbox', 'browser', 'pool')),
    phase           TEXT    NOT NULL CHECK (phase IN ('creating', 'ready', 'removing') OR kind = 'pool' AND phase = 'claimed'),
    backend         TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL DEFAULT '',
    account         TEXT    NOT NULL DEFAULT '',
    mounts_hash     TEXT    NOT NULL DEFAULT '',
    workspace_dir   TEXT    NOT NULL DEFAULT '',
    cdp_port        INTEGER NOT NULL DEFAULT 0,
    no_vnc_port     INTEGER NOT NULL DEFAULT 0,
    imported        INTEGER NOT NULL DEFAULT 0,
    made_as         TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO sandboxes (container_name, session_key, created_at_ms, last_used_at_ms, image, config_hash, kind, phase, backend,
    agent_id, account, mounts_hash, workspace_dir, cdp_port, no_vnc_port, imported, made_as)
  SELECT container_name, session_key, created_at_ms, last_used_at_ms, image, config_hash, kind, phase, backend,
    agent_id, account, mounts_hash, workspace_dir, cdp_port, no_vnc_port, imported, made_as FROM sandboxes_before;
DROP TABLE sandboxes_before;
CREATE INDEX sandboxes_idle ON sandboxes (agent_id, last_used_at_ms);
CREATE INDEX sandboxes_age ON sandboxes (agent_id, created_at_ms);
CREATE INDEX sandboxes_recent ON sandboxes (last_used_at_ms DESC, container_name);
CREATE INDEX sandboxes_unfinished ON sandboxes (phase) WHERE phase <> 'ready';
CREATE INDEX sandboxes_names ON sandboxes (imported, backend, phase, container_name);
CREATE INDEX sandboxes_pool ON sandboxes (config_hash) WHERE kind = 'pool';
CREATE INDEX sandboxes_made_as ON sandboxes (made_as) WHERE made_as <> '';

-- +goose Down
-- What waits in pools is left to the repair, which removes a sandbox of a pool without a row.
DROP INDEX sandboxes_idle;
DROP INDEX sandboxes_age;
DROP INDEX sandboxes_recent;
DROP INDEX sandboxes_unfinished;
DROP INDEX sandboxes_names;
DROP INDEX sandboxes_pool;
DROP INDEX sandboxes_made_as;
ALTER TABLE sandboxes RENAME TO sandboxes_after;
CREATE TABLE sandboxes (
    container_name  TEXT    NOT NULL PRIMARY KEY,
    session_key     TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER NOT NULL,
    image           TEXT    NOT NULL,
    config_hash     TEXT    NOT NULL DEFAULT '',
    kind            TEXT    NOT NULL DEFAULT 'sandbox' CHECK (kind IN ('sandbox', 'browser')),
    phase           TEXT    NOT NULL CHECK (phase IN ('creating', 'ready', 'removing')),
    backend         TEXT    NOT NULL,
    agent_id        TEXT    NOT NULL DEFAULT '',
    account         TEXT    NOT NULL DEFAULT '',
    mounts_hash     TEXT    NOT NULL DEFAULT '',
    workspace_dir   TEXT    NOT NULL DEFAULT '',
    cdp_port        INTEGER NOT NULL DEFAULT 0,
    no_vnc_port     INTEGER NOT NULL DEFAULT 0,
    imported        INTEGER NOT NULL DEFAULT 0,
    made_as         TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO sandboxes (container_name, session_key, created_at_ms, last_used_at_ms, image, config_hash, kind, phase, backend,
    agent_id, account, mounts_hash, workspace_dir, cdp_port, no_vnc_port, imported, made_as)
  SELECT container_name, session_key, created_at_ms, last_used_at_ms, image, config_hash, kind, phase, backend,
    agent_id, account, mounts_hash, workspace_dir, cdp_port, no_vnc_port, imported, made_as FROM sandboxes_after WHERE kind <> 'pool';
DROP TABLE sandboxes_after;
CREATE INDEX sandboxes_idle ON sandboxes (agent_id, last_used_at_ms);
CREATE INDEX sandboxes_age ON sandboxes (agent_id, created_at_ms);
CREATE INDEX sandboxes_recent ON sandboxes (last_used_at_ms DESC, container_name);
CREATE INDEX sandboxes_unfinished ON sandboxes (phase) WHERE phase <> 'ready';
CREATE INDEX sandboxes_names ON sandboxes (imported, backend, phase, container_name);
CREATE INDEX sandboxes_pool ON sandboxes (config_hash) WHERE kind = 'pool';
CREATE INDEX sandboxes_made_as ON sandboxes (made_as) WHERE made_as <> '';
