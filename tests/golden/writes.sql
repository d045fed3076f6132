INSERT INTO orders (tenant_id, id) VALUES (5, 1)
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO orders VALUES (150, 1, 'open')
-- tier 1: route to s2, shardlet t2, writes

INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, 150), (3, 201), (4, 151)
-- tier 2: 2 shards, writes
--   s1: INSERT INTO orders (id, tenant_id) VALUES (1, 5), (3, 201)
--   s2: INSERT INTO orders (id, tenant_id) VALUES (2, 150), (4, 151)
--   merge: concatenate

INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, 150), (3, 201) RETURNING id
-- tier 2: 2 shards, writes
--   s1: INSERT INTO orders (id, tenant_id) VALUES (1, 5), (3, 201) RETURNING id
--   s2: INSERT INTO orders (id, tenant_id) VALUES (2, 150) RETURNING id
--   merge: rows in the order of tasks 1 2 1

INSERT INTO orders (id, tenant_id) VALUES (1, 5), (2, 7)
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO orders (id) VALUES (1)
-- refused KG003: the sharding key tenant_id is missing in this INSERT into public.orders
--   hint: Name the column and give it a value: it has no default.

INSERT INTO orders (id, tenant_id) VALUES (1, NULL)
-- refused KG003: the sharding key tenant_id is NULL in this INSERT into public.orders
--   hint: Every row of a sharded table needs its key.

INSERT INTO orders (id, tenant_id) VALUES (1, 2 + 3)
-- work out first on any shard:
--   2 + 3
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

INSERT INTO orders (id, tenant_id) VALUES (1, 5.5)
-- work out first on any shard:
--   CAST((5.5) AS bigint)
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

INSERT INTO orders (id, tenant_id) VALUES (1, 'x')
-- work out first on any shard:
--   CAST(('x') AS bigint)
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

INSERT INTO orders (tenant_id, id, status) VALUES (5, 1, lower('A')), (150, 2, 'b')
-- tier 2: 2 shards, writes
--   s1: INSERT INTO orders (tenant_id, id, status) VALUES (5, 1, lower('A'))
--   s2: INSERT INTO orders (tenant_id, id, status) VALUES (150, 2, 'b')
--   merge: concatenate

--! $1 bigint = 150
--! $2 bigint = 1
INSERT INTO orders (tenant_id, id) VALUES ($1, $2)
-- tier 1: route to s2, shardlet t2, writes

--! $1 bigint = 150
--! $2 bigint = 1
INSERT INTO orders (tenant_id, id) VALUES ($1, $2), ($2, 5) RETURNING *
-- tier 2: 2 shards, writes
--   s1: INSERT INTO orders (tenant_id, id) VALUES ($2, 5) RETURNING *
--   s2: INSERT INTO orders (tenant_id, id) VALUES ($1, $2) RETURNING *
--   merge: rows in the order of tasks 2 1

INSERT INTO notes (body) VALUES ('x')
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO notes DEFAULT VALUES
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO accounts (email) VALUES ('x')
-- work out first on any shard:
--   gen_random_uuid()
--   then plan: INSERT INTO accounts (email, "id") VALUES('x',  <1> )

INSERT INTO customers (region, id) VALUES ('de', 1), ('us', 2)
-- tier 2: 2 shards, writes
--   s2: INSERT INTO customers (region, id) VALUES ('de', 1)
--   s3: INSERT INTO customers (region, id) VALUES ('us', 2)
--   merge: concatenate

