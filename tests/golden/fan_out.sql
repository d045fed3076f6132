SELECT * FROM orders WHERE tenant_id IN (5, 7)
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id IN (5, 150)
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id IN (5, -1, NULL)
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id IN (5, id)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

--! $1 bigint[] = {5,150}
SELECT * FROM orders WHERE tenant_id = ANY ($1)
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id = ANY ('{5,350}'::bigint[])
-- tier 2: 2 shards
--   s1, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id = ANY (ARRAY[5, 350])
-- tier 2: 2 shards
--   s1, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id BETWEEN 120 AND 180
-- tier 1: route to s2, shardlet t2

SELECT * FROM orders WHERE tenant_id >= 120 AND tenant_id < 250
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id > 300
-- tier 1: route to s3, shardlet t4

SELECT * FROM orders WHERE tenant_id < 0 OR tenant_id = 350
-- tier 2: 2 shards
--   s1, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id = 5 OR status = 'x'
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE NOT (tenant_id = 5)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id <> 5
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id IS NULL
-- tier 1: route to s1

SELECT * FROM orders WHERE tenant_id IS NOT DISTINCT FROM 5
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id = 5 AND tenant_id = 150
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE false
-- tier 1: route to s1

SELECT * FROM orders WHERE tenant_id = 5.0
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id = 5.5
-- tier 1: route to s1

SELECT * FROM orders WHERE tenant_id = 99999999999999999999
-- tier 1: route to s1

SELECT * FROM orders WHERE tenant_id + 1 = 5
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM customers WHERE region IN ('de', 'fr')
-- tier 1: route to s2, shardlet eu

SELECT * FROM customers WHERE region > 'de'
-- tier 2: 2 shards
--   s2, s3: (own text)
--   merge: concatenate

SELECT * FROM customers
-- tier 2: 2 shards
--   s2, s3: (own text)
--   merge: concatenate

SELECT * FROM cells WHERE x = 4
-- tier 1: route to s1, shardlet c1

SELECT * FROM cells WHERE x = 5
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM cells WHERE y = 'a'
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM cells WHERE (x, y) > (6, 'a')
-- tier 1: route to s2, shardlet c2

SELECT * FROM cells WHERE (x, y) IN ((1, 'a'), (2, 'b'))
-- tier 1: route to s1, shardlet c1

SELECT * FROM cells WHERE x = 5 AND y < 'f'
-- tier 1: route to s1, shardlet c1

SELECT * FROM accounts WHERE id > '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM accounts WHERE id IN ('6ba7b810-9dad-11d1-80b4-00c04fd430c8', '6ba7b811-9dad-11d1-80b4-00c04fd430c8')
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT * FROM events WHERE day >= '2024-06-01'
-- tier 1: route to s2, shardlet new

SELECT * FROM events WHERE day = date '2023-06-01'
-- tier 1: route to s1, shardlet old

SELECT * FROM events_2024
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: concatenate

SELECT id FROM orders ORDER BY id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint

SELECT id FROM orders ORDER BY amount
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id, amount AS kg_h1 FROM orders ORDER BY amount
--   merge: merge in order of column 2 numeric, hide the last 1

SELECT id, amount AS a FROM orders ORDER BY a DESC NULLS LAST, id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 2 numeric descending nulls last, column 1 bigint

SELECT * FROM orders ORDER BY placed
-- tier 2: 3 shards
--   s1, s2, s3: SELECT *, "orders"."placed" AS kg_h1 FROM orders ORDER BY placed
--   merge: merge in order of column 10 timestamp with time zone, hide the last 1

SELECT id, placed FROM orders ORDER BY 2 DESC
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id, placed, placed AS kg_h1 FROM orders ORDER BY 2 DESC
--   merge: merge in order of column 3 timestamp with time zone descending, hide the last 1

SELECT id FROM orders ORDER BY qty * 2
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id, qty * 2 AS kg_h1 FROM orders ORDER BY qty * 2
--   merge: merge in order of column 2 integer, hide the last 1

SELECT id FROM orders ORDER BY code
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id, code AS kg_h1 FROM orders ORDER BY code
--   merge: merge in order of column 2 text, hide the last 1

SELECT id FROM orders ORDER BY status
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1, kg_o1)
--     s1, s2, s3: SELECT id, status AS kg_o1 FROM orders
--   text: SELECT kg_c1 AS "id" FROM kg_0 ORDER BY kg_o1

