-- What keeps commits over several shards through one router and statements over several shards through another apart
-- (docs/decisions/0052-one-moment.md): its locks are all that is wanted of it.
CREATE TABLE moment (
  nothing boolean CHECK (false)
);
GRANT UPDATE ON moment TO PUBLIC;