INSERT INTO orders (tenant_id, id) VALUES (5, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET status = 'x'
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO orders (tenant_id, id) VALUES (5, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET tenant_id = EXCLUDED.tenant_id
-- tier 1: route to s1, shardlet t1, writes

INSERT INTO orders (tenant_id, id) VALUES (5, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET tenant_id = 7
-- refused 0A000: ON CONFLICT DO UPDATE of the sharding key tenant_id
--   hint: Leave the key out of SET: the row that is there has the same.

INSERT INTO items SELECT tenant_id, id, 1, 'x', amount FROM orders
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

INSERT INTO items SELECT id, id, 1, 'x', amount FROM orders
-- pour rows of: SELECT id, id, 1, 'x', amount FROM orders
--   into: INSERT INTO items VALUES ...

INSERT INTO items SELECT tenant_id, id, 1, 'x', amount FROM orders WHERE tenant_id = 150 ORDER BY id LIMIT 3
-- pour rows of: SELECT tenant_id, id, 1, 'x', amount FROM orders WHERE tenant_id = 150 ORDER BY id LIMIT 3
--   into: INSERT INTO items VALUES ...

INSERT INTO items SELECT 150, id, 1, 'x', amount FROM orders WHERE tenant_id = 150 ORDER BY id LIMIT 3
-- tier 1: route to s2, shardlet t2, writes

INSERT INTO items SELECT 150, id, 1, name, price FROM plans
-- tier 1: route to s2, shardlet t2, writes

INSERT INTO settings VALUES ('a', 'b')
-- tier 1: route to s1, writes

INSERT INTO plans VALUES (1, 'a', 2.5)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

INSERT INTO countries (code, name) VALUES ('de', 'Germany')
-- work out first on s1:
--   now()
--   then plan: INSERT INTO countries (code, name, "updated") VALUES('de', 'Germany',  <1> )

INSERT INTO countries (code, name, updated) VALUES ('de', 'Germany', now())
-- work out first on s1:
--   now()
--   then plan: INSERT INTO countries (code, name, updated) VALUES('de', 'Germany',  <1> )

INSERT INTO countries (code, name, updated) VALUES ('de', 'Germany', '2024-01-01 00:00+00')
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE orders SET status = 'x' WHERE tenant_id = 5 AND id = 3
-- tier 1: route to s1, shardlet t1, writes

UPDATE orders SET status = 'x' WHERE tenant_id = 5 AND id IN (3, 4, 5)
-- tier 1: route to s1, shardlet t1, writes

UPDATE orders SET status = 'x' WHERE tenant_id IN (5, 150)
-- tier 2: 2 shards, writes
--   s1, s2: (own text)
--   merge: concatenate

UPDATE orders SET status = 'x'
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

UPDATE orders SET tenant_id = 6 WHERE tenant_id = 5
-- refused 0A000: UPDATE of the sharding key tenant_id
--   hint: DELETE the row and INSERT it with its new key, in one transaction.

UPDATE orders SET tenant_id = 5, status = 'x' WHERE tenant_id = 5
-- tier 1: route to s1, shardlet t1, writes

UPDATE orders SET tenant_id = tenant_id WHERE tenant_id < 50
-- tier 1: route to s1, shardlet t1, writes

UPDATE orders o SET amount = i.price FROM items i WHERE i.tenant_id = o.tenant_id AND i.order_id = o.id
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

UPDATE orders o SET amount = i.price FROM items i WHERE i.order_id = o.id
-- read first <1>: SELECT * FROM items i
--   then plan: UPDATE orders o SET amount = i.price FROM (<1>) AS "i" WHERE i.order_id = o.id

UPDATE plans SET price = 3 WHERE id = 1
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET price = random()
-- refused 0A000: a write to the replicated table public.plans with a value that each shard would have to make for itself, by a volatile function
--   hint: Give the value itself, as a literal or a parameter.

UPDATE plans SET price = (SELECT max(amount) FROM orders)
-- read first <1>: (SELECT max(amount) FROM orders)
--   then plan: UPDATE plans SET price = (<1>)

UPDATE states SET v = 'x' WHERE id = 15
-- refused KG002: shardlet readonly is read only
--   hint: ALTER SHARDLET readonly SET ONLINE lets statements write to it again.

UPDATE states SET v = 'x' WHERE id < 10
-- tier 1: route to s1, shardlet open, writes

UPDATE moves SET v = 'x' WHERE id < 10
-- tier 1: route to s1, shardlet m1, writes
--   text: UPDATE moves SET v = 'x' WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE) AND (id < 10)

UPDATE moves SET v = 'x' WHERE v = 'a' OR v = 'b'
-- tier 2: 2 shards, writes
--   s1: UPDATE moves SET v = 'x' WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE) AND (v = 'a' OR v = 'b')
--   s2: (own text)
--   merge: concatenate

UPDATE moves SET v = 'x'
-- tier 2: 2 shards, writes
--   s1: UPDATE moves SET v = 'x' WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE)
--   s2: (own text)
--   merge: concatenate

DELETE FROM orders WHERE tenant_id = 350
-- tier 1: route to s3, shardlet t4, writes

DELETE FROM orders USING plans p WHERE p.id = orders.plan_id AND p.name = 'x'
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

DELETE FROM moves
-- tier 2: 2 shards, writes
--   s1: DELETE FROM moves WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE)
--   s2: (own text)
--   merge: concatenate

DELETE FROM settings
-- tier 1: route to s1, writes

DELETE FROM orders WHERE id IN (SELECT order_id FROM items i WHERE i.tenant_id = orders.tenant_id)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

DELETE FROM orders WHERE id IN (SELECT order_id FROM items)
-- read first <1>: (SELECT order_id FROM items)
--   then plan: DELETE FROM orders WHERE (id = ANY (<1>))

