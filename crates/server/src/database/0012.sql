-- Files of symbols are made tables of, by content. States: waiting; made, with rows in symbol_table; none, the file is used as it
-- is; refused, it is not used. Attempts are written down before each, so that what ends the server is not tried for ever.
CREATE TABLE symbol_conversion (
    blob TEXT PRIMARY KEY REFERENCES blob(digest),
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due INTEGER NOT NULL DEFAULT 0,
    problem TEXT
) WITHOUT ROWID;
CREATE INDEX conversion_due ON symbol_conversion(due) WHERE state = 'waiting';
INSERT INTO symbol_conversion (blob, state) SELECT DISTINCT blob, 'waiting' FROM symbol_file;

CREATE TABLE symbol_table (
    source TEXT NOT NULL REFERENCES symbol_conversion(blob),
    image_id TEXT NOT NULL,
    arch TEXT NOT NULL,
    blob TEXT NOT NULL REFERENCES blob(digest),
    PRIMARY KEY (source, image_id, arch)
) WITHOUT ROWID;
CREATE INDEX table_by_blob ON symbol_table(blob);

-- Rises with each file that can be used from then on; null where it cannot.
ALTER TABLE symbol_file ADD COLUMN usable INTEGER;
UPDATE symbol_file SET usable = id;
CREATE INDEX symbol_file_by_usable ON symbol_file(usable);
CREATE INDEX symbol_file_by_blob ON symbol_file(blob);
