-- Functions, files and images of the stack that shows what happened: what can be looked for beside title, owner and why.
ALTER TABLE issue ADD COLUMN code TEXT NOT NULL DEFAULT '';
-- Its index goes with it.
ALTER TABLE issue DROP COLUMN words;
ALTER TABLE issue ADD COLUMN words TEXT NOT NULL
    GENERATED ALWAYS AS (lower(title || chr(10) || owner || chr(10) || why || chr(10) || code)) STORED;
DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX issue_text ON issue USING GIN (words gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE WARNING 'without pg_trgm looking for words takes longer';
END $$;