MERGE INTO orders o USING plans p ON o.tenant_id = 5 AND o.plan_id = p.id WHEN MATCHED THEN UPDATE SET note = p.name
-- tier 1: route to s1, shardlet t1, writes

MERGE INTO orders o USING plans p ON o.tenant_id = 5 AND o.plan_id = p.id WHEN NOT MATCHED THEN INSERT (tenant_id, id) VALUES (5, p.id)
-- tier 1: route to s1, shardlet t1, writes

MERGE INTO orders o USING plans p ON o.tenant_id = 5 AND o.plan_id = p.id WHEN NOT MATCHED THEN INSERT (tenant_id, id) VALUES (7, p.id)
-- refused 0A000: MERGE that inserts another sharding key than ON names with =
--   hint: Give the key as the same literal or parameter in ON and in VALUES, or use INSERT ... ON CONFLICT.

MERGE INTO orders o USING plans p ON o.plan_id = p.id WHEN MATCHED THEN DELETE
-- refused 0A000: MERGE over several shards
--   hint: Say in ON with = which sharding key it is for, or use INSERT ... ON CONFLICT, UPDATE and DELETE.

WITH x AS (UPDATE plans SET price = 1 RETURNING id) SELECT * FROM x
-- write first <1>: UPDATE plans SET price = 1 RETURNING id
--   then plan: WITH x AS (<1>) SELECT * FROM x

WITH x AS (UPDATE plans SET price = 1 RETURNING id) INSERT INTO orders (tenant_id, id) VALUES (5, 1)
-- refused 0A000: a WITH that writes to a replicated table
--   hint: Run the write as a statement of its own, in the same transaction.

WITH x AS (DELETE FROM orders WHERE tenant_id = 5 RETURNING id) SELECT * FROM x
-- tier 1: route to s1, shardlet t1, writes

WITH x AS (DELETE FROM orders WHERE id = 5 RETURNING id) SELECT * FROM x
-- write first <1>: DELETE FROM orders WHERE id = 5 RETURNING id
--   then plan: WITH x AS (<1>) SELECT * FROM x

EXPLAIN ANALYZE UPDATE plans SET price = 1
-- refused 0A000: EXPLAIN of a statement over several shards
--   hint: EXPLAIN (ROUTE) shows what each shard gets; connect to a shard to see its plan.

EXPLAIN UPDATE plans SET price = 1
-- tier 1: route to s1, writes

INSERT INTO accounts (email, balance) VALUES ('x', 1), ('y', 2), ('z', 3) ON CONFLICT DO NOTHING RETURNING id
-- work out first on any shard:
--   gen_random_uuid()
--   gen_random_uuid()
--   gen_random_uuid()
--   then plan: INSERT INTO accounts (email, balance, "id") VALUES('x', 1,  <1> ), ('y', 2,  <2> ), ('z', 3,  <3> ) ON CONFLICT DO NOTHING RETURNING id

INSERT INTO accounts VALUES (DEFAULT, 'x', 1), (gen_random_uuid(), 'y', 2), ('11111111-1111-1111-1111-111111111111', 'z', 3)
-- work out first on any shard:
--   gen_random_uuid()
--   gen_random_uuid()
--   then plan: INSERT INTO accounts VALUES( <1> , 'x', 1), ( <2> , 'y', 2), ('11111111-1111-1111-1111-111111111111', 'z', 3)

INSERT INTO accounts DEFAULT VALUES RETURNING id
-- work out first on any shard:
--   gen_random_uuid()
--   then plan: INSERT INTO accounts ("id") VALUES ( <1> ) RETURNING id

INSERT INTO accounts (id, email) VALUES ($1, 'x')
-- work out first on any shard:
--   CAST(($1) AS uuid)
--   then plan: INSERT INTO accounts (id, email) VALUES( <1> , 'x')

INSERT INTO accounts (id, email) VALUES (coalesce($1, gen_random_uuid()), 'x')
-- work out first on any shard:
--   coalesce($1, gen_random_uuid())
--   then plan: INSERT INTO accounts (id, email) VALUES( <1> , 'x')

INSERT INTO countries (code, name, updated) VALUES ('de', upper('Germany'), now() - interval '1 day'), ('fr', 'France', DEFAULT)
-- work out first on s1:
--   now() - interval '1 day'
--   now()
--   then plan: INSERT INTO countries (code, name, updated) VALUES('de', upper('Germany'),  <1> ), ('fr', 'France',  <2> )

INSERT INTO countries (code, name, updated) VALUES ($1, $2, now())
-- work out first on s1:
--   now()
--   then plan: INSERT INTO countries (code, name, updated) VALUES($1, $2,  <1> )

