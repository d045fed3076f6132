-- What applications, ORMs and reports send, over tables of two maps, a replicated one and one of the home shard.

-- Reads of Django, ActiveRecord, SQLAlchemy, Hibernate, Prisma; reports with groups, windows, WITH, LATERAL, JSON, arrays, ranges.
-- must
SELECT "customers"."tenant", "customers"."id", "customers"."name" FROM "customers" WHERE ("customers"."name" ILIKE '%a%' AND NOT ("customers"."country" = 'jp' AND "customers"."country" IS NOT NULL)) ORDER BY "customers"."tenant" ASC, "customers"."id" DESC LIMIT 21;
-- must
SELECT COUNT(*) AS "__count" FROM "customers" WHERE "customers"."country" IN ('de', 'fr');
-- must
SELECT COUNT(*) FROM (SELECT DISTINCT "orders"."state" AS "col1" FROM "orders") subquery;
-- must
SELECT (1) AS "a" FROM "orders" WHERE "orders"."tenant" = 3 LIMIT 1;
-- must
SELECT 1 AS one FROM "orders" WHERE "orders"."state" = 'paid' LIMIT 1;
-- must
SELECT "orders".* FROM "orders" WHERE "orders"."state" = 'paid' ORDER BY "orders"."tenant" DESC, "orders"."id" DESC LIMIT 1;
-- must
SELECT COUNT("orders"."amount") AS "n", SUM("orders"."amount") AS "s", "customers"."country" FROM "customers" LEFT OUTER JOIN "orders" ON ("customers"."tenant" = "orders"."tenant" AND "customers"."id" = "orders"."customer") GROUP BY "customers"."country" HAVING COUNT("orders"."id") > 1 ORDER BY "customers"."country" ASC NULLS FIRST;
-- must
SELECT "customers"."tenant", "customers"."id", (SELECT COUNT(U0."id") FROM "orders" U0 WHERE U0."tenant" = "customers"."tenant" AND U0."customer" = "customers"."id") AS "n" FROM "customers" ORDER BY "n" DESC, 1, 2 LIMIT 5;
-- must
SELECT "customers"."tenant", EXISTS(SELECT 1 AS "a" FROM "orders" U0 WHERE (U0."tenant" = "customers"."tenant" AND U0."state" = 'open') LIMIT 1) AS "has" FROM "customers" ORDER BY 1, "customers"."id";
-- must
SELECT DISTINCT "customers"."country", "countries"."name" FROM "customers" INNER JOIN "countries" ON "countries"."code" = "customers"."country" ORDER BY "countries"."name" COLLATE "C" DESC;
-- must
SELECT anon_1.tenant AS anon_1_tenant, anon_1.n AS anon_1_n, orders_1.id AS orders_1_id FROM (SELECT customers.tenant AS tenant, count(*) AS n FROM customers GROUP BY customers.tenant ORDER BY customers.tenant LIMIT 4) AS anon_1 LEFT OUTER JOIN orders AS orders_1 ON anon_1.tenant = orders_1.tenant ORDER BY anon_1.tenant, orders_1.id;
-- must
select o1_0.tenant,o1_0.id,o1_0.amount from orders o1_0 where (o1_0.tenant,o1_0.id) in ((0,1),(3,2),(9,9)) order by 1,2;
-- must
select o1_0.tenant,o1_0.id from orders o1_0 where (o1_0.tenant,o1_0.id) > (3,1) order by o1_0.tenant,o1_0.id fetch first 4 rows only;
-- must
select o1_0.tenant,o1_0.id from orders o1_0 where (o1_0.tenant,o1_0.id) <= (3,1) order by o1_0.tenant desc,o1_0.id desc limit 3;
-- must
SELECT "t0"."id", "t0"."tenant" FROM "public"."orders" AS "t0" LEFT JOIN "public"."customers" AS "j0" ON ("j0"."tenant", "j0"."id") = ("t0"."tenant", "t0"."customer") WHERE ("j0"."name" LIKE 'A%' AND ("j0"."id" IS NOT NULL)) OFFSET 0;
-- must
SELECT "t1"."tenant", "t1"."id", "aggr_selection_0_orders"."_aggr_count_orders" FROM "public"."customers" AS "t1" LEFT JOIN (SELECT "tenant", "customer", COUNT(*) AS "_aggr_count_orders" FROM "public"."orders" WHERE 1=1 GROUP BY "tenant", "customer") AS "aggr_selection_0_orders" ON ("t1"."tenant" = "aggr_selection_0_orders"."tenant" AND "t1"."id" = "aggr_selection_0_orders"."customer") WHERE 1=1 ORDER BY 1, 2;
-- must
SELECT "t0"."tenant", COALESCE(json_agg("t2"."__j" ORDER BY "t2"."id"), '[]') AS "orders" FROM "customers" AS "t0" LEFT JOIN LATERAL (SELECT o.id, JSONB_BUILD_OBJECT('id', o.id, 'amount', o.amount) AS "__j" FROM orders o WHERE o.tenant = t0.tenant AND o.customer = t0.id) AS "t2" ON true GROUP BY t0.tenant, t0.id ORDER BY t0.tenant, t0.id;
-- must
SELECT tenant, jsonb_agg(jsonb_build_object('id', id, 's', state) ORDER BY id) FROM orders GROUP BY tenant ORDER BY tenant;
-- must
SELECT state, jsonb_object_agg(tenant || '-' || id, amount) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT json_build_object('total', count(*), 'sum', sum(amount)) FROM orders;
-- must
SELECT jsonb_object_agg(state, n ORDER BY state) FROM (SELECT state, count(*) n FROM orders GROUP BY state) s;
-- must
SELECT item, doc->'m'->0, doc #>> '{m,1}', doc @> '{"kg": 0.1}', doc ? 'kg' FROM stock WHERE doc IS NOT NULL ORDER BY item, place;
-- must
SELECT s.item, e.value FROM stock s CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(s.doc->'m') WHEN 'array' THEN s.doc->'m' ELSE '[]' END) AS e ORDER BY 1, 2;
-- must
SELECT s.item, k.key, k.value FROM stock s, jsonb_each_text(CASE WHEN jsonb_typeof(s.doc) = 'object' THEN s.doc END) k ORDER BY 1, 2;
-- must
SELECT tag, count(*), sum(held) FROM stock, unnest(tags) AS tag GROUP BY tag ORDER BY tag;
-- must
SELECT item, array_length(tags, 1), tags[1], cardinality(tags), tags || '{x}', tags && ARRAY['small'], array_to_string(tags, ',') FROM stock ORDER BY item, place;
-- must
SELECT array_agg(DISTINCT t ORDER BY t) FROM stock, unnest(tags) t;
-- must
SELECT item FROM stock WHERE tags @> '{small}' AND item = ANY ('{nut,cog}') ORDER BY 1, place;
-- must
SELECT gs.d::date, coalesce(sum(o.amount), 0) AS s, count(o.id) FROM generate_series('2024-01-01'::date, '2024-01-05'::date, '1 day') gs(d) LEFT JOIN orders o ON o.placed::date = gs.d::date GROUP BY 1 ORDER BY 1;
-- must
WITH days AS (SELECT generate_series(date '2024-01-01', date '2024-06-01', interval '1 month')::date AS m) SELECT m, count(o.id), sum(o.amount) FROM days LEFT JOIN orders o ON o.placed >= m AND o.placed < m + interval '1 month' GROUP BY m ORDER BY m;
-- must
SELECT date_trunc('month', placed)::date AS m, state, count(*), sum(sum(amount)) OVER (PARTITION BY state ORDER BY date_trunc('month', placed)) AS running FROM orders GROUP BY 1, 2, date_trunc('month', placed) ORDER BY 1, 2;
-- must
SELECT tenant, id, amount, lag(amount) OVER w, lead(amount, 1, 0) OVER w, first_value(id) OVER w, last_value(id) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), ntile(3) OVER w FROM orders WINDOW w AS (PARTITION BY state ORDER BY placed) ORDER BY tenant, id;
-- must
SELECT tenant, id, sum(amount) OVER (ORDER BY placed RANGE BETWEEN interval '30 days' PRECEDING AND CURRENT ROW) FROM orders ORDER BY placed;
-- must
SELECT tenant, id, count(*) OVER (PARTITION BY tenant), dense_rank() OVER (PARTITION BY tenant ORDER BY amount DESC NULLS LAST), percent_rank() OVER (PARTITION BY tenant ORDER BY id), cume_dist() OVER (PARTITION BY tenant ORDER BY id) FROM orders ORDER BY tenant, id;
-- must
SELECT * FROM (SELECT o.*, row_number() OVER (PARTITION BY tenant ORDER BY placed DESC) AS rn FROM orders o) t WHERE rn <= 2 ORDER BY tenant, rn;
-- must
SELECT * FROM (SELECT tenant, id, row_number() OVER (PARTITION BY state ORDER BY placed DESC) AS rn FROM orders) t WHERE rn = 1 ORDER BY tenant, id;
-- must
SELECT tenant, id, sum(count(*)) OVER () FROM orders GROUP BY tenant, id ORDER BY 1, 2 LIMIT 3;
-- must
SELECT coalesce(state, 'all') AS state, grouping(state) AS g, coalesce(customer::text, '*'), count(*), sum(amount) FROM orders GROUP BY GROUPING SETS ((state, customer), (state), ()) ORDER BY 2, 1, 3;
-- must
SELECT country, extract(year FROM since) AS y, count(*) FROM customers GROUP BY CUBE (country, extract(year FROM since)) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3;
-- must
SELECT tenant, state, count(*), grouping(tenant), grouping(state) FROM orders GROUP BY ROLLUP (tenant, state) HAVING count(*) > 1 ORDER BY 1 NULLS FIRST, 2 NULLS FIRST;
-- must
SELECT tenant, state, count(*) FROM orders GROUP BY tenant, GROUPING SETS ((state), ()) ORDER BY 1, 2 NULLS LAST;
-- must
SELECT tenant, state, count(*) FROM orders GROUP BY DISTINCT ROLLUP (tenant, state), ROLLUP (tenant) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST, 3;
-- must
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount), percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY amount) FROM orders;
-- must
SELECT state, percentile_disc(0.9) WITHIN GROUP (ORDER BY placed), mode() WITHIN GROUP (ORDER BY customer) FROM orders GROUP BY state ORDER BY 1;
-- must
SELECT state, rank(10) WITHIN GROUP (ORDER BY amount) FROM orders GROUP BY state ORDER BY 1;
-- must
SELECT state, string_agg(DISTINCT customer::text, ',' ORDER BY customer::text) FROM orders GROUP BY state ORDER BY 1;
-- must
SELECT string_agg(name, ', ' ORDER BY name COLLATE "C" DESC) FROM customers WHERE tenant > 1;
-- must
WITH RECURSIVE t(n, s) AS (SELECT 0, 0::numeric UNION ALL SELECT n + 1, s + coalesce((SELECT sum(amount) FROM orders WHERE tenant = n), 0) FROM t WHERE n < 10) SELECT * FROM t ORDER BY n;
-- must
WITH RECURSIVE chain AS (SELECT tenant, id, 1 AS depth FROM orders WHERE id = 1 UNION ALL SELECT o.tenant, o.id, c.depth + 1 FROM orders o JOIN chain c ON o.tenant = c.tenant AND o.id = c.id + 1) SELECT * FROM chain ORDER BY 1, 2;
-- must
WITH regional AS (SELECT c.country, sum(o.amount) AS total FROM orders o JOIN customers c ON c.tenant = o.tenant AND c.id = o.customer GROUP BY c.country), top AS (SELECT country FROM regional WHERE total > (SELECT sum(total) / 10 FROM regional)) SELECT country, l.item, sum(l.quantity) AS units, sum(l.price) AS sales FROM lines l JOIN orders o ON o.tenant = l.tenant AND o.id = l.order_id JOIN customers c ON c.tenant = o.tenant AND c.id = o.customer WHERE c.country IN (SELECT country FROM top) GROUP BY country, l.item ORDER BY 1, 2;
-- must
WITH a AS MATERIALIZED (SELECT * FROM orders WHERE amount > 10), b AS NOT MATERIALIZED (SELECT tenant, count(*) n FROM a GROUP BY tenant) SELECT a.tenant, a.id, b.n FROM a JOIN b USING (tenant) ORDER BY 1, 2;
-- must
SELECT l.item, s.held, o.state FROM lines l JOIN orders o ON (o.tenant, o.id) = (l.tenant, l.order_id) LEFT JOIN stock s ON s.item = l.item AND s.place = 1 JOIN customers c ON c.tenant = o.tenant AND c.id = o.customer LEFT JOIN countries k ON k.code = c.country JOIN settings t ON t.name = 'limit' AND l.quantity <= t.value ORDER BY 1, 2, 3;
-- must
SELECT c.tenant, c.name, x.id, x.amount FROM customers c LEFT JOIN LATERAL (SELECT * FROM orders o WHERE o.tenant = c.tenant AND o.customer = c.id ORDER BY amount DESC NULLS LAST, id LIMIT 2) x ON true ORDER BY c.tenant, c.id, x.id;
-- must
SELECT k.code, x.* FROM countries k CROSS JOIN LATERAL (SELECT c.tenant, c.id FROM customers c WHERE c.country = k.code ORDER BY c.tenant, c.id LIMIT 1) x ORDER BY 1;
-- must
SELECT s.item, x.n FROM stock s CROSS JOIN LATERAL (SELECT count(*) AS n FROM lines l WHERE l.item = s.item) x ORDER BY 1, 2, s.place;
-- must
SELECT (SELECT count(*) FROM orders), (SELECT sum(held) FROM stock), (SELECT value FROM settings WHERE name = 'limit'), (SELECT count(*) FROM countries WHERE eu);
-- must
SELECT tenant, id FROM orders WHERE placed BETWEEN '2024-02-01' AND '2024-03-01'::timestamp + interval '1 day' ORDER BY placed, tenant;
-- must
SELECT tenant, id FROM orders WHERE placed >= date_trunc('month', timestamp '2024-02-15') AND placed < date_trunc('month', timestamp '2024-02-15') + '1 month' ORDER BY 1, 2;
-- must
SELECT tenant, id, tsrange(placed, placed + '1 day') @> timestamp '2024-02-02 12:00' FROM orders WHERE tsrange(placed, NULL) && '[2024-01-01,2024-02-10)' ORDER BY 1, 2;
-- must
SELECT range_agg(daterange(placed::date, placed::date + 1)) FROM orders;
-- must
SELECT extract(isodow FROM placed) AS d, to_char(placed, 'YYYY-MM') AS m, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT age(timestamp '2024-06-01', placed), placed AT TIME ZONE 'UTC', placed AT TIME ZONE 'Europe/Berlin' FROM orders ORDER BY tenant, id;
-- must
SELECT to_char(amount, 'FM999990.00'), round(amount, 1), amount::int, amount::text FROM orders ORDER BY tenant, id;
-- must
SELECT sum(amount * (1 + 0.19))::numeric(12, 2), round(avg(amount), 2), max(amount) FILTER (WHERE state = 'open') FROM orders;
-- must
SELECT state, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS pct FROM orders GROUP BY state ORDER BY pct DESC, state;
-- must
SELECT width_bucket(amount, 0, 100, 4) AS b, count(*), min(amount), max(amount) FROM orders WHERE amount IS NOT NULL GROUP BY b ORDER BY b;
-- must
SELECT name FROM customers WHERE name ~* '^[a-d]' ORDER BY name COLLATE "C";
-- must
SELECT regexp_replace(name, '[aeiou]', '*', 'g'), left(name, 2), split_part(name, 'a', 1), initcap(name) FROM customers ORDER BY tenant, id;
-- must
SELECT name, similarity FROM (SELECT name, length(name) AS similarity FROM customers) q WHERE similarity > 3 ORDER BY similarity DESC, name COLLATE "C" LIMIT 3;
-- must
SELECT count(*) FILTER (WHERE state = 'open') AS open, count(*) FILTER (WHERE state = 'paid') AS paid, count(DISTINCT customer) FILTER (WHERE amount > 5) AS c FROM orders;
-- must
SELECT tenant, id, state FROM orders ORDER BY CASE state WHEN 'open' THEN 1 WHEN 'paid' THEN 2 ELSE 3 END, placed DESC LIMIT 6;
-- must
SELECT tenant, id FROM orders ORDER BY amount IS NULL, amount DESC, tenant, id LIMIT 4 OFFSET 1;
-- must
SELECT tenant, id FROM orders ORDER BY state NULLS LAST, placed USING > LIMIT 3;
-- must
SELECT tenant, sum(amount) FROM orders GROUP BY tenant ORDER BY sum(amount) DESC NULLS LAST, tenant FETCH FIRST 3 ROWS WITH TIES;
-- must
SELECT name, 'customer' AS kind FROM customers WHERE tenant = 3 UNION ALL SELECT name, 'country' FROM countries UNION ALL SELECT name, 'setting' FROM settings UNION SELECT item, 'stock' FROM stock ORDER BY 2, 1;
-- must
(SELECT tenant, id FROM orders ORDER BY placed LIMIT 2) UNION ALL (SELECT tenant, id FROM orders ORDER BY placed DESC LIMIT 2) ORDER BY 1, 2;
-- must
SELECT customer FROM orders INTERSECT ALL SELECT id FROM customers ORDER BY 1;
-- must
SELECT item FROM stock EXCEPT SELECT item FROM lines WHERE quantity > 1 ORDER BY 1;
-- must
SELECT DISTINCT ON (country) country, name, since FROM customers ORDER BY country, since DESC NULLS LAST, name;
-- must
SELECT DISTINCT ON (tenant) tenant, id, amount FROM orders ORDER BY tenant, amount DESC NULLS LAST;
-- must
SELECT tenant, id FROM orders TABLESAMPLE SYSTEM (100) ORDER BY 1, 2;
-- must
SELECT a.tenant, a.id, b.tenant, b.id FROM orders a JOIN orders b ON a.customer = b.customer AND (a.tenant, a.id) < (b.tenant, b.id) WHERE a.amount = b.amount ORDER BY 1, 2, 3, 4;
-- must
SELECT tenant FROM customers c WHERE NOT EXISTS (SELECT FROM orders o JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id JOIN stock s ON s.item = l.item WHERE o.tenant = c.tenant AND s.held > 100) ORDER BY 1;
-- must
SELECT c.name FROM customers c WHERE c.id = ANY (SELECT customer FROM orders o WHERE o.tenant = c.tenant AND o.amount > ALL (SELECT amount FROM orders x WHERE x.state = 'gone' AND x.amount < 10)) ORDER BY c.tenant, c.id;
-- must
SELECT item, (SELECT array_agg(tenant ORDER BY tenant, order_id, line) FROM lines l WHERE l.item = s.item) FROM stock s WHERE place = 1 ORDER BY item;
-- must
SELECT item, array(SELECT DISTINCT tenant FROM lines l WHERE l.item = s.item ORDER BY 1) FROM stock s ORDER BY item, place;
-- must
SELECT tenant, (SELECT row(c.name, c.country) FROM customers c WHERE c.tenant = o.tenant ORDER BY id LIMIT 1) FROM orders o ORDER BY tenant, id;
-- must
SELECT (c).name, (c).id FROM (SELECT c FROM customers c) q ORDER BY (c).tenant, (c).id;
-- must
SELECT c.*, o.amount FROM customers c JOIN orders o USING (tenant) WHERE o.customer = c.id ORDER BY tenant, c.id, o.id;
-- must
SELECT * FROM customers c NATURAL JOIN (SELECT tenant, id, state FROM orders) o ORDER BY tenant, id;
-- must
SELECT * FROM customers JOIN orders USING (tenant, id) ORDER BY tenant, id;
-- must
SELECT tenant, count(*) FROM customers FULL JOIN orders USING (tenant, id) GROUP BY tenant ORDER BY tenant;
-- must
SELECT x.a, x.b, o.id FROM (VALUES (1, 'a'), (3, 'b'), (9, 'c')) AS x (a, b) JOIN orders o ON o.tenant = x.a ORDER BY 1, 3;
-- must
SELECT o.tenant, o.id FROM unnest(ARRAY[3, 9], ARRAY[1, 2]) AS k(t, i) JOIN orders o ON o.tenant = k.t AND o.id = k.i ORDER BY 1;
-- must
SELECT i, o.id FROM unnest(ARRAY['x', 'y', 'z']) WITH ORDINALITY AS u(v, i) LEFT JOIN orders o ON o.tenant = 9 AND o.id = u.i ORDER BY 1;
-- must
SELECT o.id, g FROM orders o, generate_series(1, o.id) g WHERE o.tenant IN (3, 9) ORDER BY o.tenant, 1, 2;
-- must
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest('{a,b,c}'::text[])) WITH ORDINALITY AS r(n, v, o), countries WHERE code = 'de' ORDER BY o;
-- must
SELECT * FROM json_to_recordset('[{"t": 3, "i": 1}, {"t": 9, "i": 2}]') AS k(t int, i int) JOIN orders o ON o.tenant = k.t AND o.id = k.i ORDER BY 1;
-- must
SELECT count(*) OVER () AS full_count, tenant, id FROM orders WHERE state = 'paid' ORDER BY tenant, id LIMIT 2 OFFSET 1;
-- must
SELECT nullif(state, 'open'), greatest(amount, 10), least(tenant, 3) FROM orders ORDER BY tenant, id;
-- must
SELECT tenant IS DISTINCT FROM 3, amount IS NOT DISTINCT FROM NULL FROM orders ORDER BY tenant, id;
-- must
SELECT tenant, id FROM orders WHERE tenant IS NOT DISTINCT FROM 3 ORDER BY 2;
-- must
SELECT tenant, id FROM orders WHERE state IN ('open', NULL) ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders WHERE (tenant = 1 AND state = 'paid') OR (tenant IN (3, 4) AND id = 1) ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders WHERE NOT (tenant < 8) ORDER BY 1, 2;
-- must
SELECT max((tenant, id)) FROM orders;
-- must
SELECT max(tenant * 100 + id), min(placed), max(note COLLATE "C") FROM orders;
-- must
SELECT md5(string_agg(tenant::text || id, ',' ORDER BY tenant, id)) FROM orders;
-- must
SELECT bit_or(1 << tenant), every(amount IS NULL OR amount >= 0), any_value FROM orders, (SELECT 1 AS any_value) a GROUP BY any_value;
-- must
SELECT sum(a.amount), count(*) FROM orders a WHERE a.amount >= (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders b WHERE b.state = a.state);
-- must
SELECT state, amount, amount - avg(amount) OVER (PARTITION BY state) AS diff FROM orders ORDER BY tenant, id;
-- must
SELECT c.country, count(DISTINCT o.tenant), count(DISTINCT (o.tenant, o.id)), sum(l.quantity * l.price) FROM customers c JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id GROUP BY c.country ORDER BY 1 NULLS FIRST;
-- must
SELECT tenant, id, CASE WHEN EXISTS (SELECT 1 FROM stock s WHERE s.item IN (SELECT item FROM lines l WHERE l.tenant = o.tenant AND l.order_id = o.id) AND s.held < 20) THEN 'low' ELSE 'ok' END FROM orders o ORDER BY 1, 2;
-- must
SELECT name, sum(amount) FROM customers c JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id GROUP BY c.tenant, c.id ORDER BY c.tenant, c.id;
-- must
SELECT c.tenant, c.id, c.name, c.country, count(o.id) FROM customers c LEFT JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id GROUP BY c.tenant, c.id ORDER BY 5 DESC, 1, 2;
-- must
SELECT k.name, k.eu, count(*) FROM countries k JOIN customers c ON c.country = k.code GROUP BY k.code ORDER BY k.code;
-- must
SELECT tenant, state FROM orders GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT count(*) FROM (SELECT 1 FROM orders GROUP BY state) x;
-- must
SELECT tenant FROM orders GROUP BY tenant HAVING max(amount) = (SELECT max(amount) FROM orders) ORDER BY 1;
-- must
SELECT state FROM orders GROUP BY state HAVING bool_or(amount > (SELECT avg(amount) FROM orders)) ORDER BY state;
-- must
SELECT state, (SELECT count(*) FROM customers c WHERE c.id = max(o.customer)) FROM orders o GROUP BY state ORDER BY 1;
-- must
SELECT corr(amount, id)::numeric(8,4), covar_pop(amount, id)::numeric(12,4), regr_count(amount, id) FROM orders;
-- must
SELECT sum(price), sum(weight)::numeric(12,2), avg(quantity), stddev(price) FROM lines;
-- must
SELECT sum(price) FROM lines GROUP BY shipped ORDER BY shipped;
-- must
SELECT interval '1 day' * sum(quantity), sum(placed - timestamp '2024-01-01') FROM lines JOIN orders ON orders.tenant = lines.tenant AND orders.id = order_id;
-- must
SELECT max(placed) - min(placed), avg(placed - timestamp '2024-01-01') FROM orders;

