SELECT id FROM orders ORDER BY status
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1, kg_o1)
--     s1, s2, s3: SELECT id, status AS kg_o1 FROM orders
--   text: SELECT kg_c1 AS "id" FROM kg_0 ORDER BY kg_o1

SELECT avg(qty) FROM orders WHERE status = 'open'
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_a1, kg_a2)
--     s1, s2, s3: SELECT pg_catalog.sum(qty), pg_catalog.count(qty) FROM orders WHERE status = 'open'
--   text: SELECT (pg_catalog.sum(kg_a1) / nullif(pg_catalog.sum(kg_a2), 0)) AS "avg" FROM kg_0

SELECT status, count(*) FROM orders GROUP BY status ORDER BY 2 DESC
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_a2)
--     s1, s2, s3: SELECT status, count(*) FROM orders GROUP BY 1
--   text: SELECT kg_g1 AS "status", (coalesce(pg_catalog.sum(kg_a2), 0)::bigint) AS "count" FROM kg_0 GROUP BY kg_g1 ORDER BY 2 DESC

SELECT o.id, i.sku FROM orders o JOIN items i ON i.order_id = o.id WHERE o.status = 'open' AND i.price > 5
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text)
--     s1, s2, s3: SELECT "id", "status" FROM "public"."orders" AS "o" WHERE (o.status = 'open')
--   kg_1 of public.items (order_id bigint, sku text, price numeric)
--     /* keys 1 */: AND "i"."order_id" is one of kg_0.id, when they are few
--     s1, s2, s3: SELECT "order_id", "sku", "price" FROM "public"."items" AS "i" WHERE (i.price > 5) /* keys 1 */
--   text: SELECT o.id, i.sku FROM kg_0 o JOIN kg_1 i ON i.order_id = o.id WHERE o.status = 'open' AND i.price > 5

SELECT c.name, o.id FROM customers c JOIN orders o ON o.note = c.name
-- tier 4: gather on s1
--   kg_0 of public.customers (name text)
--     s2, s3: SELECT "name" FROM "public"."customers" AS "c"
--   kg_1 of public.orders (id bigint, note character varying)
--     /* keys 1 */: AND "o"."note" is one of kg_0.name, when they are few
--     s1, s2, s3: SELECT "id", "note" FROM "public"."orders" AS "o" WHERE true /* keys 1 */
--   text: SELECT c.name, o.id FROM kg_0 c JOIN kg_1 o ON o.note = c.name

SELECT s.value, o.id FROM settings s JOIN orders o ON o.status = s.key
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text)
--     s1, s2, s3: SELECT "id", "status" FROM "public"."orders" AS "o"
--   text: SELECT s.value, o.id FROM settings s JOIN kg_0 o ON o.status = s.key

SELECT c.relname, o.id FROM pg_class c JOIN orders o ON o.status = c.relname
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text)
--     s1, s2, s3: SELECT "id", "status" FROM "public"."orders" AS "o"
--   text: SELECT c.relname, o.id FROM pg_class c JOIN kg_0 o ON o.status = c.relname

SELECT *, row_number() OVER (ORDER BY id) FROM items
-- tier 4: gather on s1
--   kg_0 of public.items (tenant_id bigint, order_id bigint, pos integer, sku text, price numeric)
--     s1, s2, s3: SELECT "tenant_id", "order_id", "pos", "sku", "price" FROM "public"."items" AS "items"
--   text: SELECT *, row_number() OVER (ORDER BY id) FROM kg_0 AS "items"

SELECT count(*) FROM (SELECT * FROM orders LIMIT 5) x
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, id bigint, status text, amount numeric, qty integer, placed timestamp with time zone, note character varying, code text COLLATE "C", plan_id integer)
--     s1, s2, s3: SELECT "tenant_id", "id", "status", "amount", "qty", "placed", "note", "code", "plan_id" FROM "public"."orders" AS "orders"
--   text: SELECT count(*) FROM (SELECT * FROM kg_0 AS "orders" LIMIT 5) x