INSERT INTO countries (code, name) VALUES ('de', 'Germany') ON CONFLICT (code) DO UPDATE SET updated = now()
-- work out first on s1:
--   now()
--   now()
--   then plan: INSERT INTO countries (code, name, "updated") VALUES('de', 'Germany',  <1> ) ON CONFLICT (code) DO UPDATE SET updated = <2>

UPDATE countries SET name = 'D', updated = now() WHERE code = 'de' AND updated < current_timestamp - interval '1 hour'
-- work out first on s1:
--   now()
--   current_timestamp
--   then plan: UPDATE countries SET name = 'D', updated = <1> WHERE code = 'de' AND updated < <2> - interval '1 hour'

UPDATE countries SET updated = now() WHERE code = 'de' RETURNING now()
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by the time
--   hint: Give the value itself, as a literal or a parameter.

UPDATE countries SET updated = clock_timestamp() WHERE code = 'de'
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by a volatile function
--   hint: Give the value itself, as a literal or a parameter.

DELETE FROM countries WHERE updated < now() - interval '1 year' RETURNING code
-- work out first on s1:
--   now()
--   then plan: DELETE FROM countries WHERE updated < <1> - interval '1 year' RETURNING code

MERGE INTO countries c USING (VALUES ('de')) v(code) ON c.code = v.code WHEN NOT MATCHED THEN INSERT (code) VALUES (v.code)
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by the default of column updated
--   hint: Give the value itself, as a literal or a parameter.

INSERT INTO orders (id, tenant_id) VALUES (1, abs(-5)), (2, 6)
-- work out first on any shard:
--   abs(-5)
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> ), (2, 6)

INSERT INTO orders (tenant_id, id, note) VALUES (1, 1, now()::text), (150, 1, now()::text)
-- work out first on any shard:
--   now()::text
--   now()::text
--   then plan: INSERT INTO orders (tenant_id, id, note) VALUES(1, 1,  <1> ), (150, 1,  <2> )

INSERT INTO orders (tenant_id, id, placed) VALUES (1, 1, now()), (150, 1, now()) RETURNING id, now()
-- tier 2: 2 shards, writes
--   s1: INSERT INTO orders (tenant_id, id, placed) VALUES (1, 1, now()) RETURNING id, now()
--   s2: INSERT INTO orders (tenant_id, id, placed) VALUES (150, 1, now()) RETURNING id, now()
--   merge: rows in the order of tasks 1 2

--! $1 bigint = 149
INSERT INTO orders (id, tenant_id) VALUES (1, $1 + 1)
-- work out first on any shard:
--   ('149'::pg_catalog.int8) + 1
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

--! $1 text = 150
INSERT INTO orders (id, tenant_id) VALUES (1, $1::text::bigint), (2, 5)
-- work out first on any shard:
--   ('150'::pg_catalog.text)::text::bigint
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> ), (2, 5)

--! $1 float8 = 150
INSERT INTO orders (id, tenant_id) VALUES (1, $1)
-- work out first on any shard:
--   CAST((('150'::pg_catalog.float8)) AS bigint)
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

INSERT INTO orders (id, tenant_id) VALUES (1, 99999999999999999999)
-- work out first on any shard:
--   CAST((99999999999999999999) AS bigint)
--   then plan: INSERT INTO orders (id, tenant_id) VALUES(1,  <1> )

INSERT INTO customers (region, id) VALUES (U&'!0064!0065' UESCAPE '!', 1)
-- tier 1: route to s2, shardlet eu, writes

UPDATE orders SET note = 'x' WHERE tenant_id = 100 + 50
-- work out first on any shard:
--   100 + 50
--   then plan: UPDATE orders SET note = 'x' WHERE tenant_id = <1>

DELETE FROM orders WHERE tenant_id = -(-5)
-- work out first on any shard:
--   -(-5)
--   then plan: DELETE FROM orders WHERE tenant_id = <1>

DELETE FROM moves m WHERE EXISTS (SELECT 1 FROM orders o WHERE o.tenant_id = m.id)
-- read first <1>: SELECT * FROM orders o
--   then plan: DELETE FROM moves m WHERE EXISTS (SELECT 1 FROM (<1>) AS "o" WHERE o.tenant_id = m.id)

UPDATE orders o SET amount = i.price FROM items i WHERE i.order_id = o.id AND i.price > 3 AND i.price < o.amount
-- read first <1>: SELECT * FROM items i WHERE (i.price > 3)
--   then plan: UPDATE orders o SET amount = i.price FROM (<1>) AS "i" WHERE i.order_id = o.id AND i.price > 3 AND i.price < o.amount