-- Rows of tables, views and subqueries as values.
-- must
SELECT (c).name, (c).id FROM (SELECT c FROM customers c) q ORDER BY (c).tenant, (c).id;
-- must
SELECT json_agg(q) FROM (SELECT tenant, id FROM orders ORDER BY tenant, id) q;
-- must
SELECT coalesce(json_agg(row_to_json(x)), '[]') FROM (SELECT tenant, count(*) AS n FROM orders GROUP BY tenant HAVING count(*) > 100) x;
-- must
SELECT count(f) FROM fresh f LEFT JOIN lines l ON l.line = f.id;
-- must
SELECT count(o), count(o.*), count(*) FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 400 AND c.country = 'de';
-- must
SELECT o FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 600 ORDER BY o.tenant, c.tenant, c.id;
-- must
SELECT o::text, o IS NULL FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 600 ORDER BY 1, 2;
-- must
SELECT c::text, count(*) FROM customers c JOIN stock s ON s.place = c.id GROUP BY c ORDER BY 1;
-- must
SELECT DISTINCT c FROM customers c JOIN stock s ON s.place = c.id ORDER BY c;
-- must
SELECT row_to_json(f) FROM (SELECT f.*::text IS NULL AS n FROM fresh f JOIN lines l ON l.line = f.id) f LIMIT 1;
-- must
SELECT f::text IS NULL, row_to_json(f)->>'id' FROM fresh f JOIN lines l ON l.line = f.id ORDER BY f.tenant, f.id, l.tenant, l.order_id LIMIT 5;
-- must
SELECT c.name, (SELECT json_agg(s ORDER BY s.item, s.place) FROM stock s WHERE s.place = c.id) FROM customers c ORDER BY c.tenant, c.id;
-- must
SELECT json_agg(k ORDER BY k.code), count(c) FROM countries k JOIN customers c ON c.country = k.code JOIN stock s ON s.place = c.id;
-- must
SELECT s FROM settings s JOIN orders o ON o.id = s.value ORDER BY o.tenant, o.id;
-- must
SELECT jsonb_agg(to_jsonb(c) - 'since' ORDER BY c.tenant, c.id) FROM customers c JOIN stock s ON s.place = c.id AND s.item = 'nut';
-- must
SELECT ROW(c.*, 1) FROM customers c JOIN stock s ON s.place = c.id AND s.item = 'nut' ORDER BY c.tenant, c.id;
-- must
SELECT (c).* FROM (SELECT c FROM customers c JOIN stock s ON s.place = c.id AND s.item = 'nut') x ORDER BY 1, 2;
-- must
WITH w AS (SELECT * FROM orders) SELECT json_agg(w ORDER BY tenant, id), count(w) FROM w;
-- must
WITH w AS (SELECT o FROM orders o) SELECT max((o).amount), count(*) FROM w;
-- must
SELECT pg_typeof(c.*)::text, pg_typeof(c)::text FROM customers c LEFT JOIN orders o ON o.id = c.id LIMIT 1;

