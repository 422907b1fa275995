-- The system that a client of our own sessions says, and posts of sums, which count once.
ALTER TABLE app_session ADD COLUMN os TEXT;
CREATE TABLE session_post (
    project INTEGER NOT NULL REFERENCES project(id),
    id TEXT NOT NULL,
    day INTEGER NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;
CREATE INDEX session_post_by_day ON session_post(day);

-- As `session_day`, of the sessions whose system was told.
CREATE TABLE session_system_day (
    project INTEGER NOT NULL REFERENCES project(id),
    day INTEGER NOT NULL,
    release TEXT NOT NULL,
    os TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    errored INTEGER NOT NULL,
    abnormal INTEGER NOT NULL,
    crashed INTEGER NOT NULL,
    PRIMARY KEY (project, day, release, os)
) WITHOUT ROWID;
