-- The name that a file has in a bucket; NULL where it has the name that it would have in a directory.
ALTER TABLE blob ADD COLUMN place TEXT;
-- The id by which a bucket says whose it is; one row, from the first start with a bucket on.
CREATE TABLE bucket (id TEXT NOT NULL);