-- More reads.
PREPARE p1 (int, text) AS SELECT tenant, id FROM orders WHERE tenant = $1 AND state = $2 ORDER BY id;
-- must
EXECUTE p1 (3, 'open');
-- must
EXECUTE p1 (9, 'paid');
DEALLOCATE p1;
PREPARE p2 AS UPDATE orders SET note = $2 WHERE tenant = ANY ($1) RETURNING tenant, id, note;
-- must
EXECUTE p2 ('{0,3}', 'ptest');
DEALLOCATE ALL;
EXPLAIN (COSTS OFF) SELECT * FROM settings;
CREATE TABLE IF NOT EXISTS settings (name text);
CREATE TEMP TABLE tmp_ids (t int, i int);
-- must
INSERT INTO tmp_ids VALUES (0, 1), (3, 2), (9, 3);
-- must
SELECT o.tenant, o.id, o.amount FROM orders o JOIN tmp_ids t ON o.tenant = t.t AND o.id = t.i ORDER BY 1;
-- must
INSERT INTO tmp_ids SELECT tenant, id FROM orders WHERE state = 'open';
-- must
SELECT count(*) FROM tmp_ids;
DROP TABLE tmp_ids;
-- must
SELECT string_agg(x, ',') FROM (SELECT DISTINCT state AS x FROM orders ORDER BY state) q;
-- must
SELECT array_agg(x) FROM (SELECT tenant AS x FROM orders ORDER BY placed) q;
-- must
SELECT json_agg(q) FROM (SELECT tenant, id FROM orders ORDER BY tenant, id) q;
-- must
SELECT json_agg(json_build_array(tenant, id) ORDER BY tenant, id) FROM orders;
-- must
SELECT tenant, (SELECT json_agg(l ORDER BY l.line) FROM (SELECT line, item FROM lines WHERE lines.tenant = o.tenant AND lines.order_id = o.id) l) FROM orders o ORDER BY tenant, id;
-- must
SELECT xmlagg(xmlelement(name o, id) ORDER BY tenant, id) FROM orders;
-- must
SELECT tenant, id, amount::money FROM orders WHERE amount IS NOT NULL ORDER BY amount::money, tenant, id;
-- must
SELECT min(amount), max(amount), sum(amount) OVER () FROM orders GROUP BY amount ORDER BY amount LIMIT 1;
-- must
SELECT lower(state) AS state, count(*) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT state AS note, count(*) FROM orders GROUP BY note ORDER BY 1, 2;
-- must
SELECT tenant + 1 AS tenant, count(*) FROM orders GROUP BY tenant ORDER BY tenant;
-- must
SELECT -tenant AS tenant FROM orders GROUP BY tenant ORDER BY tenant;
-- must
SELECT -tenant AS tenant, id FROM orders ORDER BY tenant, id;
-- must
SELECT -tenant AS t, id FROM orders ORDER BY -tenant, id;
-- must
SELECT id AS tenant, tenant AS id FROM orders ORDER BY tenant, id;
-- must
SELECT DISTINCT tenant % 2 AS odd, state FROM orders ORDER BY state, odd;
-- must
SELECT tenant, id FROM orders ORDER BY (SELECT name FROM customers c WHERE c.tenant = orders.tenant AND c.id = orders.customer), id;
-- must
SELECT tenant, id FROM orders WHERE amount = ANY (SELECT max(amount) FROM orders GROUP BY state) ORDER BY 1, 2;
-- must
SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT 1 FROM stock s WHERE s.item = l.item AND s.held > 100)) FROM lines l;
-- must
SELECT sum(x.n) FROM customers c, LATERAL (SELECT count(*) AS n FROM orders o WHERE o.customer = c.id AND o.tenant = c.tenant) x;
-- must
SELECT c.country, x.top FROM (SELECT DISTINCT country FROM customers) c LEFT JOIN LATERAL (SELECT max(o.amount) AS top FROM orders o JOIN customers d ON d.tenant = o.tenant AND d.id = o.customer WHERE d.country = c.country) x ON true ORDER BY 1 NULLS FIRST;
-- must
WITH x AS (SELECT tenant, id, amount, ntile(4) OVER (ORDER BY amount NULLS FIRST, tenant, id) AS q FROM orders) SELECT q, count(*), min(amount), max(amount) FROM x GROUP BY q ORDER BY q;
-- must
WITH first_orders AS (SELECT customer, tenant, min(placed) AS first FROM orders GROUP BY 1, 2), cohorts AS (SELECT date_trunc('month', first) AS cohort, tenant, customer FROM first_orders) SELECT cohort, extract(month FROM age(date_trunc('month', o.placed), cohort)) AS m, count(DISTINCT (o.tenant, o.customer)) FROM cohorts c JOIN orders o USING (tenant, customer) GROUP BY 1, 2 ORDER BY 1, 2;
-- must
WITH t AS (SELECT tenant, placed, lag(placed) OVER (PARTITION BY tenant ORDER BY placed) AS prev FROM orders) SELECT tenant, avg(placed - prev) FROM t GROUP BY tenant ORDER BY tenant;
-- must
WITH s AS (SELECT state, amount, row_number() OVER (PARTITION BY state ORDER BY amount) AS rn, count(*) OVER (PARTITION BY state) AS n FROM orders WHERE amount IS NOT NULL) SELECT state, avg(amount) AS median FROM s WHERE rn IN ((n + 1) / 2, (n + 2) / 2) GROUP BY state ORDER BY state;
-- must
SELECT tenant, id, placed, placed - lag(placed) OVER (ORDER BY placed) > interval '5 days' AS gap FROM orders ORDER BY placed;
-- must
SELECT d::date, (SELECT count(*) FROM orders o WHERE o.placed::date <= d::date) AS cum FROM generate_series(timestamp '2024-01-01', '2024-01-04', '1 day') d ORDER BY 1;
-- must
SELECT tenant, count(*) FILTER (WHERE state = 'open') AS open, sum(CASE state WHEN 'paid' THEN amount END) AS paid FROM orders GROUP BY tenant HAVING count(*) FILTER (WHERE state = 'paid') > 0 ORDER BY paid DESC NULLS LAST, tenant;
-- must
SELECT a.state, b.state, count(*) FROM orders a FULL OUTER JOIN orders b ON a.tenant = b.tenant AND a.id = b.id + 1 GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT l.item, sum(l.quantity) FILTER (WHERE o.state = 'paid') FROM lines l LEFT JOIN orders o ON o.tenant = l.tenant AND o.id = l.order_id AND o.amount > 10 GROUP BY l.item ORDER BY 1;
-- must
SELECT o.tenant, o.id FROM orders o LEFT JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id WHERE l.tenant IS NULL ORDER BY 1, 2;
-- must
SELECT o.tenant, o.id FROM orders o RIGHT JOIN customers c ON c.tenant = o.tenant AND c.id = o.customer AND o.state = 'paid' ORDER BY 1 NULLS FIRST, 2;
-- must
SELECT count(*) FROM countries k LEFT JOIN customers c ON c.country = k.code AND c.tenant = 3;
-- must
SELECT k.code, c.tenant FROM customers c RIGHT JOIN countries k ON c.country = k.code AND c.tenant < 4 ORDER BY 1, 2;
-- must
SELECT k.code, count(c.id) FROM countries k LEFT JOIN customers c ON c.country = k.code GROUP BY k.code HAVING count(c.id) = 0;
-- must
SELECT s.name, count(o.id) FROM settings s LEFT JOIN orders o ON o.id = s.value GROUP BY s.name ORDER BY 1;
-- must
SELECT tenant, name FROM customers WHERE country = (SELECT code FROM countries WHERE name = 'France') ORDER BY 1, id;
-- must
SELECT count(*) FROM customers WHERE (country, true) IN (SELECT code, eu FROM countries);
-- must
SELECT item FROM stock WHERE held > (SELECT value FROM settings WHERE name = 'limit') ORDER BY item, place;
-- must
SELECT tenant, id FROM orders WHERE id < (SELECT value FROM settings WHERE name = 'limit') AND tenant = 9 ORDER BY 2;
-- must
SELECT tenant, id FROM orders WHERE tenant = (SELECT value FROM settings WHERE name = 'limit') ORDER BY 2;
-- must
SELECT tenant, id FROM orders WHERE tenant IN (SELECT value FROM settings) ORDER BY 1, 2;
-- must
SELECT * FROM fresh WHERE tenant = 9 ORDER BY id LIMIT 0;
-- must
SELECT f FROM (SELECT tenant, id FROM fresh) f ORDER BY tenant, id;
-- must
SELECT count(*) FROM fresh f JOIN lines l ON l.line = f.id;
-- must
SELECT count(f) FROM fresh f LEFT JOIN lines l ON l.line = f.id;
-- must
SELECT coalesce(json_agg(row_to_json(x)), '[]') FROM (SELECT tenant, count(*) AS n FROM orders GROUP BY tenant HAVING count(*) > 100) x;
-- must
SELECT row_number() OVER () AS rn, x.* FROM (SELECT tenant, id FROM orders ORDER BY placed LIMIT 3) x;
-- must
SELECT tenant, id, random() < 2 FROM orders ORDER BY 1, 2 LIMIT 2;
-- must
SELECT count(*) FROM orders WHERE random() < 2;
-- must
SELECT gen_random_uuid() IS NOT NULL, count(*) FROM orders GROUP BY 1;
-- must
SELECT tenant, id FROM orders ORDER BY random() LIMIT 0;
-- must
SELECT count(*) FROM (SELECT * FROM orders ORDER BY random() LIMIT 5) x;
-- must
SELECT pg_typeof(sum(amount)), pg_typeof(avg(id)), pg_typeof(max(placed)) FROM orders;
-- must
SELECT pg_column_size(tenant) FROM orders WHERE tenant = 3 LIMIT 1;
-- must
SELECT 'orders'::regclass::text, count(*) FROM orders;
-- must
SELECT obj_description('orders'::regclass), col_description('orders'::regclass, 1);
-- must
SELECT has_table_privilege('orders', 'SELECT');
-- must
SELECT xmin IS NOT NULL, tenant FROM orders WHERE tenant = 3 ORDER BY id;
-- must
SELECT count(xmin) FROM orders;
-- must
SELECT COALESCE((SELECT amount FROM orders WHERE tenant = 99 AND id = 1), 0);
-- must
SELECT (SELECT amount FROM orders WHERE id = 1);
-- must
SELECT (SELECT amount FROM orders WHERE id = 1 AND tenant = 1) + (SELECT max(held) FROM stock);
-- must
VALUES ((SELECT count(*) FROM orders), (SELECT count(*) FROM lines));
-- must
SELECT * FROM (VALUES (1), (2)) v(x) WHERE x IN (SELECT customer FROM orders) ORDER BY 1;
-- must
SELECT generate_series(1, 3) AS g, count(*) FROM orders GROUP BY 1 ORDER BY 1;
-- must
SELECT tenant, unnest(ARRAY[id, id * 10]) AS u FROM orders WHERE tenant > 7 ORDER BY 1, 2;
-- must
SELECT tenant, generate_series(1, id) FROM orders ORDER BY 1, 2 LIMIT 5;
-- must
SELECT unnest(tags), count(*) FROM stock GROUP BY 1 ORDER BY 1;
-- must
SELECT jsonb_path_query(doc, '$.m[*]') FROM stock ORDER BY 1;
-- must
SELECT DISTINCT jsonb_object_keys(doc) FROM stock WHERE jsonb_typeof(doc) = 'object' ORDER BY 1;
-- must
SELECT tenant, id FROM orders WHERE to_tsvector('english', coalesce(note, '')) @@ to_tsquery('english', 'first | big') ORDER BY 1, 2;
-- must
SELECT ts_rank(to_tsvector('simple', note), plainto_tsquery('simple', 'first')) AS r, tenant FROM orders WHERE note IS NOT NULL ORDER BY r DESC, tenant, id LIMIT 3;
-- must
SELECT name FROM customers ORDER BY name COLLATE "de-x-icu" LIMIT 5;
-- must
SELECT upper(name) COLLATE "C" AS n FROM customers ORDER BY n LIMIT 5;
-- must
SELECT max(name COLLATE "C"), min(name COLLATE "C") FROM customers;
-- must
SELECT name FROM customers WHERE name > 'a' COLLATE "C" ORDER BY name COLLATE "C";
-- must
SELECT name < 'a' FROM customers ORDER BY tenant, id;
-- must
SELECT tenant::text || ':' || id::text AS k FROM orders ORDER BY k LIMIT 4;
-- must
SELECT tenant::text AS t FROM orders ORDER BY t DESC LIMIT 3;
-- must
SELECT sum(tenant::bigint), sum(tenant::smallint), sum(tenant::real), sum(tenant::numeric) FROM orders;
-- must
SELECT avg(tenant::bigint), avg(tenant::smallint), avg(tenant::float8) FROM orders;
-- must
SELECT sum(DISTINCT amount), count(DISTINCT amount), avg(DISTINCT amount) FROM orders;
-- must
SELECT sum(amount) FILTER (WHERE false), count(*) FILTER (WHERE false), max(id) FILTER (WHERE NULL) FROM orders;
-- must
SELECT count(*) FROM orders HAVING count(*) > 100;
-- must
SELECT count(*) FROM orders HAVING true;
-- must
SELECT 1 FROM orders HAVING count(*) > 1;
-- must
SELECT sum(1) FROM orders WHERE false;
-- must
SELECT max(NULL::int), min('x'::text), count(NULL) FROM orders;
-- must
SELECT 'const', count(*) FROM orders GROUP BY 1;
-- must
SELECT state, 'c' AS c, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1;
-- must
SELECT NULL AS n, count(*) FROM orders GROUP BY n;
-- must
SELECT count(*) FROM orders GROUP BY ();
-- must
SELECT state IS NULL AND true, count(*) FROM orders GROUP BY state IS NULL;
-- must
SELECT amount > 10 AS big, count(*) FROM orders GROUP BY amount > 10 ORDER BY 1;
-- must
SELECT placed::date + 1, count(*) FROM orders GROUP BY placed::date ORDER BY placed::date LIMIT 3;
-- must
SELECT date_part('year', placed), count(*) FROM orders GROUP BY date_part('year', placed);
-- must
SELECT tenant, (array_agg(id ORDER BY placed DESC))[1] FROM orders GROUP BY tenant ORDER BY tenant;
-- must
SELECT state, (array_agg(tenant ORDER BY placed DESC))[1:2] FROM orders GROUP BY state ORDER BY state;
-- must
SELECT array_agg(array[tenant, id] ORDER BY tenant, id) FROM orders;
-- must
SELECT range_intersect_agg(int4range(tenant, 100)) FROM orders;
-- must
SELECT string_agg(note, NULL ORDER BY tenant, id), string_agg(note::bytea, '\x00' ORDER BY tenant, id) FROM orders;
-- must
SELECT var_pop(amount), stddev_samp(id), regr_r2(id, tenant) IS NULL FROM orders;

