-- When a report's bytes and what came along with it were removed. What was counted stays.
ALTER TABLE report ADD COLUMN dropped INTEGER;
CREATE INDEX report_to_drop ON report(received) WHERE dropped IS NULL;