SELECT id FROM orders ORDER BY status COLLATE "C"
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id, status COLLATE "C" AS kg_h1 FROM orders ORDER BY status COLLATE "C"
--   merge: merge in order of column 2 text, hide the last 1

SELECT id FROM orders LIMIT 10
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate, limit 10

SELECT id FROM orders ORDER BY id LIMIT 10 OFFSET 5
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id FROM orders ORDER BY id LIMIT 15
--   merge: merge in order of column 1 bigint, offset 5, limit 10

SELECT id FROM orders ORDER BY id OFFSET 5
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id FROM orders ORDER BY id
--   merge: merge in order of column 1 bigint, offset 5

SELECT id FROM orders ORDER BY id FETCH FIRST ROW ONLY
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint, limit 1

--! $1 bigint = 3
--! $2 bigint = 4
SELECT id FROM orders ORDER BY id LIMIT $1 OFFSET $2
-- tier 2: 3 shards
--   s1, s2, s3: SELECT id FROM orders ORDER BY id LIMIT 7
--   merge: merge in order of column 1 bigint, offset 4, limit 3

SELECT id FROM orders ORDER BY id LIMIT ALL
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint

SELECT id FROM orders ORDER BY id FETCH FIRST 3 ROWS WITH TIES
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "orders"
--   text: SELECT id FROM kg_0 AS "orders" ORDER BY id FETCH FIRST 3 ROWS WITH TIES

SELECT DISTINCT plan_id FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: SELECT DISTINCT plan_id FROM orders ORDER BY 1
--   merge: merge in order of column 1 integer, distinct

SELECT DISTINCT tenant_id FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT DISTINCT status FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: SELECT DISTINCT status, status COLLATE "C" AS kg_h1 FROM orders ORDER BY 2
--   merge: merge in order of column 2 text, distinct, hide the last 1

SELECT DISTINCT plan_id, qty FROM orders ORDER BY qty LIMIT 3
-- tier 2: 3 shards
--   s1, s2, s3: SELECT DISTINCT plan_id, qty FROM orders ORDER BY qty, 1 LIMIT 3
--   merge: merge in order of column 2 integer, column 1 integer, distinct, limit 3

SELECT DISTINCT ON (tenant_id) * FROM orders ORDER BY tenant_id, id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint, column 2 bigint

SELECT count(*), sum(qty), min(id), max(placed), bool_and(qty > 1), bool_or(qty > 2), 'x' FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: fold one row from each: sum bigint, sum bigint, min bigint, max timestamp with time zone, and boolean, or boolean, first

SELECT count(DISTINCT tenant_id) FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: fold one row from each: sum bigint

SELECT count(DISTINCT status) FROM orders
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_d1)
--     s1, s2, s3: SELECT status FROM orders GROUP BY 1
--   text: SELECT count(DISTINCT kg_d1) AS "count" FROM kg_0

SELECT sum(amount) FROM orders
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_a1)
--     s1, s2, s3: SELECT pg_catalog.sum(amount) FROM orders
--   text: SELECT pg_catalog.sum(kg_a1) AS "sum" FROM kg_0

SELECT avg(qty) FROM orders
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_a1, kg_a2)
--     s1, s2, s3: SELECT pg_catalog.sum(qty), pg_catalog.count(qty) FROM orders
--   text: SELECT (pg_catalog.sum(kg_a1) / nullif(pg_catalog.sum(kg_a2), 0)) AS "avg" FROM kg_0

SELECT max(status) FROM orders
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_a1)
--     s1, s2, s3: SELECT pg_catalog.max(status) FROM orders
--   text: SELECT pg_catalog.max(kg_a1) AS "max" FROM kg_0

SELECT count(*) FILTER (WHERE status = 'open') FROM orders WHERE tenant_id < 150
-- tier 2: 2 shards
--   s1, s2: (own text)
--   merge: fold one row from each: sum bigint

SELECT tenant_id, count(*) FROM orders GROUP BY tenant_id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT tenant_id, status, avg(amount) FROM orders GROUP BY tenant_id, status ORDER BY tenant_id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint

SELECT tenant_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > 3 ORDER BY 2 DESC LIMIT 5
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 2 bigint descending, limit 5

SELECT status, count(*) FROM orders GROUP BY status
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_a2)
--     s1, s2, s3: SELECT status, count(*) FROM orders GROUP BY 1
--   text: SELECT kg_g1 AS "status", (coalesce(pg_catalog.sum(kg_a2), 0)::bigint) AS "count" FROM kg_0 GROUP BY kg_g1

SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY id) FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT *, row_number() OVER (ORDER BY id) FROM orders
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, id bigint, status text, amount numeric, qty integer, placed timestamp with time zone, note character varying, code text COLLATE "C", plan_id integer)
--     s1, s2, s3: SELECT "tenant_id", "id", "status", "amount", "qty", "placed", "note", "code", "plan_id" FROM "public"."orders" AS "orders"
--   text: SELECT *, row_number() OVER (ORDER BY id) FROM kg_0 AS "orders"

SELECT * FROM orders o JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o JOIN items i USING (tenant_id)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o, items i WHERE o.tenant_id = i.tenant_id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o LEFT JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o FULL JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o NATURAL JOIN notes n
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o JOIN plans p ON p.id = o.plan_id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o LEFT JOIN plans p ON p.id = o.plan_id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE items.tenant_id = orders.tenant_id)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE tenant_id IN (SELECT tenant_id FROM items WHERE price > 3)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders WHERE plan_id IN (SELECT id FROM plans)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT id, (SELECT count(*) FROM items i WHERE i.tenant_id = o.tenant_id AND i.order_id = o.id) FROM orders o
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders o, LATERAL (SELECT * FROM items i WHERE i.tenant_id = o.tenant_id ORDER BY pos LIMIT 1) x
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM (SELECT tenant_id, count(*) AS n FROM orders GROUP BY tenant_id) x WHERE n > 3
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM (SELECT tenant_id, count(*) AS n FROM orders GROUP BY tenant_id) x WHERE tenant_id = 150
-- tier 1: route to s2, shardlet t2

SELECT * FROM (SELECT * FROM orders LIMIT 5) x WHERE tenant_id = 150
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, id bigint, status text, amount numeric, qty integer, placed timestamp with time zone, note character varying, code text COLLATE "C", plan_id integer)
--     s1, s2, s3: SELECT "tenant_id", "id", "status", "amount", "qty", "placed", "note", "code", "plan_id" FROM "public"."orders" AS "orders"
--   text: SELECT * FROM (SELECT * FROM kg_0 AS "orders" LIMIT 5) x WHERE tenant_id = 150

WITH o AS (SELECT * FROM orders WHERE status = 'open') SELECT * FROM o JOIN items i ON i.tenant_id = o.tenant_id WHERE o.tenant_id = 150
-- tier 1: route to s2, shardlet t2

WITH o AS (SELECT * FROM orders WHERE status = 'open') SELECT count(*) FROM o
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: fold one row from each: sum bigint

SELECT * FROM open_orders WHERE tenant_id = 150
-- tier 1: route to s2, shardlet t2

SELECT * FROM open_orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM order_totals ORDER BY tenant_id
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1, kg_c2)
--     s1, s2, s3: SELECT * FROM order_totals
--   text: SELECT kg_c1 AS "tenant_id", kg_c2 AS "total" FROM kg_0 ORDER BY kg_c1

SELECT * FROM prices
-- tier 1: route to any shard

SELECT tenant_id FROM orders UNION ALL SELECT tenant_id FROM items
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT tenant_id FROM orders UNION SELECT tenant_id FROM items ORDER BY 1
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint

SELECT tenant_id FROM orders WHERE tenant_id = 5 UNION SELECT id FROM items, plans WHERE tenant_id = 7
-- tier 1: route to s1, shardlet t1

SELECT id FROM orders FOR UPDATE
-- tier 2: 3 shards, writes
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT o.id FROM orders o JOIN plans p ON p.id = o.plan_id WHERE o.tenant_id = 5 FOR UPDATE
-- refused 0A000: FOR UPDATE of rows of the replicated table public.plans beside a sharded one
--   hint: Say with OF which tables' rows are to be locked, and lock those of the replicated table with a SELECT of its own.

SELECT o.id FROM orders o JOIN plans p ON p.id = o.plan_id WHERE o.tenant_id = 5 FOR UPDATE OF o
-- tier 1: route to s1, shardlet t1, writes

SELECT o.id FROM orders o JOIN (SELECT id FROM plans) p ON p.id = o.plan_id WHERE o.tenant_id = 5 FOR SHARE OF p
-- refused 0A000: FOR UPDATE of rows of the replicated table public.plans beside a sharded one
--   hint: Say with OF which tables' rows are to be locked, and lock those of the replicated table with a SELECT of its own.