-- Rows that functions in FROM give.
-- must
INSERT INTO customers (tenant, id, name) SELECT * FROM unnest(ARRAY[2, 8], ARRAY[71, 71], ARRAY['l', 'm']) ON CONFLICT DO NOTHING;
-- must
INSERT INTO customers (tenant, id, name) SELECT * FROM unnest(ARRAY[2, 8], ARRAY[72, 72], ARRAY['l', 'm']) RETURNING *;
-- must
INSERT INTO customers (tenant, id, name) SELECT * FROM jsonb_to_record('{"t": 3, "i": 73, "n": "x"}') AS r(t int, i int, n text) RETURNING *;
-- must
INSERT INTO customers SELECT * FROM jsonb_populate_recordset(NULL::customers, '[{"tenant": 4, "id": 74, "name": "p"}, {"tenant": 9, "id": 74, "name": "q"}]') RETURNING tenant, id, name;
-- must
INSERT INTO customers SELECT (jsonb_populate_record(NULL::customers, '{"tenant": 5, "id": 75, "name": "r"}')).* RETURNING tenant, id;
-- must
INSERT INTO countries SELECT * FROM jsonb_populate_recordset(NULL::countries, '[{"code": "xx", "name": "p"}]') RETURNING *;
-- must
INSERT INTO countries SELECT * FROM unnest(ARRAY['yy'], ARRAY['q'], ARRAY[true]) RETURNING *;
-- must
SELECT * FROM countries ORDER BY code;
-- must
SELECT tenant, id, name FROM customers WHERE id > 70 ORDER BY 1, 2;

