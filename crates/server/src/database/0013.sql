-- Which of the replicas of one database has a report, or a file to make tables of.
ALTER TABLE report ADD COLUMN worker INTEGER;
ALTER TABLE symbol_conversion ADD COLUMN worker INTEGER;
