-- Two transactions that keep one snapshot over several shards take theirs one after the other, whichever routers they come
-- through (docs/decisions/0053-serializable.md): its locks are all that is wanted of it.
CREATE TABLE opening (
  nothing boolean CHECK (false)
);
GRANT UPDATE ON opening TO PUBLIC;
