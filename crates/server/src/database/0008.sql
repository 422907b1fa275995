-- What is masked in a project's reports before they are written: an array of patterns in JSON.
ALTER TABLE project ADD COLUMN scrubbed TEXT NOT NULL DEFAULT '[]';