SELECT * FROM status_counts WHERE n > 3
-- tier 4: gather on s1
--   kg_0 of public.orders (status text)
--     s1, s2, s3: SELECT "status" FROM "public"."orders" AS "o"
--   text: SELECT * FROM (SELECT o.status, count(*) FROM kg_0 o GROUP BY o.status) AS "status_counts" WHERE n > 3

SELECT * FROM status_counts s JOIN order_totals t ON t.total = s.n
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, status text, amount numeric)
--     s1, s2, s3: SELECT "tenant_id", "status", "amount" FROM "public"."orders" AS "o"
--   text: SELECT * FROM (SELECT o.status, count(*) FROM kg_0 o GROUP BY o.status) s JOIN (SELECT o.tenant_id, sum(o.amount) FROM kg_0 o GROUP BY o.tenant_id) t ON t.total = s.n

SELECT p.name, o.id FROM plans p LEFT JOIN orders o ON o.plan_id = p.id
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, plan_id integer)
--     s1, s2, s3: SELECT "id", "plan_id" FROM "public"."orders" AS "o"
--   text: SELECT p.name, o.id FROM plans p LEFT JOIN kg_0 o ON o.plan_id = p.id

SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM items)
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "orders"
--   kg_1 of public.items (order_id bigint)
--     s1, s2, s3: SELECT "order_id" FROM "public"."items" AS "items"
--   text: SELECT id FROM kg_0 AS "orders" WHERE id NOT IN (SELECT order_id FROM kg_1 AS "items")

WITH o AS (SELECT id, status FROM orders WHERE qty > 3) SELECT a.id FROM o a JOIN o b ON a.status = b.status
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text, qty integer)
--     s1, s2, s3: SELECT "id", "status", "qty" FROM "public"."orders" AS "orders" WHERE (qty > 3)
--   text: WITH o AS (SELECT id, status FROM kg_0 AS "orders" WHERE qty > 3) SELECT a.id FROM o a JOIN o b ON a.status = b.status

WITH RECURSIVE r AS (SELECT id, plan_id FROM orders WHERE id = 1 UNION ALL SELECT o.id, o.plan_id FROM orders o JOIN r ON o.plan_id = r.id) SELECT * FROM r
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, plan_id integer)
--     s1, s2, s3: SELECT "id", "plan_id" FROM "public"."orders" AS "orders" WHERE (id = 1)
--   kg_1 of public.orders (id bigint, plan_id integer)
--     s1, s2, s3: SELECT "id", "plan_id" FROM "public"."orders" AS "o"
--   text: WITH RECURSIVE r AS (SELECT id, plan_id FROM kg_0 AS "orders" WHERE id = 1 UNION ALL SELECT o.id, o.plan_id FROM kg_1 o JOIN r ON o.plan_id = r.id) SELECT * FROM r

SELECT string_agg(code, ',' ORDER BY id) FROM orders
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, code text COLLATE "C")
--     s1, s2, s3: SELECT "id", "code" FROM "public"."orders" AS "orders"
--   text: SELECT string_agg(code, ',' ORDER BY id) FROM kg_0 AS "orders"

SELECT status FROM orders UNION SELECT name FROM plans
-- tier 4: gather on s1
--   kg_0 of public.orders (status text)
--     s1, s2, s3: SELECT "status" FROM "public"."orders" AS "orders"
--   text: SELECT status FROM kg_0 AS "orders" UNION SELECT name FROM plans

SELECT count(*) FROM moves m JOIN moves2 n ON m.v = n.w
-- tier 4: gather on s1
--   kg_0 of public.moves (v text)
--     s1: SELECT "v" FROM "public"."moves" AS "m" WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "v" FROM "public"."moves" AS "m"
--   kg_1 of public.moves2 (w text)
--     /* keys 1 */: AND "n"."w" is one of kg_0.v, when they are few
--     s1: SELECT "w" FROM "public"."moves2" AS "n" WHERE (("n"."id" >= '10'::integer AND "n"."id" < '20'::integer) IS NOT TRUE) AND (true) /* keys 1 */
--     s2: SELECT "w" FROM "public"."moves2" AS "n" WHERE true /* keys 1 */
--   text: SELECT count(*) FROM kg_0 m JOIN kg_1 n ON m.v = n.w

