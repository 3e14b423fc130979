-- +goose Up
-- Lists of runs and sessions are read along an index, also those of one account, and end
-- with their page. Columns ascend, so that the keys that break ties can be read backwards
-- with them.
DROP INDEX runs_by_time;
DROP INDEX runs_unfinished;
CREATE INDEX runs_by_time ON runs (created_at_ms, id);
CREATE INDEX runs_by_account ON runs (account, created_at_ms, id);
CREATE INDEX runs_by_variant ON runs (variant, created_at_ms, id);
CREATE INDEX runs_by_caller_id ON runs (receipt ->> '$.knownAs', created_at_ms) WHERE receipt ->> '$.knownAs' IS NOT NULL;
CREATE INDEX runs_unfinished ON runs (created_at_ms, id) WHERE step <> 'done';
CREATE INDEX runs_unfinished_by_account ON runs (account, created_at_ms, id) WHERE step <> 'done';
DROP INDEX sessions_by_time;
DROP INDEX sessions_by_account;
CREATE INDEX sessions_by_time ON sessions (updated_at_ms, account, key);
CREATE INDEX sessions_by_account ON sessions (account, updated_at_ms, key);
-- How many sandboxes an account has is asked for whenever it gets another one.
CREATE INDEX sandboxes_by_account ON sandboxes (account, container_name) WHERE kind <> 'pool';

-- +goose Down
DROP INDEX sandboxes_by_account;
DROP INDEX sessions_by_account;
DROP INDEX sessions_by_time;
CREATE INDEX sessions_by_time ON sessions (updated_at_ms DESC);
CREATE INDEX sessions_by_account ON sessions (account, updated_at_ms DESC);
DROP INDEX runs_unfinished_by_account;
DROP INDEX runs_by_caller_id;
DROP INDEX runs_unfinished;
DROP INDEX runs_by_variant;
DROP INDEX runs_by_account;
DROP INDEX runs_by_time;
CREATE INDEX runs_by_time ON runs (created_at_ms DESC);
CREATE INDEX runs_unfinished ON runs (step) WHERE step <> 'done';
