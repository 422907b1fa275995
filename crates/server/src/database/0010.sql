-- Whose code it was that a report is about, with that code's version, in which app, and whether it crashed: as the work on it found
-- last. Null where an earlier program worked it, which did not keep that.
ALTER TABLE report ADD COLUMN owner TEXT;
ALTER TABLE report ADD COLUMN owner_version TEXT;
ALTER TABLE report ADD COLUMN app TEXT;
ALTER TABLE report ADD COLUMN crashed INTEGER;

-- How many reports of issues there were, and how many of them were crashes.
CREATE TABLE owner_day (
    project INTEGER NOT NULL REFERENCES project(id),
    day INTEGER NOT NULL,
    owner TEXT NOT NULL,
    owner_version TEXT NOT NULL,
    app TEXT NOT NULL,
    release TEXT NOT NULL,
    n INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    PRIMARY KEY (project, day, owner, owner_version, app, release)
) WITHOUT ROWID;
