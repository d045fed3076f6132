-- Which connections belong to one transaction that waits, for the routers to find circles over several shards
-- (executor/deadlock.h). Worth seconds: a crash may forget it.
CREATE UNLOGGED TABLE held_up (
  pid integer PRIMARY KEY,
  transaction text NOT NULL,
  seen timestamptz NOT NULL DEFAULT now()
);
