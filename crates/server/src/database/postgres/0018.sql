-- Builds of a project of which it could not be worked out whose code is where, and why: since its fingerprints and link maps are what they are.
CREATE TABLE owner_problem (
    project BIGINT NOT NULL REFERENCES project(id),
    image_id TEXT NOT NULL,
    why TEXT NOT NULL,
    happened BIGINT NOT NULL,
    PRIMARY KEY (project, image_id)
);
