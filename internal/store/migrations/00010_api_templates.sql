-- +goose Up

-- A row in phase snapshot is a template: its sandbox is stopped, and others begin with
-- its files. An account has one template of a name.
CREATE UNIQUE INDEX api_sandboxes_template ON api_sandboxes (account, template) WHERE phase = 'snapshot';

-- +goose Down
DROP INDEX api_sandboxes_template;
