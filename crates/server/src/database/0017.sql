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