SELECT o FROM orders o ORDER BY status
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1, kg_o1)
--     s1, s2, s3: SELECT o, status AS kg_o1 FROM orders o
--   text: SELECT kg_c1 AS "o" FROM kg_0 ORDER BY kg_o1

SELECT nextval('invoice_numbers'), id FROM orders
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "orders"
--   text: SELECT nextval('invoice_numbers'), id FROM kg_0 AS "orders"

SELECT total_of(id) FROM orders
-- refused 0A000: the function total_of in a statement over several shards
--   hint: It may read tables, and would see those of one shard. Declare it IMMUTABLE if it reads none, or say with = which sharding key the statement is for.

SELECT id FROM orders ORDER BY status FOR UPDATE
-- refused 0A000: over several shards, FOR UPDATE of rows that are brought together from several shards
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: ORDER BY a type or collation that only PostgreSQL can order.

--! $1 integer = 3
SELECT avg(qty) FROM orders WHERE qty > $1 AND tenant_id < 150
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_a1, kg_a2)
--     s1, s2: SELECT pg_catalog.sum(qty), pg_catalog.count(qty) FROM orders WHERE qty > $1 AND tenant_id < 150
--   text: SELECT (pg_catalog.sum(kg_a1) / nullif(pg_catalog.sum(kg_a2), 0)) AS "avg" FROM kg_0

SELECT sum(amount) FROM orders WHERE placed > now() - interval '1 day'
-- work out first on any shard:
--   now()
--   then plan: SELECT sum(amount) FROM orders WHERE placed > <1> - interval '1 day'

SELECT (SELECT max(amount) FROM orders) AS m
-- tier 4: gather on s1
--   kg_0 of public.orders (amount numeric)
--     s1, s2, s3: SELECT "amount" FROM "public"."orders" AS "orders"
--   text: SELECT (SELECT max(amount) FROM kg_0 AS "orders") AS m

SELECT * FROM settings WHERE key = (SELECT max(status) FROM orders)
-- tier 4: gather on s1
--   kg_0 of public.orders (status text)
--     s1, s2, s3: SELECT "status" FROM "public"."orders" AS "orders"
--   text: SELECT * FROM settings WHERE key = (SELECT max(status) FROM kg_0 AS "orders")

SELECT o.status AS s, count(*), avg(o.qty) FILTER (WHERE o.qty > 1), max(o.amount) FROM orders o WHERE o.tenant_id < 250 GROUP BY o.status HAVING count(*) > 3 ORDER BY avg(o.qty) DESC, s LIMIT 5
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_a2, kg_a3, kg_a4, kg_a5, kg_a6, kg_a7, kg_a8)
--     s1, s2: SELECT o.status, count(*), pg_catalog.sum(o.qty) FILTER (WHERE o.qty > 1), pg_catalog.count(o.qty) FILTER (WHERE o.qty > 1), pg_catalog.max(o.amount), count(*), pg_catalog.sum(o.qty), pg_catalog.count(o.qty) FROM orders o WHERE o.tenant_id < 250 GROUP BY 1
--   text: SELECT kg_g1 AS s, (coalesce(pg_catalog.sum(kg_a2), 0)::bigint) AS "count", (pg_catalog.sum(kg_a3) / nullif(pg_catalog.sum(kg_a4), 0)) AS "avg", pg_catalog.max(kg_a5) AS "max" FROM kg_0 GROUP BY kg_g1 HAVING (coalesce(pg_catalog.sum(kg_a6), 0)::bigint) > 3 ORDER BY (pg_catalog.sum(kg_a7) / nullif(pg_catalog.sum(kg_a8), 0)) DESC, s LIMIT 5