UPDATE orders o SET note = m.v FROM moves m WHERE m.id = o.id AND m.v <> 'gone' RETURNING o.id, m.v
-- read first <1>: SELECT * FROM moves m WHERE (m.v <> 'gone')
--   then plan: UPDATE orders o SET note = m.v FROM (<1>) AS "m" WHERE m.id = o.id AND m.v <> 'gone' RETURNING o.id, m.v

DELETE FROM orders USING moves m, items i WHERE i.tenant_id = orders.tenant_id AND i.order_id = orders.id AND m.id = i.price
-- read first <1>: SELECT * FROM moves m
--   then plan: DELETE FROM orders USING (<1>) AS "m" , items i WHERE i.tenant_id = orders.tenant_id AND i.order_id = orders.id AND m.id = i.price

DELETE FROM orders USING (SELECT max(id) AS id FROM moves) m WHERE m.id = orders.id
-- read first <1>: (SELECT max(id) AS id FROM moves)
--   then plan: DELETE FROM orders USING (<1>) m WHERE m.id = orders.id

DELETE FROM orders USING settings s WHERE s.key = orders.status
-- read first <1>: SELECT * FROM settings s
--   then plan: DELETE FROM orders USING (<1>) AS "s" WHERE s.key = orders.status

DELETE FROM orders WHERE tenant_id IN (SELECT id FROM moves WHERE v = 'x')
-- read first <1>: (SELECT id FROM moves WHERE v = 'x')
--   then plan: DELETE FROM orders WHERE (tenant_id = ANY (<1>))

DELETE FROM orders WHERE tenant_id NOT IN (SELECT id FROM moves) AND (id, status) IN (SELECT id, v FROM moves LIMIT 3)
-- read first <1>: (SELECT id FROM moves)
-- read first <2>: (SELECT id, v FROM moves LIMIT 3)
--   then plan: DELETE FROM orders WHERE tenant_id NOT IN (<1>) AND (id, status) IN (<2>)

DELETE FROM orders WHERE tenant_id = 5 AND id IN (SELECT id FROM moves WHERE id < 5)
-- tier 1: route to s1, writes
--   text: DELETE FROM orders WHERE tenant_id = 5 AND id IN (SELECT id FROM moves WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE) AND (id < 5))

--! $1 text = 'x'
--! $2 bigint = 7
DELETE FROM orders WHERE id IN (SELECT id FROM moves WHERE v = $1) AND id <> $2
-- read first <1>: (SELECT id FROM moves WHERE v = $1)
--   then plan: DELETE FROM orders WHERE (id = ANY (<1>)) AND id <> $2

UPDATE orders SET amount = (SELECT count(*) FROM moves m WHERE m.id = orders.id), note = (SELECT max(v) FROM moves)
-- read first <1>: SELECT * FROM moves m
-- read first <2>: (SELECT max(v) FROM moves)
--   then plan: UPDATE orders SET amount = (SELECT count(*) FROM (<1>) AS "m" WHERE m.id = orders.id), note = (<2>)

UPDATE orders SET amount = (SELECT count(*) FROM moves m WHERE m.id = orders.id FOR UPDATE)
-- refused 0A000: a write over several shards of which in a subquery, its groups are made of rows of several shards
--   hint: Say with = which sharding key it is for.

WITH big AS (SELECT tenant_id, max(id) AS id FROM items GROUP BY tenant_id), small AS (SELECT min(id) AS id FROM big) DELETE FROM orders o USING small s WHERE o.id = s.id
-- read first <1>: WITH big AS (SELECT tenant_id, max(id) AS id FROM items GROUP BY tenant_id)  SELECT * FROM "big"
--   then plan: WITH big AS (<1>), small AS (SELECT min(id) AS id FROM big) DELETE FROM orders o USING small s WHERE o.id = s.id

WITH big(x) AS (SELECT max(id) FROM moves) UPDATE settings SET value = (SELECT x FROM big)
-- read first <1>: WITH big(x) AS (SELECT max(id) FROM moves)  SELECT * FROM "big"
--   then plan: WITH big(x) AS (<1>) UPDATE settings SET value = (SELECT x FROM big)

UPDATE settings SET value = (SELECT max(note) FROM orders)
-- read first <1>: (SELECT max(note) FROM orders)
--   then plan: UPDATE settings SET value = (<1>)

DELETE FROM settings s USING orders o WHERE o.status = s.key
-- read first <1>: SELECT * FROM orders o
--   then plan: DELETE FROM settings s USING (<1>) AS "o" WHERE o.status = s.key

UPDATE plans SET price = price + (SELECT count(*) FROM orders WHERE tenant_id < 50)
-- read first <1>: (SELECT count(*) FROM orders WHERE tenant_id < 50)
--   then plan: UPDATE plans SET price = price + (<1>)

