-- The map store in SQLite, and each router's replica. The same tables as in sql/store_postgres; the version is SQLite's
-- user_version.
CREATE TABLE head (
  one INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
  store_id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  home INTEGER NOT NULL,
  next_shard INTEGER NOT NULL
);
CREATE TABLE shard (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dsn TEXT NOT NULL,
  identity TEXT NOT NULL,
  state TEXT NOT NULL
);
CREATE TABLE map (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  key_types TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE entry (
  map TEXT NOT NULL,
  low BLOB NOT NULL,
  high BLOB NOT NULL,
  name TEXT NOT NULL,
  shard INTEGER NOT NULL,
  state INTEGER NOT NULL,
  PRIMARY KEY (map, low)
) WITHOUT ROWID;
CREATE INDEX entry_name ON entry (name);
CREATE TABLE hidden (
  map TEXT NOT NULL,
  shard INTEGER NOT NULL,
  low BLOB NOT NULL,
  high BLOB NOT NULL,
  job TEXT NOT NULL
);
CREATE TABLE placed_table (
  schema_name TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  map TEXT NOT NULL,
  key_columns TEXT NOT NULL,
  PRIMARY KEY (schema_name, name)
) WITHOUT ROWID;
CREATE TABLE edit (
  epoch INTEGER PRIMARY KEY,
  token TEXT NOT NULL,
  edit TEXT NOT NULL,
  at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE note (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  updated REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
