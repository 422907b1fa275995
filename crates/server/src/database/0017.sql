-- What tells of a project whose code is whose: its rules (one file), fingerprints of libraries, linkers' maps of builds.
CREATE TABLE owner_source (
    id INTEGER PRIMARY KEY,
    project INTEGER NOT NULL REFERENCES project(id),
    -- rules, fingerprint, link map
    kind TEXT NOT NULL,
    -- The library of a fingerprint; else the file.
    name TEXT NOT NULL,
    version TEXT,
    -- Of a link map: the app that it names, where the code section is, and the build that it was found to be the map of.
    app TEXT,
    code TEXT,
    image_id TEXT,
    blob TEXT NOT NULL REFERENCES blob(digest),
    uploaded INTEGER NOT NULL,
    UNIQUE (project, kind, blob)
);
CREATE INDEX owner_source_by_blob ON owner_source(blob);
-- Rises with each change of them; what it was when the rules last changed; and up to which report they are still to be worked with it.
ALTER TABLE project ADD COLUMN sources INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN rules_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
-- With which of them a report was worked.
ALTER TABLE report ADD COLUMN sources INTEGER NOT NULL DEFAULT 0;
