-- The local map: what one shard knows of itself, in its own schema `kintsugi`. The program runs each numbered file once,
-- in order, in one transaction, with search_path = kintsugi.
CREATE TABLE identity (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  store_id text NOT NULL,      -- the map store that this shard belongs to
  shard_id text NOT NULL,      -- this shard's own uuid
  shard_name text NOT NULL,
  epoch bigint NOT NULL        -- the epoch that owned, map and placed_table were taken from
);
CREATE TABLE map (
  name text PRIMARY KEY,
  kind text NOT NULL,
  key_types text NOT NULL
);
-- The shardlets that this shard owns; one row a value in LIST maps.
CREATE TABLE owned (
  map text NOT NULL,
  low bytea NOT NULL,
  high bytea NOT NULL,
  name text NOT NULL,
  state integer NOT NULL,
  PRIMARY KEY (map, low)
);
CREATE TABLE placed_table (
  schema_name text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  map text NOT NULL,
  key_columns text NOT NULL,
  PRIMARY KEY (schema_name, name)
);
-- Key ranges that have moved away or are about to: the triggers of a move read nothing, this is their record.
CREATE TABLE fence (
  map text NOT NULL,
  shardlet text NOT NULL,
  job text NOT NULL,
  low bytea NOT NULL,
  high bytea NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (map, low)
);
-- The decision of a transaction that wrote on several shards, made on this one: present means committed.
CREATE TABLE txn_decision (
  gid text PRIMARY KEY,
  decided timestamptz NOT NULL DEFAULT now()
);
