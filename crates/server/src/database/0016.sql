-- Functions, files and images of the stack that shows what happened: what can be looked for beside title, owner and why.
ALTER TABLE issue ADD COLUMN code TEXT NOT NULL DEFAULT '';
DROP TRIGGER issue_text_new;
DROP TRIGGER issue_text_changed;
DROP TRIGGER issue_text_gone;
DROP TABLE issue_text;
CREATE VIRTUAL TABLE issue_text USING fts5(title, owner, why, code, content = 'issue', content_rowid = 'id', tokenize = 'trigram');
INSERT INTO issue_text (issue_text) VALUES ('rebuild');
CREATE TRIGGER issue_text_new AFTER INSERT ON issue BEGIN
    INSERT INTO issue_text (rowid, title, owner, why, code) VALUES (new.id, new.title, new.owner, new.why, new.code);
END;
CREATE TRIGGER issue_text_changed AFTER UPDATE OF title, owner, why, code ON issue BEGIN
    INSERT INTO issue_text (issue_text, rowid, title, owner, why, code)
        VALUES ('delete', old.id, old.title, old.owner, old.why, old.code);
    INSERT INTO issue_text (rowid, title, owner, why, code) VALUES (new.id, new.title, new.owner, new.why, new.code);
END;
CREATE TRIGGER issue_text_gone AFTER DELETE ON issue BEGIN
    INSERT INTO issue_text (issue_text, rowid, title, owner, why, code)
        VALUES ('delete', old.id, old.title, old.owner, old.why, old.code);
END;