SELECT status, count(DISTINCT plan_id), sum(qty) FROM orders GROUP BY ROLLUP (status)
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_d2, kg_a3)
--     s1, s2, s3: SELECT status, plan_id, pg_catalog.sum(qty) FROM orders GROUP BY 1, 2
--   text: SELECT kg_g1 AS "status", count(DISTINCT kg_d2) AS "count", (pg_catalog.sum(kg_a3)::bigint) AS "sum" FROM kg_0 GROUP BY ROLLUP (kg_g1)

SELECT upper(status) || '!', rank() OVER (ORDER BY count(*)) FROM orders GROUP BY upper(status)
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_a2)
--     s1, s2, s3: SELECT upper(status), count(*) FROM orders GROUP BY 1
--   text: SELECT kg_g1 || '!' AS "?column?", rank() OVER (ORDER BY (coalesce(pg_catalog.sum(kg_a2), 0)::bigint)) AS "rank" FROM kg_0 GROUP BY kg_g1

SELECT DISTINCT upper(status) FROM orders ORDER BY 1 LIMIT 3 OFFSET 2
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1)
--     s1, s2, s3: SELECT DISTINCT upper(status) FROM orders ORDER BY 1 LIMIT (3) + (2)
--   text: SELECT DISTINCT kg_c1 AS "upper" FROM kg_0 ORDER BY kg_c1 LIMIT 3 OFFSET 2

WITH o AS (SELECT * FROM orders WHERE qty > 3) SELECT plan_id, sum(amount) FROM o GROUP BY plan_id
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_g1, kg_a2)
--     s1, s2, s3: WITH o AS (SELECT * FROM orders WHERE qty > 3) SELECT plan_id, pg_catalog.sum(amount) FROM o GROUP BY 1
--   text: SELECT kg_g1 AS "plan_id", pg_catalog.sum(kg_a2) AS "sum" FROM kg_0 GROUP BY kg_g1

SELECT status FROM orders UNION ALL SELECT name FROM customers ORDER BY 1 LIMIT 7
-- tier 3: finish on s1
--   kg_0 of partial rows (kg_c1)
--     s1, s2, s3: SELECT status FROM orders UNION ALL SELECT name FROM customers ORDER BY 1 LIMIT (7)
--   text: SELECT kg_c1 AS "status" FROM kg_0 ORDER BY kg_c1 LIMIT 7

SELECT o.id FROM orders o WHERE o.qty < (SELECT avg(i.price) FROM items i WHERE i.order_id = o.id)
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, qty integer)
--     s1, s2, s3: SELECT "id", "qty" FROM "public"."orders" AS "o"
--   kg_1 of public.items (order_id bigint, price numeric), index on order_id
--     /* keys 1 */: AND "i"."order_id" is one of kg_0.id, when they are few
--     s1, s2, s3: SELECT "order_id", "price" FROM "public"."items" AS "i" WHERE true /* keys 1 */
--   text: SELECT o.id FROM kg_0 o WHERE o.qty < (SELECT avg(i.price) FROM kg_1 i WHERE i.order_id = o.id)

SELECT sum(i.price) FROM items i, orders o WHERE (o.id = i.order_id AND o.status = 'a' AND i.price > 1) OR (o.id = i.order_id AND o.status = 'b' AND o.qty = 2 AND i.price > 2)
-- tier 4: gather on s1
--   kg_0 of public.items (order_id bigint, price numeric)
--     s1, s2, s3: SELECT "order_id", "price" FROM "public"."items" AS "i" WHERE (((i.price > 1)) OR ((i.price > 2)))
--   kg_1 of public.orders (id bigint, status text, qty integer)
--     /* keys 1 */: AND "o"."id" is one of kg_0.order_id, when they are few
--     s1, s2, s3: SELECT "id", "status", "qty" FROM "public"."orders" AS "o" WHERE (((o.status = 'a')) OR ((o.status = 'b') AND (o.qty = 2))) /* keys 1 */
--   text: SELECT sum(i.price) FROM kg_0 i, kg_1 o WHERE (o.id = i.order_id AND o.status = 'a' AND i.price > 1) OR (o.id = i.order_id AND o.status = 'b' AND o.qty = 2 AND i.price > 2)

