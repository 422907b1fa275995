-- How whole reports of issues begin, by digests: which issue a report is likely of whose stack was cut. No more than 128 words of each issue.
CREATE TABLE beginning (
    project INTEGER NOT NULL,
    digest TEXT NOT NULL,
    is_words INTEGER NOT NULL,
    issue INTEGER NOT NULL REFERENCES issue(id),
    PRIMARY KEY (project, digest, issue)
) WITHOUT ROWID;
CREATE INDEX beginning_of_issue ON beginning(issue);