-- Writes, transactions, settings and the catalogue.
-- must
SELECT json_agg(c ORDER BY tenant, id) FROM customers c;
-- must
SELECT json_agg(c) FROM customers c WHERE tenant = 3;
-- must
SELECT row_to_json(c) FROM customers c ORDER BY tenant, id;
-- must
SELECT to_jsonb(c) - 'name' FROM customers c ORDER BY tenant, id;
-- must
SELECT count(c) FROM customers c LEFT JOIN orders o ON o.customer = c.id;
-- must
SELECT c.tenant, o FROM customers c LEFT JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id ORDER BY c.tenant, c.id, o.id;
-- must
SELECT c.name, json_agg(o ORDER BY o.id) FROM customers c JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id GROUP BY c.tenant, c.id ORDER BY c.tenant, c.id;
-- must
SELECT k.name, json_agg(row_to_json(c) ORDER BY c.tenant, c.id) FROM countries k JOIN customers c ON c.country = k.code GROUP BY k.code ORDER BY k.code;
-- must
SELECT c.tenant, row_to_json(o) FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.amount > 400 ORDER BY c.tenant, c.id, o.id;
-- must
WITH pgrst_source AS (SELECT "customers".* FROM "customers" WHERE "customers"."country" = 'de' ORDER BY tenant, id LIMIT 2) SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body FROM (SELECT * FROM pgrst_source) _postgrest_t;
-- must
SELECT count(*), count(o.*), count(o) FROM orders o;
-- must
SELECT o IS NULL, o IS NOT NULL FROM orders o ORDER BY tenant, id;
-- must
SELECT DISTINCT c FROM customers c WHERE tenant < 3;
-- must
SELECT c FROM customers c ORDER BY c;
-- must
SELECT max(c.name) FROM customers c WHERE c IS NOT NULL;
-- must
SELECT array_agg(c.name ORDER BY c.tenant, c.id) FILTER (WHERE c.country = 'de') FROM customers c;
-- must
SELECT id FROM orders o WHERE NOT (o.* IS NULL) ORDER BY tenant, id;
-- must
SELECT tenant, id, name FROM customers c WHERE c.* = (3, 1, 'eve', 'us', '2022-02-02')::customers;
-- must
SELECT a.tenant FROM customers a JOIN customers b ON a = b ORDER BY 1;
-- must
INSERT INTO "customers" ("tenant", "id", "name", "country", "since") VALUES (3, 50, 'New', NULL, NULL) RETURNING "customers"."tenant", "customers"."id";
-- must
INSERT INTO customers (tenant, id, name) VALUES (1, 50, 'a'), (5, 50, 'b'), (9, 50, 'c') ON CONFLICT (tenant, id) DO UPDATE SET name = EXCLUDED.name WHERE customers.name IS DISTINCT FROM EXCLUDED.name RETURNING tenant, id, name, (xmax::text = '0') AS inserted;
-- must
INSERT INTO customers (tenant, id, name) VALUES (1, 50, 'a'), (5, 50, 'bb'), (9, 50, 'cc') ON CONFLICT (tenant, id) DO UPDATE SET name = EXCLUDED.name WHERE customers.name IS DISTINCT FROM EXCLUDED.name RETURNING tenant, id, name;
-- must
INSERT INTO customers AS c (tenant, id, name) VALUES (1, 50, 'x'), (9, 51, 'y') ON CONFLICT ON CONSTRAINT customers_pkey DO UPDATE SET name = c.name || EXCLUDED.name, since = coalesce(c.since, '2020-01-01') RETURNING *;
-- must
INSERT INTO customers (tenant, id, name) VALUES (1, 60, 'a'), (1, 60, 'b') ON CONFLICT (tenant, id) DO UPDATE SET name = EXCLUDED.name;
-- must
INSERT INTO customers (tenant, id, name) SELECT x.t, x.i, x.n FROM jsonb_to_recordset('[{"t": 2, "i": 70, "n": "j"}, {"t": 8, "i": 70, "n": "k"}]') AS x(t int, i int, n text) RETURNING tenant, id;
-- must
INSERT INTO customers (tenant, id, name) SELECT * FROM unnest(ARRAY[2, 8], ARRAY[71, 71], ARRAY['l', 'm']) ON CONFLICT DO NOTHING;
-- must
INSERT INTO customers (tenant, id, name) SELECT 3, 80, 'only' WHERE NOT EXISTS (SELECT 1 FROM customers WHERE tenant = 3 AND id = 80);
-- must
INSERT INTO customers (tenant, id, name) SELECT 3, 80, 'only' WHERE NOT EXISTS (SELECT 1 FROM customers WHERE tenant = 3 AND id = 80) RETURNING id;
-- must
INSERT INTO customers (tenant, id, name) SELECT tenant, max(id) + 1, 'next' FROM customers GROUP BY tenant RETURNING tenant, id;
-- must
INSERT INTO orders (tenant, id, customer, placed, amount) SELECT c.tenant, 300 + c.id, c.id, '2024-07-01', s.held FROM customers c JOIN stock s ON s.place = c.id AND s.item = 'nut' WHERE c.country = 'de';
-- must
SELECT tenant, id, amount FROM orders WHERE id > 300 ORDER BY 1, 2;
-- must
INSERT INTO stock (item, place, held) SELECT item, 9, sum(quantity) FROM lines GROUP BY item ON CONFLICT (item, place) DO UPDATE SET held = stock.held + EXCLUDED.held RETURNING item, held;
-- must
UPDATE stock SET held = held - l.q FROM (SELECT item, sum(quantity) AS q FROM lines GROUP BY item) l WHERE l.item = stock.item AND stock.place = 9 RETURNING stock.item, stock.held;
-- must
UPDATE "orders" SET "state" = 'open', "amount" = ("orders"."amount" + 1) WHERE ("orders"."tenant" = 9 AND "orders"."id" = 1);
-- must
UPDATE "orders" SET "state" = CASE WHEN ("orders"."id" = 1) THEN 'a' WHEN ("orders"."id" = 2) THEN 'b' ELSE NULL END WHERE "orders"."tenant" IN (0, 3, 9);
-- must
UPDATE orders SET (state, note) = ('x', 'y') WHERE tenant = 3;
-- must
UPDATE orders SET (state, note) = (SELECT c.country, c.name FROM customers c WHERE c.tenant = orders.tenant AND c.id = orders.customer) WHERE amount > 5 RETURNING tenant, id, state, note;
-- must
UPDATE orders o SET amount = t.total FROM (SELECT tenant, order_id, sum(price * quantity) AS total FROM lines GROUP BY tenant, order_id) t WHERE t.tenant = o.tenant AND t.order_id = o.id RETURNING o.tenant, o.id, o.amount;
-- must
UPDATE orders o SET note = v.n FROM (VALUES (0, 1, 'v1'), (3, 1, 'v2'), (9, 1, 'v3')) AS v(t, i, n) WHERE o.tenant = v.t AND o.id = v.i RETURNING o.tenant, o.id, o.note;
-- must
UPDATE orders SET note = c.name FROM customers c JOIN countries k ON k.code = c.country WHERE c.tenant = orders.tenant AND c.id = orders.customer AND k.eu RETURNING orders.tenant, orders.id, k.name;
-- must
UPDATE customers SET country = NULL WHERE country NOT IN (SELECT code FROM countries WHERE eu) RETURNING tenant, id;
-- must
UPDATE lines SET price = price * 1.1 WHERE item IN (SELECT item FROM stock WHERE 'steel' = ANY (tags)) RETURNING tenant, item, price;
-- must
UPDATE lines l SET shipped = true FROM stock s WHERE s.item = l.item AND s.place = 1 AND s.held >= l.quantity;
-- must
UPDATE orders SET amount = (SELECT avg(amount) FROM orders) WHERE amount IS NULL RETURNING tenant, id, amount;
-- must
UPDATE orders SET amount = amount * 1.05 WHERE tenant = (SELECT min(tenant) FROM customers WHERE country = 'de') RETURNING tenant, id, amount;
-- must
UPDATE stock SET tags = array_append(tags, 'new'), doc = jsonb_set(coalesce(doc, '{}'), '{seen}', 'true') WHERE jsonb_typeof(coalesce(doc, '{}')) = 'object' RETURNING item, tags, doc;
-- must
UPDATE stock SET tags[1] = 'first', doc['k'] = '1' WHERE item = 'nut' RETURNING tags, doc;
-- must
UPDATE countries SET name = upper(name) WHERE code IN (SELECT country FROM customers) RETURNING code, name;
-- must
UPDATE settings SET value = (SELECT count(*) FROM orders) WHERE name = 'limit' RETURNING value;
-- must
UPDATE settings SET value = x.n FROM (SELECT count(*)::int AS n FROM lines) x WHERE name = 'factor';
-- must
SELECT * FROM settings ORDER BY name;
-- must
DELETE FROM "lines" WHERE "lines"."tenant" IN (SELECT U0."tenant" FROM "customers" U0 WHERE U0."country" = 'fr');
-- must
DELETE FROM orders USING customers c WHERE c.tenant = orders.tenant AND c.id = orders.customer AND c.country = 'de' AND orders.id > 300 RETURNING orders.tenant, orders.id, c.name;
-- must
DELETE FROM lines l USING orders o, stock s WHERE o.tenant = l.tenant AND o.id = l.order_id AND s.item = l.item AND s.held < 10 RETURNING l.tenant, l.item;
-- must
DELETE FROM stock WHERE place = 9 RETURNING *;
-- must
DELETE FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.tenant = o.tenant AND l.order_id = o.id) RETURNING tenant, id;
-- must
DELETE FROM customers WHERE (tenant, id) IN ((3, 50), (1, 50), (5, 50), (9, 50), (9, 51));
-- must
DELETE FROM customers WHERE id >= 60 RETURNING tenant, id, name;
-- must
WITH moved AS (DELETE FROM lines WHERE tenant = 9 RETURNING *) INSERT INTO lines SELECT tenant, order_id, line + 10, item, quantity, price, shipped, weight FROM moved RETURNING tenant, line;
-- must
WITH upd AS (UPDATE orders SET note = 'w' WHERE tenant = 9 RETURNING *) SELECT count(*), sum(amount) FROM upd;
-- must
WITH ins AS (INSERT INTO customers (tenant, id, name) VALUES (4, 90, 'w') RETURNING tenant, id) INSERT INTO orders (tenant, id, customer, placed) SELECT tenant, 90, id, '2024-01-01' FROM ins RETURNING tenant, id, customer;
-- must
WITH s AS (SELECT tenant, id FROM orders WHERE state IS NULL ORDER BY tenant, id LIMIT 3) UPDATE orders o SET state = 'none' FROM s WHERE s.tenant = o.tenant AND s.id = o.id RETURNING o.tenant, o.id;
-- must
WITH s AS (SELECT tenant, id FROM orders WHERE tenant = 9 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE orders o SET state = 'taken' FROM s WHERE o.tenant = 9 AND s.tenant = o.tenant AND s.id = o.id RETURNING o.id;
-- must
UPDATE orders SET state = 'q' WHERE tenant = 0 AND id = (SELECT id FROM orders WHERE tenant = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id;
MERGE INTO stock s USING (SELECT 'nut' AS item, 1 AS place, 5 AS n) x ON s.item = 'nut' AND s.item = x.item AND s.place = x.place WHEN MATCHED THEN UPDATE SET held = held + n WHEN NOT MATCHED THEN INSERT (item, place, held) VALUES ('nut', x.place, x.n);
-- must
SELECT held FROM stock WHERE item = 'nut' ORDER BY place;
BEGIN;
-- must
SELECT * FROM orders WHERE tenant = 9 AND id = 1 FOR NO KEY UPDATE;
-- must
SELECT o.id FROM orders o JOIN customers c ON c.tenant = o.tenant AND c.id = o.customer WHERE o.tenant = 9 ORDER BY o.id FOR UPDATE OF o;
-- must
SELECT tenant, id FROM orders WHERE state = 'none' ORDER BY tenant, id FOR SHARE;
SAVEPOINT "active_record_1";
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (9, 1, 1, '2024-01-01');
ROLLBACK TO SAVEPOINT "active_record_1";
RELEASE SAVEPOINT "active_record_1";
SAVEPOINT a;
-- must
UPDATE orders SET note = 'sp';
SAVEPOINT b;
-- must
DELETE FROM lines;
ROLLBACK TO b;
-- must
SELECT count(*) FROM lines;
RELEASE a;
-- must
SELECT count(*) FROM orders WHERE note = 'sp';
SET LOCAL statement_timeout = '10s';
SHOW statement_timeout;
COMMIT;
SHOW statement_timeout;
-- must
SELECT current_setting('timezone'), current_database() IS NOT NULL, current_schema();
-- must
SELECT set_config('app.user', '5', false);
-- must
SELECT current_setting('app.user');
-- must
SELECT tenant, id FROM orders WHERE customer::text = current_setting('app.user') OR id = 2 ORDER BY 1, 2;
-- must
SELECT count(*) FROM orders WHERE note = current_setting('app.user');
SHOW search_path;
-- must
SELECT version() IS NOT NULL, pg_is_in_recovery(), txid_current_if_assigned() IS NULL;
-- must
SELECT pg_advisory_lock(1);
-- must
SELECT pg_advisory_unlock(1);
-- must
SELECT nextval('marks_id_seq') > 0;
-- must
SELECT pg_get_serial_sequence('marks', 'id');
-- must
SELECT to_regclass('orders') IS NOT NULL, to_regclass('nope');
-- must
SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename IN ('orders', 'countries', 'settings') ORDER BY 1;
-- must
SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'orders' ORDER BY ordinal_position;
-- must
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = '"orders"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
-- must
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relname = 'orders';
-- must
INSERT INTO orders (tenant, id, customer, placed, amount) VALUES (9, 1000, 1, '2024-01-01', 1e11);
-- must
INSERT INTO orders (tenant, id, customer, placed, amount) VALUES (1, 1000, 1, '2024-01-01', 1), (9, 1000, 1, '2024-01-01', 1e11);
-- must
INSERT INTO orders (tenant, id, customer) VALUES (1, 1000, 1), (9, 1000, 1);
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES ('1', '1001', 1, '2024-01-01'), ('9', '1001', 1, '2024-01-01') RETURNING tenant, id;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (1, 1002, 1, 'x');
-- must
INSERT INTO orders VALUES (1, 1002);
-- must
INSERT INTO orders (tenant, tenant) VALUES (1, 1);
-- must
INSERT INTO nope VALUES (1);
-- must
UPDATE orders SET nope = 1;
-- must
UPDATE orders SET amount = 'x' WHERE tenant = 1;
-- must
UPDATE orders SET amount = 1 / 0;
-- must
UPDATE orders SET id = 1 WHERE tenant = 9;
-- must
DELETE FROM orders WHERE nope;
-- must
DELETE FROM orders WHERE amount;
-- must
SELECT tenant FROM orders WHERE amount = 'x';
-- must
SELECT tenant + 'x' FROM orders;
-- must
SELECT sum(note) FROM orders;
-- must
SELECT tenant FROM orders GROUP BY id;
-- must
SELECT o.nope FROM orders o;
-- must
SELECT x.id FROM orders o;
-- must
SELECT id FROM orders, customers;
-- must
SELECT nofunc(tenant) FROM orders;
-- must
SELECT * FROM orders ORDER BY 99;
-- must
SELECT * FROM orders LIMIT -1;
-- must
SELECT * FROM orders OFFSET -1;
-- must
SELECT * FROM orders WHERE (SELECT id FROM customers) = 1;
-- must
SELECT 1 / (id - 1) FROM orders;
-- must
SELECT count(*) FROM orders WHERE 1 / (id - 1) = 1;
-- must
SELECT max(1 / (id - 1)) FROM orders GROUP BY state;

-- GROUP BY a primary key where rows of several maps come together: Django names no more than that.
-- must
SELECT s.item, s.place, s.held, count(l.line) FROM stock s LEFT JOIN lines l USING (item) GROUP BY s.item, s.place ORDER BY 1, 2;
-- must
SELECT s.item, s.doc, count(*) FROM stock s JOIN lines l ON l.item = s.item GROUP BY s.item, s.place HAVING count(*) > 1 ORDER BY 1, s.place;
-- must
SELECT "customers"."tenant", "customers"."id", "customers"."name", "customers"."country", COUNT("stock"."item") AS "n" FROM "customers" LEFT OUTER JOIN "stock" ON ("stock"."place" = "customers"."id") GROUP BY "customers"."tenant", "customers"."id" ORDER BY "n" DESC, 1, 2;
-- must
SELECT s.*, sum(l.quantity) FROM stock s JOIN lines l USING (item) GROUP BY s.item, s.place ORDER BY s.item, s.place;
-- must
SELECT s.item AS i, s.place AS p, s.held FROM stock s JOIN lines l USING (item) GROUP BY 1, p ORDER BY s.seen NULLS FIRST, 1, 2;
-- must
SELECT row_to_json(s), count(*) FROM stock s JOIN lines l USING (item) GROUP BY s.item, s.place ORDER BY s.item, s.place;
-- must
SELECT s.item, count(*) FROM stock s JOIN lines l USING (item) GROUP BY s.item, s.place HAVING s.held > 10 ORDER BY s.item, s.place;
-- must
SELECT c.tenant, c.name, (SELECT max(x.name) FROM countries x WHERE x.code = c.country), array_agg(s.item ORDER BY s.item) FROM customers c JOIN stock s ON s.place = c.id GROUP BY c.tenant, c.id ORDER BY c.tenant, c.id;
-- must
SELECT s.item, s.held FROM stock s JOIN lines l USING (item) GROUP BY s.item;
-- must
SELECT q.item, q.held, q.n FROM (SELECT s.item, s.place, s.held, count(*) AS n FROM stock s JOIN lines l USING (item) GROUP BY s.item, s.place) q ORDER BY 1, q.place;

-- Temporary tables beside sharded and replicated ones, as bulk changes have them.
CREATE TEMP TABLE tmp_ids (t int, i int, word text);
-- must
INSERT INTO tmp_ids VALUES (1, 1, 'one'), (8, 1, 'two'), (9, 3, 'three');
-- must
SELECT o.tenant, o.id, t.word FROM orders o JOIN tmp_ids t ON o.tenant = t.t AND o.id = t.i ORDER BY 1;
-- must
UPDATE orders o SET note = t.word FROM tmp_ids t WHERE o.tenant = t.t AND o.id = t.i RETURNING o.tenant, o.note;
-- must
UPDATE orders SET note = (SELECT word FROM tmp_ids WHERE t = orders.tenant) WHERE tenant IN (SELECT t FROM tmp_ids) RETURNING tenant, note;
-- must
DELETE FROM orders o USING tmp_ids t WHERE o.tenant = t.t AND o.id = t.i AND t.word = 'two' RETURNING o.tenant, o.id;
-- must
DELETE FROM orders WHERE (tenant, id) IN (SELECT t, i FROM tmp_ids WHERE word = 'three');
-- must
INSERT INTO orders (tenant, id, customer, placed) SELECT t, i + 900, 1, '2024-01-01' FROM tmp_ids ON CONFLICT DO NOTHING;
-- must
INSERT INTO countries (code, name) SELECT 'x' || t, word FROM tmp_ids;
UPDATE countries SET name = word FROM tmp_ids WHERE code = 'x' || t;
-- must
DELETE FROM countries WHERE code IN (SELECT 'x' || t FROM tmp_ids);
-- must
UPDATE tmp_ids SET word = c.name FROM customers c WHERE c.tenant = t AND c.id = i;
-- must
DELETE FROM tmp_ids WHERE t IN (SELECT tenant FROM orders WHERE id > 900 AND tenant = 8);
-- must
SELECT * FROM tmp_ids ORDER BY t;
BEGIN;
-- must
UPDATE orders o SET note = t.word FROM tmp_ids t WHERE o.tenant = t.t AND o.id = t.i RETURNING o.tenant;
-- must
DELETE FROM orders o USING tmp_ids t WHERE o.tenant = t.t AND o.id > 900 RETURNING o.tenant, o.id;
-- must
SELECT count(*) FROM orders WHERE id > 900;
ROLLBACK;
BEGIN;
CREATE TEMP VIEW tmp_view AS SELECT name, value FROM settings;
-- refused
UPDATE orders o SET note = t.name FROM tmp_view t WHERE o.id = t.value;
ROLLBACK;
DROP TABLE tmp_ids;
-- must
DELETE FROM orders WHERE tenant IN (SELECT t FROM tmp_ids);
-- must
UPDATE orders o SET note = t.word FROM tmp_ids t WHERE o.tenant = t.t;
-- must
DELETE FROM orders WHERE id > 900;