SELECT v FROM moves m WHERE EXISTS (SELECT 1 FROM orders o WHERE o.tenant_id = m.id)
-- tier 4: gather on s1
--   kg_1 of public.orders (tenant_id bigint)
--     s1, s2, s3: SELECT "tenant_id" FROM "public"."orders" AS "o"
--   kg_0 of public.moves (id integer, v text)
--     s1: SELECT "id", "v" FROM "public"."moves" AS "m" WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "id", "v" FROM "public"."moves" AS "m"
--   text: SELECT v FROM kg_0 m WHERE EXISTS (SELECT 1 FROM kg_1 o WHERE o.tenant_id = m.id)

SELECT v FROM moves WHERE id IN (SELECT tenant_id FROM orders)
-- tier 4: gather on s1
--   kg_0 of public.moves (id integer, v text)
--     s1: SELECT "id", "v" FROM "public"."moves" AS "moves" WHERE (("moves"."id" >= '10'::integer AND "moves"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "id", "v" FROM "public"."moves" AS "moves"
--   kg_1 of public.orders (tenant_id bigint)
--     s1, s2, s3: SELECT "tenant_id" FROM "public"."orders" AS "orders"
--   text: SELECT v FROM kg_0 AS "moves" WHERE id IN (SELECT tenant_id FROM kg_1 AS "orders")

SELECT m.id, (SELECT max(o.status) FROM orders o WHERE o.tenant_id = m.id) FROM moves m
-- tier 4: gather on s1
--   kg_1 of public.orders (tenant_id bigint, status text), index on tenant_id
--     s1, s2, s3: SELECT "tenant_id", "status" FROM "public"."orders" AS "o"
--   kg_0 of public.moves (id integer)
--     s1: SELECT "id" FROM "public"."moves" AS "m" WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "id" FROM "public"."moves" AS "m"
--   text: SELECT m.id, (SELECT max(o.status) FROM kg_1 o WHERE o.tenant_id = m.id) FROM kg_0 m

SELECT m.id, l.id FROM moves m, LATERAL (SELECT o.id FROM orders o WHERE o.tenant_id = m.id LIMIT 1) l
-- tier 4: gather on s1
--   kg_1 of public.orders (tenant_id bigint, id bigint)
--     s1, s2, s3: SELECT "tenant_id", "id" FROM "public"."orders" AS "o"
--   kg_0 of public.moves (id integer)
--     s1: SELECT "id" FROM "public"."moves" AS "m" WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "id" FROM "public"."moves" AS "m"
--   text: SELECT m.id, l.id FROM kg_0 m, LATERAL (SELECT o.id FROM kg_1 o WHERE o.tenant_id = m.id LIMIT 1) l

SELECT m.id, w FROM moves m, LATERAL (SELECT w FROM moves2 o WHERE o.id = m.id LIMIT 1) l
-- tier 2: 2 shards
--   s1: SELECT m.id, w FROM moves m, LATERAL (SELECT w FROM moves2 o WHERE (("o"."id" >= '10'::integer AND "o"."id" < '20'::integer) IS NOT TRUE) AND (o.id = m.id) LIMIT 1) l WHERE (("m"."id" >= '10'::integer AND "m"."id" < '20'::integer) IS NOT TRUE)
--   s2: (own text)
--   merge: concatenate

SELECT id FROM orders WHERE ctid IN (SELECT min(ctid) FROM orders GROUP BY note)
-- refused 0A000: over several shards, the column ctid of rows that are brought together from several shards
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: in a subquery, its groups are made of rows of several shards.

SELECT ctid, id FROM orders WHERE id = 3
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

-- One row of a replicated table for all, but each shard would choose its own.
SELECT o.id, p.name FROM orders o, (SELECT name FROM plans LIMIT 1) p
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint)
--     s1, s2, s3: SELECT "id" FROM "public"."orders" AS "o"
--   text: SELECT o.id, p.name FROM kg_0 o, (SELECT name FROM plans LIMIT 1) p

SELECT o.id, p.name FROM orders o, (SELECT name FROM plans ORDER BY id LIMIT 1) p
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT o.id, p.name FROM orders o, (SELECT name FROM plans ORDER BY price FETCH FIRST 1 ROW WITH TIES) p
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT o.id, (SELECT p.name FROM plans p WHERE p.price > o.amount LIMIT 1) FROM orders o
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT id FROM orders WHERE EXISTS (SELECT * FROM plans LIMIT 1)
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

WITH p AS (SELECT DISTINCT ON (name) * FROM plans) SELECT o.id FROM orders o JOIN p ON p.id = o.plan_id
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, plan_id integer)
--     s1, s2, s3: SELECT "id", "plan_id" FROM "public"."orders" AS "o"
--   text: WITH p AS (SELECT DISTINCT ON (name) * FROM plans) SELECT o.id FROM kg_0 o JOIN p ON p.id = o.plan_id