INSERT INTO orders (tenant_id, id, amount) VALUES (5, 1, (SELECT max(id) FROM moves))
-- read first <1>: (SELECT max(id) FROM moves)
--   then plan: INSERT INTO orders (tenant_id, id, amount) VALUES (5, 1,<1>)

INSERT INTO orders (tenant_id, id, amount) VALUES (5, 1, 1 + (SELECT max(id) FROM moves)), (150, 2, 3)
-- read first <1>: (SELECT max(id) FROM moves)
--   then plan: INSERT INTO orders (tenant_id, id, amount) VALUES (5, 1, 1 + (<1>)), (150, 2, 3)

INSERT INTO orders (tenant_id, id) VALUES ((SELECT max(tenant_id) + 1 FROM orders), 1)
-- read first <1>: (SELECT max(tenant_id) + 1 FROM orders)
--   then plan: INSERT INTO orders (tenant_id, id) VALUES (<1>, 1)

INSERT INTO settings (key, value) VALUES ('orders', (SELECT count(*) FROM orders))
-- read first <1>: (SELECT count(*) FROM orders)
--   then plan: INSERT INTO settings (key, value) VALUES ('orders',<1>)

INSERT INTO plans (id, price) VALUES (1, (SELECT count(*) FROM orders))
-- read first <1>: (SELECT count(*) FROM orders)
--   then plan: INSERT INTO plans (id, price) VALUES (1,<1>)

WITH x AS (SELECT id FROM moves WHERE v = 'x') INSERT INTO orders (tenant_id, id) SELECT id, 1 FROM x
-- pour rows of: WITH x AS (SELECT id FROM moves WHERE v = 'x') (SELECT id, 1 FROM x)
--   into: INSERT INTO orders (tenant_id, id) VALUES ...

WITH x AS (DELETE FROM orders WHERE id = 5 RETURNING id, tenant_id) INSERT INTO moves SELECT id, 'gone' FROM x
-- write first <1>: DELETE FROM orders WHERE id = 5 RETURNING id, tenant_id
--   then plan: WITH x AS (<1>) INSERT INTO moves SELECT id, 'gone' FROM x

WITH x AS (DELETE FROM orders WHERE id = 5 RETURNING id), y AS (SELECT count(*) AS n FROM x) SELECT n FROM y
-- write first <1>: DELETE FROM orders WHERE id = 5 RETURNING id
--   then plan: WITH x AS (<1>), y AS (SELECT count(*) AS n FROM x) SELECT n FROM y

WITH x AS (DELETE FROM orders WHERE id = 5 RETURNING id) SELECT count(*) FROM x, orders
-- refused 0A000: a WITH that writes, over several shards
--   hint: Run the writes as statements of their own in one transaction, or say with = which sharding key each is for.

WITH x AS (DELETE FROM orders WHERE id = 5 RETURNING id), y AS (UPDATE moves SET v = 'x') SELECT count(*) FROM x
-- refused 0A000: a WITH that writes, over several shards
--   hint: Run the writes as statements of their own in one transaction, or say with = which sharding key each is for.

WITH x AS (INSERT INTO orders (tenant_id, id) VALUES (5, 1), (150, 2) RETURNING id), y AS (INSERT INTO moves SELECT id, 'x' FROM x RETURNING id) SELECT * FROM y
-- write first <1>: INSERT INTO orders (tenant_id, id) VALUES (5, 1), (150, 2) RETURNING id
--   then plan: WITH x AS (<1>), y AS (INSERT INTO moves SELECT id, 'x' FROM x RETURNING id) SELECT * FROM y

SELECT id FROM orders LIMIT -1
-- tier 1: route to s1

SELECT id FROM orders ORDER BY id LIMIT 3 OFFSET -2
-- tier 1: route to s1

DELETE FROM orders WHERE ctid = '(0,1)'
-- refused 0A000: a write over several shards that says by ctid which rows it is about
--   hint: On each shard that is another row. Name rows by their primary key, or say with = which sharding key it is for.

DELETE FROM orders WHERE tenant_id = 5 AND ctid = '(0,1)'
-- tier 1: route to s1, shardlet t1, writes

DELETE FROM orders WHERE ctid IN (SELECT ctid FROM orders WHERE status = 'x' LIMIT 10)
-- refused 0A000: a write over several shards of which in a subquery, LIMIT or OFFSET in a subquery over several shards
--   hint: Say with = which sharding key it is for.

DELETE FROM orders WHERE tenant_id = 5 AND ctid IN (SELECT ctid FROM orders WHERE tenant_id = 5 AND status = 'x' LIMIT 10)
-- tier 1: route to s1, shardlet t1, writes

