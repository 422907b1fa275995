-- Sessions of apps, as clients tell of them: each is known for some days, so that what comes of it later is counted once.
CREATE TABLE app_session (
    project INTEGER NOT NULL REFERENCES project(id),
    sid TEXT NOT NULL,
    day INTEGER NOT NULL,
    release TEXT NOT NULL,
    -- 0 well so far, 1 with errors, 2 ended abnormally, 3 crashed.
    state INTEGER NOT NULL,
    PRIMARY KEY (project, sid)
) WITHOUT ROWID;
CREATE INDEX app_session_by_day ON app_session(day);

-- How many there were. A session is in one of the last three columns at most.
CREATE TABLE session_day (
    project INTEGER NOT NULL REFERENCES project(id),
    day INTEGER NOT NULL,
    release TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    errored INTEGER NOT NULL,
    abnormal INTEGER NOT NULL,
    crashed INTEGER NOT NULL,
    PRIMARY KEY (project, day, release)
) WITHOUT ROWID;
