-- How whole reports of issues begin, by digests: which issue a report is likely of whose stack was cut. No more than 128 words of each issue.
CREATE TABLE beginning (
    project BIGINT NOT NULL,
    digest TEXT NOT NULL,
    is_words BIGINT NOT NULL,
    issue BIGINT NOT NULL REFERENCES issue(id),
    PRIMARY KEY (project, digest, issue)
);
CREATE INDEX beginning_of_issue ON beginning(issue);