SELECT o.id FROM orders o, LATERAL (SELECT id FROM plans p WHERE p.id = o.plan_id FOR UPDATE) p WHERE o.tenant_id = 5
-- refused 0A000: FOR UPDATE of rows of the replicated table public.plans beside a sharded one
--   hint: Say with OF which tables' rows are to be locked, and lock those of the replicated table with a SELECT of its own.

SELECT id FROM orders WHERE tenant_id = 5 AND plan_id IN (SELECT id FROM plans) FOR UPDATE
-- tier 1: route to s1, shardlet t1, writes

SELECT id FROM plans WHERE id = 3 FOR UPDATE
-- tier 1: route to s1, writes

SELECT max(tableoid) FROM orders
-- refused 0A000: over several shards, the column tableoid of rows that are brought together from several shards
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: tableoid is another number on each shard.

SELECT DISTINCT tableoid FROM orders
-- refused 0A000: over several shards, the column tableoid of rows that are brought together from several shards
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: tableoid is another number on each shard.

SELECT tableoid::regclass, id FROM orders WHERE tableoid = 'orders'::regclass
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT current_database(), count(*) FROM orders
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint)
--     s1, s2, s3: SELECT "tenant_id" FROM "public"."orders" AS "orders"
--   text: SELECT current_database(), count(*) FROM kg_0 AS "orders"

SELECT current_catalog, id FROM orders
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "orders"
--   text: SELECT current_catalog, id FROM kg_0 AS "orders"

SELECT o.*::text FROM orders o ORDER BY 1
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1)
--     s1, s2, s3: SELECT o.*::text FROM orders o
--   text: SELECT kg_c1 AS "o" FROM kg_0 ORDER BY kg_c1

SELECT id FROM orders ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
-- refused 0A000: over several shards, FOR UPDATE of rows that are brought together from several shards
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: FOR UPDATE with LIMIT over several shards would lock other rows than those that are returned.

SELECT add_tax(amount) FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT id, random() FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders TABLESAMPLE bernoulli (10)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT count(*) FROM moves WHERE id IN (5, 15)
-- tier 2: 2 shards
--   s1: SELECT count(*) FROM moves WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE) AND (id IN (5, 15))
--   s2: (own text)
--   merge: fold one row from each: sum bigint

DELETE FROM moves WHERE id IN (5, 15)
-- tier 2: 2 shards, writes
--   s1: DELETE FROM moves WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE) AND (id IN (5, 15))
--   s2: (own text)
--   merge: concatenate

SELECT * FROM moves
-- tier 2: 2 shards
--   s1: SELECT * FROM moves WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE)
--   s2: (own text)
--   merge: concatenate

SELECT m.v, n.w FROM moves m LEFT JOIN moves2 n ON m.id = n.id WHERE m.v = 'a' OR n.w = 'b'
-- tier 2: 2 shards
--   s1: SELECT m.v, n.w FROM moves m LEFT JOIN (SELECT * FROM moves2 WHERE (("id" >= '10'::integer AND "id" < '20'::integer) IS NOT TRUE)) n ON m.id = n.id WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE) AND (m.v = 'a' OR n.w = 'b')
--   s2: (own text)
--   merge: concatenate

SELECT * FROM moving ORDER BY id
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1, kg_c2)
--     s1: SELECT * FROM (SELECT m.id, m.v FROM public.moves m WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)) AS "moving"
--     s2: SELECT * FROM moving
--   text: SELECT kg_c1 AS "id", kg_c2 AS "v" FROM kg_0 ORDER BY kg_c1

SELECT count(*) FROM moves WHERE id IN (1, 21)
-- tier 1: route to s1

TABLE orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM shop.orders
-- tier 1: route to s1

--! search_path = shop
SELECT * FROM orders WHERE id = 3
-- tier 1: route to s1

--! temporary = orders
SELECT * FROM orders WHERE tenant_id = 150
-- tier 1: route to s1

SELECT * FROM nowhere
-- tier 1: route to s1

SELECT * FROM orders, nowhere
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, id bigint, status text, amount numeric, qty integer, placed timestamp with time zone, note character varying, code text COLLATE "C", plan_id integer)
--     s1, s2, s3: SELECT "tenant_id", "id", "status", "amount", "qty", "placed", "note", "code", "plan_id" FROM "public"."orders" AS "orders"
--   text: SELECT * FROM kg_0 AS "orders", nowhere

SELECT relname FROM pg_class
-- tier 1: route to s1

