-- Issues that people merged can be divided again: each keeps what was its own. Of an issue: which one it was merged into at first, and whether
-- people did that. Of a key and a report: the issue, merged by people, through which it is of the one that it is of.
ALTER TABLE issue ADD COLUMN part_of INTEGER REFERENCES issue(id);
ALTER TABLE issue ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0;
ALTER TABLE issue_key ADD COLUMN part INTEGER;
ALTER TABLE report ADD COLUMN part INTEGER;
CREATE INDEX issue_part_of ON issue(part_of) WHERE part_of IS NOT NULL;
-- How whole reports of issues begin, by digests: which issue a report is likely of whose stack was cut. No more than 128 words of each issue.
CREATE TABLE beginning (
    project INTEGER NOT NULL,
    digest TEXT NOT NULL,
    is_words INTEGER NOT NULL,
    issue INTEGER NOT NULL REFERENCES issue(id),
    PRIMARY KEY (project, digest, issue)
) WITHOUT ROWID;
CREATE INDEX beginning_of_issue ON beginning(issue);
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