SELECT o.id FROM orders o JOIN (SELECT name, array_agg(id) AS ids FROM plans GROUP BY name) p ON p.name = o.note
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, note character varying)
--     s1, s2, s3: SELECT "id", "note" FROM "public"."orders" AS "o"
--   text: SELECT o.id FROM kg_0 o JOIN (SELECT name, array_agg(id) AS ids FROM plans GROUP BY name) p ON p.name = o.note

SELECT o.id FROM orders o JOIN (SELECT name, count(*), max(price) FROM plans GROUP BY name) p ON p.name = o.note
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT o.id FROM orders o JOIN plans p TABLESAMPLE BERNOULLI (10) ON p.id = o.plan_id
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, plan_id integer)
--     s1, s2, s3: SELECT "id", "plan_id" FROM "public"."orders" AS "o"
--   text: SELECT o.id FROM kg_0 o JOIN plans p TABLESAMPLE BERNOULLI (10) ON p.id = o.plan_id

UPDATE orders SET note = (SELECT name FROM plans LIMIT 1)
-- read first <1>: (SELECT name FROM plans LIMIT 1)
--   then plan: UPDATE orders SET note = (<1>)

SELECT c, row_to_json(o) FROM customers c LEFT JOIN orders o ON o.id = c.id
-- tier 4: gather on s1
--   kg_0 of public.customers (region character varying, id integer, name text, born date, data jsonb)
--     s2, s3: SELECT "region", "id", "name", "born", "data" FROM "public"."customers" AS "c"
--   kg_1 of public.orders (tenant_id bigint, id bigint, status text, amount numeric, qty integer, placed timestamp with time zone, note character varying, code text COLLATE "C", plan_id integer)
--     s1, s2, s3: SELECT "tenant_id", "id", "status", "amount", "qty", "placed", "note", "code", "plan_id" FROM "public"."orders" AS "o"
--   text: SELECT (CASE WHEN "c" IS DISTINCT FROM NULL THEN ROW("c"."region", "c"."id", "c"."name", "c"."born", "c"."data")::"public"."customers" END) AS "c", row_to_json((CASE WHEN "o" IS DISTINCT FROM NULL THEN ROW("o"."tenant_id", "o"."id", "o"."status", "o"."amount", "o"."qty", "o"."placed", "o"."note", "o"."code", "o"."plan_id")::"public"."orders" END)) FROM kg_0 c LEFT JOIN kg_1 o ON o.id = c.id

SELECT a.id, a.email, count(o.id) FROM accounts a LEFT JOIN orders o ON o.qty = a.balance GROUP BY a.id
-- tier 4: gather on s1
--   kg_0 of public.accounts (id uuid, email text, balance bigint), primary key id
--     s1, s2, s3: SELECT "id", "email", "balance" FROM "public"."accounts" AS "a"
--   kg_1 of public.orders (id bigint, qty integer)
--     s1, s2, s3: SELECT "id", "qty" FROM "public"."orders" AS "o"
--   text: SELECT a.id, a.email, count(o.id) FROM kg_0 a LEFT JOIN kg_1 o ON o.qty = a.balance GROUP BY a.id