SELECT now()
-- tier 1: route to any shard

SELECT nextval('invoice_numbers')
-- tier 1: route to s1, writes

SELECT log_it('x')
-- tier 1: route to s1, writes

VALUES (1, 2)
-- tier 1: route to any shard

SELECT id FROM orders WHERE tenant_id = 2 + 3
-- work out first on any shard:
--   2 + 3
--   then plan: SELECT id FROM orders WHERE tenant_id = <1>

--! $1 text = 150
SELECT id FROM orders WHERE tenant_id = $1::text::bigint
-- work out first on any shard:
--   ('150'::pg_catalog.text)::text::bigint
--   then plan: SELECT id FROM orders WHERE tenant_id = <1>

--! $1 integer = 150
SELECT id FROM orders o JOIN items i USING (tenant_id) WHERE o.tenant_id = abs($1 + 0) AND i.pos > length('a')
-- work out first on any shard:
--   abs(('150'::pg_catalog.int4) + 0)
--   then plan: SELECT id FROM orders o JOIN items i USING (tenant_id) WHERE o.tenant_id = <1> AND i.pos > length('a')

SELECT id FROM orders WHERE tenant_id = 1 + 1 OR tenant_id = 150
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT count(*), now() FROM orders WHERE tenant_id > 10 * 20
-- work out first on any shard:
--   now()
--   10 * 20
--   then plan: SELECT count(*), <1>  AS "now" FROM orders WHERE tenant_id > <2>

SELECT id FROM orders WHERE tenant_id = extract(day FROM now())
-- work out first on any shard:
--   now()
--   then plan: SELECT id FROM orders WHERE tenant_id = extract(day FROM <1> )

SELECT id FROM orders WHERE tenant_id = total_of(5)
-- refused 0A000: the function total_of in a statement over several shards
--   hint: It may read tables, and would see those of one shard. Declare it IMMUTABLE if it reads none, or say with = which sharding key the statement is for.

SELECT id FROM customers WHERE region = U&'!0064!0065' UESCAPE '!'
-- tier 1: route to s2, shardlet eu

SELECT id FROM customers WHERE region = U&'\0064\0065'
-- tier 1: route to s2, shardlet eu

SELECT id FROM recent WHERE tenant_id = 5
-- tier 1: route to s1, shardlet t1

SELECT id, age FROM recent
-- work out first on any shard:
--   now()
--   CURRENT_DATE
--   then plan: SELECT id, age FROM(SELECT o.tenant_id, o.id, ( <1>  - o.placed) AS age FROM public.orders o WHERE (o.placed > ( <2>  - 1))) AS "recent"

SELECT r.id, now() FROM most_recent r JOIN plans p ON p.id = r.id WHERE at <= now()
-- work out first on any shard:
--   now()
--   now()
--   now()
--   CURRENT_DATE
--   now()
--   then plan: SELECT r.id, <1>  AS "now" FROM(SELECT r.id, r.age,  <2>  AS at FROM (SELECT o.tenant_id, o.id, ( <3>  - o.placed) AS age FROM public.orders o WHERE (o.placed > ( <4>  - 1)))  r) r JOIN plans p ON p.id = r.id WHERE at <= <5>

(SELECT id FROM orders ORDER BY id LIMIT 3)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 1 bigint, limit 3

((SELECT count(*) FROM orders))
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: fold one row from each: sum bigint

(SELECT note FROM orders ORDER BY note LIMIT 3)
-- tier 4: gather on s1
--   kg_0 of public.orders (note character varying)
--     s1, s2, s3: SELECT "note" FROM "public"."orders" AS "orders"
--   text: (SELECT note FROM kg_0 AS "orders" ORDER BY note LIMIT 3)

WITH x AS (SELECT 1) (SELECT id FROM orders ORDER BY id LIMIT 3)
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "orders"
--   text: WITH x AS (SELECT 1) (SELECT id FROM kg_0 AS "orders" ORDER BY id LIMIT 3)

SELECT query_to_xml('SELECT count(*) FROM orders', true, false, '')
-- refused 0A000: the function query_to_xml, which reads tables that its arguments name, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

SELECT word FROM ts_stat('SELECT to_tsvector(note) FROM orders')
-- refused 0A000: the function ts_stat, which reads tables that its arguments name, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

SELECT query_to_xml('SELECT 1', true, false, '') FROM orders WHERE tenant_id = 5
-- tier 1: route to s1, shardlet t1, writes

