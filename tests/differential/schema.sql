CREATE TABLE customers (tenant int NOT NULL, id int NOT NULL, name text NOT NULL, country text, since date, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant);
CREATE TABLE orders (tenant int NOT NULL, id int NOT NULL, customer int NOT NULL, placed timestamp NOT NULL, amount numeric(12,2), state text, note text, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant);
CREATE TABLE lines (tenant int NOT NULL, order_id int NOT NULL, line int NOT NULL, item text NOT NULL, quantity int, price numeric, shipped boolean, weight double precision, PRIMARY KEY (tenant, order_id, line)) SHARD BY tenants (tenant);
CREATE TABLE stock (item text NOT NULL, place int NOT NULL, held bigint, seen timestamptz, tags text[], doc jsonb, PRIMARY KEY (item, place)) SHARD BY items (item);
CREATE TABLE countries (code text PRIMARY KEY, name text, eu boolean) REPLICATED;
CREATE TABLE settings (name text PRIMARY KEY, value int);
CREATE TABLE drafts (tenant int NOT NULL DEFAULT length('abc'), id int NOT NULL, what text, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant);
CREATE TABLE marks (id bigserial PRIMARY KEY, code text UNIQUE, at timestamptz NOT NULL DEFAULT now(), until timestamptz) REPLICATED;
