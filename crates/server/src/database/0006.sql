-- How many reports wait for each image: what is missing has many rows of each report, and is shown by image.
CREATE TABLE missing_image (
    project INTEGER NOT NULL,
    image_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arch TEXT,
    reports INTEGER NOT NULL,
    -- When the last of them was received.
    last INTEGER NOT NULL,
    PRIMARY KEY (project, image_id)
) WITHOUT ROWID;
INSERT INTO missing_image (project, image_id, name, arch, reports, last)
    SELECT missing.project, image_id, missing.name, arch, count(*), max(received)
    FROM missing JOIN report ON report.id = missing.report GROUP BY missing.project, image_id;

CREATE TRIGGER missing_added AFTER INSERT ON missing BEGIN
    INSERT INTO missing_image (project, image_id, name, arch, reports, last)
    SELECT new.project, new.image_id, new.name, new.arch, 1, received FROM report WHERE id = new.report
    ON CONFLICT (project, image_id) DO UPDATE SET reports = reports + 1, last = max(last, excluded.last);
END;
CREATE TRIGGER missing_removed AFTER DELETE ON missing BEGIN
    UPDATE missing_image SET reports = reports - 1 WHERE project = old.project AND image_id = old.image_id;
    DELETE FROM missing_image WHERE project = old.project AND image_id = old.image_id AND reports = 0;
END;
