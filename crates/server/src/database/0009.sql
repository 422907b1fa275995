-- When an issue was seen to have many more reports on a day than on those before.
ALTER TABLE issue ADD COLUMN spiked INTEGER;
