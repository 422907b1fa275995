-- Times are milliseconds since 1970 in UTC. What belongs to a project names it, so that every query can.
CREATE TABLE project (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created INTEGER NOT NULL
);

-- Keys of clients and tokens of people. Only digests are kept, but for `public`: the key that is in every copy of an app.
CREATE TABLE token (
    id INTEGER PRIMARY KEY,
    project INTEGER REFERENCES project(id),
    scope TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    public TEXT,
    note TEXT NOT NULL,
    created INTEGER NOT NULL,
    revoked INTEGER
);

CREATE TABLE session (
    digest TEXT PRIMARY KEY,
    token INTEGER NOT NULL REFERENCES token(id),
    expires INTEGER NOT NULL
) WITHOUT ROWID;

-- Files by content, and how many rows need each.
CREATE TABLE blob (
    digest TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    refs INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE issue (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES project(id),
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    why TEXT NOT NULL,
    has_names INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    assignee TEXT,
    resolved INTEGER,
    -- When a release that had not seen it brought it back.
    regressed INTEGER,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 0,
    merged_into INTEGER REFERENCES issue(id)
);
CREATE INDEX issue_of_project ON issue(project, merged_into, last);
CREATE INDEX issue_by_count ON issue(project, merged_into, count);

-- Which issue a key means; both sorts of keys.
CREATE TABLE issue_key (
    project INTEGER NOT NULL,
    key TEXT NOT NULL,
    by_names INTEGER NOT NULL,
    issue INTEGER NOT NULL REFERENCES issue(id),
    PRIMARY KEY (project, key, by_names)
) WITHOUT ROWID;
CREATE INDEX key_of_issue ON issue_key(issue);

-- The state of a report is the queue: waiting, leased, done, unreadable, quarantined.
CREATE TABLE report (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES project(id),
    event_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT,
    blob TEXT NOT NULL REFERENCES blob(digest),
    received INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    lease_until INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Rises with each reason to work it; a worker that began before is not the last.
    wanted INTEGER NOT NULL DEFAULT 1,
    problem TEXT,
    -- What the client says beside the report, where the report does not.
    stated_release TEXT,
    -- What was read, and counted where there is an issue.
    issue INTEGER REFERENCES issue(id),
    day INTEGER,
    release TEXT,
    os TEXT,
    device TEXT,
    title TEXT,
    happened TEXT,
    incomplete INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project, event_id)
);
CREATE INDEX report_to_work ON report(lease_until, id) WHERE state IN ('waiting', 'leased');
CREATE INDEX report_of_issue ON report(issue, id);
CREATE INDEX report_of_blob ON report(project, blob, received);

-- What came along with a report, or makes it up: a Sentry event and its minidump.
CREATE TABLE attachment (
    report INTEGER NOT NULL REFERENCES report(id),
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    blob TEXT NOT NULL REFERENCES blob(digest),
    PRIMARY KEY (report, position)
) WITHOUT ROWID;

-- Images whose symbols a report wants and does not have.
CREATE TABLE missing (
    project INTEGER NOT NULL,
    image_id TEXT NOT NULL,
    report INTEGER NOT NULL REFERENCES report(id),
    name TEXT NOT NULL,
    arch TEXT,
    PRIMARY KEY (project, image_id, report)
) WITHOUT ROWID;
CREATE INDEX missing_of_report ON missing(report);

CREATE TABLE issue_day (
    issue INTEGER NOT NULL REFERENCES issue(id),
    day INTEGER NOT NULL,
    release TEXT NOT NULL,
    os TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (issue, day, release, os)
) WITHOUT ROWID;

CREATE TABLE symbol_file (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES project(id),
    image_id TEXT NOT NULL,
    arch TEXT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    blob TEXT NOT NULL REFERENCES blob(digest),
    sha1 TEXT,
    lacks TEXT,
    uploaded INTEGER NOT NULL,
    UNIQUE (project, image_id, blob)
);
CREATE INDEX symbol_file_by_sha1 ON symbol_file(project, sha1);
