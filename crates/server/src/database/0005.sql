-- Where a project's new issues are told.
CREATE TABLE webhook (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES project(id),
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    created INTEGER NOT NULL,
    -- The last one that arrived, and why the last one did not.
    delivered INTEGER,
    problem TEXT,
    -- What was not told, since too much waited or nobody took it.
    dropped INTEGER NOT NULL DEFAULT 0
);

-- What is to be told: written in the transaction that makes it so.
CREATE TABLE notice (
    id INTEGER PRIMARY KEY,
    webhook INTEGER NOT NULL REFERENCES webhook(id) ON DELETE CASCADE,
    issue INTEGER NOT NULL REFERENCES issue(id),
    event TEXT NOT NULL,
    release TEXT NOT NULL,
    happened INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL
);
CREATE INDEX notice_due ON notice(due);
CREATE INDEX notice_of_webhook ON notice(webhook);
