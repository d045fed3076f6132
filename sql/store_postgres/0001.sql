-- The map store in PostgreSQL. The program runs each numbered file once, in order, in one transaction, with
-- search_path = kintsugi_map. Keys are the encoded bytes of docs/decisions/0030-shard-map.md.
CREATE TABLE head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  store_id text NOT NULL,
  epoch bigint NOT NULL,
  home bigint NOT NULL,        -- a shard's id; 0: none yet
  next_shard bigint NOT NULL
);
CREATE TABLE shard (
  id bigint PRIMARY KEY,
  name text NOT NULL UNIQUE,
  dsn text NOT NULL,
  identity text NOT NULL,
  state text NOT NULL
);
CREATE TABLE map (
  name text PRIMARY KEY,
  kind text NOT NULL,
  key_types text NOT NULL      -- a JSON array of type names
);
-- One row a shardlet, in LIST maps one a value (high is empty there).
CREATE TABLE entry (
  map text NOT NULL,
  low bytea NOT NULL,
  high bytea NOT NULL,
  name text NOT NULL,
  shard bigint NOT NULL,
  state integer NOT NULL,      -- 0 online, 1 read only, 2 offline, 3 held
  PRIMARY KEY (map, low)
);
CREATE INDEX entry_name ON entry (name);
CREATE TABLE hidden (
  map text NOT NULL,
  shard bigint NOT NULL,
  low bytea NOT NULL,
  high bytea NOT NULL,
  job text NOT NULL
);
CREATE TABLE placed_table (
  schema_name text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  map text NOT NULL,
  key_columns text NOT NULL,   -- a JSON array
  PRIMARY KEY (schema_name, name)
);
-- What made each epoch; routers replay it. The token tells two histories apart that have the same numbers.
CREATE TABLE edit (
  epoch bigint PRIMARY KEY,
  token text NOT NULL,
  edit text NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
-- Small records beside the map: routers with their epoch, shards to bring into step, intents, jobs.
CREATE TABLE note (
  kind text NOT NULL,
  key text NOT NULL,
  body text NOT NULL,
  updated timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (kind, key)
);