DELETE FROM orders o WHERE o.ctid = ANY (ARRAY(SELECT i.ctid FROM orders i WHERE i.status = 'x' LIMIT 10))
-- refused 0A000: a write over several shards of which in a subquery, LIMIT or OFFSET in a subquery over several shards
--   hint: Say with = which sharding key it is for.

DELETE FROM orders a USING orders b WHERE a.tenant_id = b.tenant_id AND a.note = b.note AND a.ctid < b.ctid
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

DELETE FROM orders o WHERE EXISTS (SELECT FROM orders i WHERE i.note = o.note AND i.ctid < o.ctid)
-- refused 0A000: a write over several shards of which a subquery reads a sharded table, not by the key of the row outside
--   hint: Say with = which sharding key it is for.

UPDATE orders SET note = 'x' WHERE id = 7 AND xmin = '123' RETURNING ctid
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

-- What each shard would choose for itself: rows of which several match, that LIMIT leaves, in an order that nobody asked for.
UPDATE plans SET name = c.name FROM countries c WHERE c.name = plans.name
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = c.name FROM countries c WHERE c.code = plans.name
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET price = 1 FROM countries c WHERE c.name = plans.name
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = p.name FROM plans p WHERE p.id = plans.id + 1
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = s.code FROM (SELECT name, min(code) AS code FROM countries GROUP BY name) s WHERE s.name = plans.name
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = s.code FROM (SELECT DISTINCT ON (name) name, code FROM countries ORDER BY name, code) s WHERE s.name = plans.name
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = s.code FROM (SELECT DISTINCT ON (name) name, code FROM countries) s WHERE s.name = plans.name
-- refused 0A000: a write to the replicated table public.plans of which DISTINCT ON without an ORDER BY that tells its rows apart takes other rows on each shard
--   hint: ORDER BY a unique key as well, or read the rows first and write them by their keys.

UPDATE plans SET name = v.name FROM (VALUES (1, 'a'), (2, 'b')) v (id, name) WHERE v.id = plans.id
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = v.name FROM (VALUES (1, 'a'), (1, 'b')) v (id, name) WHERE v.id = plans.id
-- refused 0A000: an UPDATE of the replicated table public.plans by rows of FROM of which several may match one of its rows
--   hint: Each shard would take another. Make them one for each row, by a unique key, GROUP BY or DISTINCT ON with ORDER BY, or use MERGE.

UPDATE plans SET name = v.name FROM (VALUES ($1::int, $2), ($3, $4)) v (id, name) WHERE v.id = plans.id
-- refused 0A000: an UPDATE of the replicated table public.plans by rows of FROM of which several may match one of its rows
--   hint: Each shard would take another. Make them one for each row, by a unique key, GROUP BY or DISTINCT ON with ORDER BY, or use MERGE.

UPDATE plans SET name = (SELECT name FROM countries LIMIT 1)
-- read first <1>: (SELECT name FROM countries LIMIT 1)
--   then plan: UPDATE plans SET name = (<1>)

UPDATE plans SET name = (SELECT name FROM countries ORDER BY code LIMIT 1)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = (SELECT name FROM countries ORDER BY name LIMIT 1)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = (SELECT c.name FROM countries c WHERE c.name > plans.name LIMIT 1)
-- refused 0A000: a write to the replicated table public.plans of which in a subquery, LIMIT or OFFSET without an ORDER BY that tells its rows apart takes other rows on each shard
--   hint: ORDER BY a unique key as well, or read the rows first and write them by their keys.

UPDATE plans SET name = (SELECT c.name FROM countries c WHERE c.name > plans.name ORDER BY c.name, c.code LIMIT 1)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = (SELECT c.name FROM countries c WHERE c.code = plans.name LIMIT 1)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET name = (SELECT string_agg(name, ',') FROM countries)
-- read first <1>: (SELECT string_agg(name, ',') FROM countries)
--   then plan: UPDATE plans SET name = (<1>)

UPDATE plans SET name = (SELECT string_agg(name, ',' ORDER BY code) FROM countries)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET price = (SELECT sum(price) FROM plans p)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

UPDATE plans SET price = (SELECT sum(price::float8) FROM plans p)
-- read first <1>: (SELECT sum(price::float8) FROM plans p)
--   then plan: UPDATE plans SET price = (<1>)

UPDATE plans SET name = (SELECT first_value(name) OVER (ORDER BY name) FROM countries ORDER BY code LIMIT 1)
-- read first <1>: (SELECT first_value(name) OVER (ORDER BY name) FROM countries ORDER BY code LIMIT 1)
--   then plan: UPDATE plans SET name = (<1>)

