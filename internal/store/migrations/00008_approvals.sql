-- +goose Up

-- Questions to a person, and their answers. The hash is the evidence's, and an
-- answer is for that evidence only.
CREATE TABLE approvals (
    id             TEXT    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL,
    subject        TEXT    NOT NULL, -- what of that kind is asked about
    account        TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    session        TEXT    NOT NULL,
    run            TEXT    NOT NULL,
    summary        TEXT    NOT NULL,
    rule           TEXT    NOT NULL, -- what a lasting answer covers; '' if there can be none
    evidence       TEXT    NOT NULL,
    hash           TEXT    NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    expires_at_ms  INTEGER NOT NULL,
    fallback       TEXT    NOT NULL, -- the answer when it expires
    state          TEXT    NOT NULL, -- open, answered, expired, replaced
    answer         TEXT    NOT NULL DEFAULT '',
    answered_by    TEXT    NOT NULL DEFAULT '',
    answered_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX approvals_open ON approvals (kind, subject) WHERE state = 'open';
CREATE INDEX approvals_account ON approvals (account, state, created_at_ms);
CREATE INDEX approvals_rule ON approvals (kind, rule, account, agent) WHERE rule <> '' AND state = 'answered';

-- +goose Down
DROP TABLE approvals;
