SELECT id FROM orders ORDER BY status
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text)
--     s1, s2, s3: SELECT "id", "status" FROM "public"."orders" AS "orders"
--   text: SELECT id FROM kg_0 AS "orders" ORDER BY status

SELECT avg(qty) FROM orders WHERE status = 'open'
-- tier 4: gather on s1
--   kg_0 of public.orders (status text, qty integer)
--     s1, s2, s3: SELECT "status", "qty" FROM "public"."orders" AS "orders" WHERE (status = 'open')
--   text: SELECT avg(qty) FROM kg_0 AS "orders" WHERE status = 'open'

SELECT status, count(*) FROM orders GROUP BY status ORDER BY 2 DESC
-- tier 4: gather on s1
--   kg_0 of public.orders (status text)
--     s1, s2, s3: SELECT "status" FROM "public"."orders" AS "orders"
--   text: SELECT status, count(*) FROM kg_0 AS "orders" GROUP BY status ORDER BY 2 DESC

SELECT o.id, i.sku FROM orders o JOIN items i ON i.order_id = o.id WHERE o.status = 'open' AND i.price > 5
-- tier 4: gather on s1
--   kg_0 of public.orders (id bigint, status text)
--     s1, s2, s3: SELECT "id", "status" FROM "public"."orders" AS "o" WHERE (o.status = 'open')
--   kg_1 of public.items (order_id bigint, sku text, price numeric)
--     s1, s2, s3: SELECT "order_id", "sku", "price" FROM "public"."items" AS "i" WHERE (i.price > 5)
--   text: SELECT o.id, i.sku FROM kg_0 o JOIN kg_1 i ON i.order_id = o.id WHERE o.status = 'open' AND i.price > 5

SELECT c.name, o.id FROM customers c JOIN orders o ON o.note = c.name
-- tier 4: gather on s1
--   kg_0 of public.customers (name text)
--     s2, s3: SELECT "name" FROM "public"."customers" AS "c"
--   kg_1 of public.orders (id bigint, note character varying)
--     s1, s2, s3: SELECT "id", "note" FROM "public"."orders" AS "o"
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
--     s1: SELECT "w" FROM "public"."moves2" AS "n" WHERE (("n"."id" >= '10'::integer AND "n"."id" < '20'::integer) IS NOT TRUE)
--     s2: SELECT "w" FROM "public"."moves2" AS "n"
--   text: SELECT count(*) FROM kg_0 m JOIN kg_1 n ON m.v = n.w

SELECT o FROM orders o ORDER BY status
-- refused 0A000: over several shards, a whole row as a value, of a table whose rows are brought together
--   hint: Say with = which sharding key the statement is for. It cannot be answered shard by shard: ORDER BY a type or collation that only PostgreSQL can order.

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
-- tier 4: gather on s1
--   kg_0 of public.orders (tenant_id bigint, qty integer)
--     s1, s2: SELECT "tenant_id", "qty" FROM "public"."orders" AS "orders" WHERE (qty > $1) AND (tenant_id < 150)
--   text: SELECT avg(qty) FROM kg_0 AS "orders" WHERE qty > $1 AND tenant_id < 150

SELECT sum(amount) FROM orders WHERE placed > now() - interval '1 day'
-- tier 4: gather on s1
--   kg_0 of public.orders (amount numeric, placed timestamp with time zone)
--     s1, s2, s3: SELECT "amount", "placed" FROM "public"."orders" AS "orders"
--   text: SELECT sum(amount) FROM kg_0 AS "orders" WHERE placed > now() - interval '1 day'

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

