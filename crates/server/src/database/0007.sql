-- What can be looked for in issues: any three letters or more, wherever they stand. SQLite, "The Trigram Tokenizer".
CREATE VIRTUAL TABLE issue_text USING fts5(title, owner, why, content = 'issue', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO issue_text (issue_text) VALUES ('rebuild');
CREATE TRIGGER issue_text_new AFTER INSERT ON issue BEGIN
    INSERT INTO issue_text (rowid, title, owner, why) VALUES (new.id, new.title, new.owner, new.why);
END;
CREATE TRIGGER issue_text_changed AFTER UPDATE OF title, owner, why ON issue BEGIN
    INSERT INTO issue_text (issue_text, rowid, title, owner, why) VALUES ('delete', old.id, old.title, old.owner, old.why);
    INSERT INTO issue_text (rowid, title, owner, why) VALUES (new.id, new.title, new.owner, new.why);
END;
CREATE TRIGGER issue_text_gone AFTER DELETE ON issue BEGIN
    INSERT INTO issue_text (issue_text, rowid, title, owner, why) VALUES ('delete', old.id, old.title, old.owner, old.why);
END;

-- What a project may be sent in a day of UTC; where it is null, as much as comes.
ALTER TABLE project ADD COLUMN reports_a_day INTEGER;
ALTER TABLE project ADD COLUMN bytes_a_day INTEGER;

-- What came on a day, of projects that have a quota.
CREATE TABLE intake_day (
    project INTEGER NOT NULL REFERENCES project(id),
    day INTEGER NOT NULL,
    reports INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    -- Requests that were too many.
    refused INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project, day)
) WITHOUT ROWID;
