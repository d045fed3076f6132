-- Serializable transactions over several shards (executor/witness.h): each reads all of it, and somebody else writes to
-- it meanwhile.
CREATE TABLE serial (
  slot integer PRIMARY KEY,
  written bigint NOT NULL DEFAULT 0
);
INSERT INTO serial SELECT pg_catalog.generate_series(0, 63);
GRANT SELECT, UPDATE ON serial TO PUBLIC;