UPDATE plans SET price = (SELECT price FROM plans TABLESAMPLE SYSTEM (10) ORDER BY id LIMIT 1)
-- read first <1>: (SELECT price FROM plans TABLESAMPLE SYSTEM (10) ORDER BY id LIMIT 1)
--   then plan: UPDATE plans SET price = (<1>)

DELETE FROM plans WHERE id = (SELECT id FROM plans ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
-- read first <1>: (SELECT id FROM plans ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
--   then plan: DELETE FROM plans WHERE id = (<1>)

DELETE FROM plans WHERE id IN (SELECT id FROM plans LIMIT 3)
-- read first <1>: (SELECT id FROM plans LIMIT 3)
--   then plan: DELETE FROM plans WHERE (id = ANY (<1>))

DELETE FROM plans WHERE ctid = '(0,1)'
-- refused 0A000: a write to the replicated table public.plans that names ctid, which is another on each shard
--   hint: Name rows by their primary key.

DELETE FROM plans WHERE EXISTS (SELECT * FROM countries c WHERE c.name = plans.name LIMIT 1)
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

WITH c AS (SELECT * FROM countries LIMIT 1) UPDATE plans SET name = (SELECT name FROM c)
-- read first <1>: WITH c AS (SELECT * FROM countries LIMIT 1)  SELECT * FROM "c"
--   then plan: WITH c AS (<1>) UPDATE plans SET name = (SELECT name FROM c)

UPDATE countries SET updated = DEFAULT
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by the default of column updated
--   hint: Give the value itself, as a literal or a parameter.

UPDATE countries SET (name, updated) = ('x', DEFAULT) WHERE code = 'de'
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by the default of column updated
--   hint: Give the value itself, as a literal or a parameter.

UPDATE countries SET name = DEFAULT
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

INSERT INTO plans (id, name) SELECT id + 100, min(name) FROM plans GROUP BY 1
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

INSERT INTO plans (id, name) SELECT row_number() OVER (), name FROM countries
-- pour rows of: SELECT row_number() OVER (), name FROM countries
--   into: INSERT INTO plans (id, name) VALUES ...

INSERT INTO plans (id, name) SELECT row_number() OVER (ORDER BY code), name FROM countries
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

INSERT INTO plans (id, name) SELECT DISTINCT ON (name) 7, name FROM countries
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: one answer for all

INSERT INTO plans (id, name) SELECT length(code), name FROM countries ON CONFLICT (id) DO NOTHING
-- pour rows of: SELECT length(code), name FROM countries
--   into: INSERT INTO plans (id, name) VALUES ... ON CONFLICT (id) DO NOTHING

INSERT INTO plans (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = (SELECT name FROM countries LIMIT 1)
-- refused 0A000: INSERT into the replicated table public.plans with ON CONFLICT, of which in a subquery, LIMIT or OFFSET without an ORDER BY that tells its rows apart takes other rows on each shard
--   hint: Read the value first, then give it as a literal or a parameter.

INSERT INTO countries (code) VALUES ('de') ON CONFLICT (code) DO UPDATE SET updated = DEFAULT
-- refused 0A000: INSERT into the replicated table public.countries with a value that each shard would have to make for itself, by the default of column updated
--   hint: Give the value itself, as a literal or a parameter.

INSERT INTO plans (id, name) VALUES (1, (SELECT name FROM countries LIMIT 1))
-- read first <1>: (SELECT name FROM countries LIMIT 1)
--   then plan: INSERT INTO plans (id, name) VALUES (1,<1>)

MERGE INTO countries c USING plans p ON p.name = c.code WHEN MATCHED THEN UPDATE SET updated = DEFAULT
-- refused 0A000: a write to the replicated table public.countries with a value that each shard would have to make for itself, by the default of column updated
--   hint: Give the value itself, as a literal or a parameter.

MERGE INTO plans p USING (SELECT DISTINCT ON (name) name, code FROM countries) c ON p.name = c.name WHEN MATCHED THEN UPDATE SET name = c.code
-- refused 0A000: a write to the replicated table public.plans of which DISTINCT ON without an ORDER BY that tells its rows apart takes other rows on each shard
--   hint: ORDER BY a unique key as well, or read the rows first and write them by their keys.

INSERT INTO orders (tenant_id, id) SELECT * FROM unnest(ARRAY[1, 5], ARRAY[7, 8])
-- pour rows of: SELECT * FROM unnest(ARRAY[1, 5], ARRAY[7, 8])
--   into: INSERT INTO orders (tenant_id, id) VALUES ...

DELETE FROM orders o USING wanted w WHERE w.id = o.id
-- read first <1>: SELECT * FROM wanted w
--   then plan: DELETE FROM orders o USING (<1>) AS "w" WHERE w.id = o.id

