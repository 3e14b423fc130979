-- +goose Up
-- A sandbox that waited in a pool keeps the name that its machinery knows it by.
ALTER TABLE sandboxes ADD COLUMN made_as TEXT NOT NULL DEFAULT '';
CREATE INDEX sandboxes_pool ON sandboxes (config_hash) WHERE kind = 'pool';
CREATE INDEX sandboxes_made_as ON sandboxes (made_as) WHERE made_as <> '';

-- +goose Down
DROP INDEX sandboxes_made_as;
DROP INDEX sandboxes_pool;
ALTER TABLE sandboxes DROP COLUMN made_as;
