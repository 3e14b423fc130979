-- +goose Up
-- One row per sandbox, written before the sandbox is made and deleted after it
-- is gone. The first six columns are the fields of OpenClaw's registry.
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
    imported        INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Prune asks, for one agent, who is idle or old: both are a range of an index.
CREATE INDEX sandboxes_idle ON sandboxes (agent_id, last_used_at_ms);
CREATE INDEX sandboxes_age ON sandboxes (agent_id, created_at_ms);
-- List shows the last used first.
CREATE INDEX sandboxes_recent ON sandboxes (last_used_at_ms DESC, container_name);
-- Repair asks only for rows that a crash left in the middle of something.
CREATE INDEX sandboxes_unfinished ON sandboxes (phase) WHERE phase <> 'ready';
-- And for the names of one backend, which it compares with the engine's.
CREATE INDEX sandboxes_names ON sandboxes (imported, backend, phase, container_name);

-- Small facts of the installation: time of the last prune, engine versions,
-- which old registry files were taken over.
CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- +goose Down
DROP TABLE facts;
DROP TABLE sandboxes;
