-- Small files of reports, packed (LZ4's frame format): the commit of many rows writes them all at once. Whoever needs a file
-- of the file system, symbols say, has it in `objects` even so.
CREATE TABLE packed (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);
ALTER TABLE blob ADD COLUMN packed INTEGER;

-- Reports that were tried before, which are few. Without it each look for them goes through all that waits.
CREATE INDEX report_tried ON report(attempts) WHERE state IN ('waiting', 'leased') AND attempts > 0;

-- The identity as Breakpad writes it, which is what clients ask by: of a build id the first 16 bytes, the numbers of a GUID in
-- them turned round, and the age.
ALTER TABLE symbol_file ADD COLUMN debug_id TEXT;
UPDATE symbol_file SET debug_id = upper(replace(image_id, '-', '')) || '0' WHERE image_id LIKE '%-%';
UPDATE symbol_file SET debug_id = upper(substr(digits, 7, 2) || substr(digits, 5, 2) || substr(digits, 3, 2)
    || substr(digits, 1, 2) || substr(digits, 11, 2) || substr(digits, 9, 2) || substr(digits, 15, 2)
    || substr(digits, 13, 2) || substr(digits, 17, 16)) || '0'
    FROM (SELECT id AS of, substr(image_id || '00000000000000000000000000000000', 1, 32) AS digits FROM symbol_file)
    WHERE of = symbol_file.id AND debug_id IS NULL;
CREATE INDEX symbol_file_by_debug_id ON symbol_file(project, debug_id);
