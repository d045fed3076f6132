-- Reads of one shard.
-- must
SELECT * FROM orders WHERE tenant = 3 ORDER BY id;
-- must
SELECT id, amount FROM orders WHERE tenant = 3 AND id = 2;
-- must
SELECT * FROM orders WHERE tenant = 42;
-- must
SELECT o.id, l.item FROM orders o JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id WHERE o.tenant = 0 ORDER BY o.id, l.line;
-- must
SELECT count(*), sum(amount), avg(amount) FROM orders WHERE tenant = 9;
-- must
SELECT state, count(*) FROM orders WHERE tenant = 0 GROUP BY state ORDER BY state;
-- must
SELECT c.name, k.name FROM customers c JOIN countries k ON k.code = c.country WHERE c.tenant = 3 ORDER BY c.id;
-- must
SELECT name FROM customers WHERE tenant = 3 ORDER BY name DESC LIMIT 1;
-- must
SELECT (SELECT max(amount) FROM orders o WHERE o.tenant = c.tenant) FROM customers c WHERE c.tenant = 9 ORDER BY c.id;
-- must
SELECT id FROM orders WHERE tenant = 9 AND EXISTS (SELECT 1 FROM lines l WHERE l.tenant = orders.tenant AND l.order_id = orders.id) ORDER BY id;
-- must
WITH big AS (SELECT * FROM orders WHERE tenant = 9 AND amount > 400) SELECT count(*) FROM big;
-- must
SELECT * FROM stock WHERE item = 'nut' ORDER BY place;
-- must
SELECT item, row_number() OVER (ORDER BY place) FROM stock WHERE item = 'cog' ORDER BY place;
-- must
SELECT tenant, id FROM orders WHERE tenant = 3 UNION ALL SELECT tenant, id FROM customers WHERE tenant = 3 ORDER BY 1, 2;
-- must
SELECT * FROM orders WHERE tenant = 1 + 2 ORDER BY id;
-- must
SELECT * FROM orders WHERE tenant = '3' ORDER BY id;
-- must
SELECT * FROM orders WHERE 3 = tenant ORDER BY id;
-- must
SELECT * FROM orders WHERE (tenant, id) = (3, 1);
SELECT * FROM orders WHERE tenant = 3::bigint ORDER BY id;
SELECT * FROM orders WHERE tenant = 3.0 ORDER BY id;
SELECT 'a' || tenant FROM orders WHERE tenant = 3 ORDER BY id;
SELECT * FROM orders WHERE tenant = NULL;
SELECT * FROM orders WHERE tenant IS NULL;
SELECT * FROM orders WHERE tenant = 3 AND tenant = 4;
SELECT * FROM orders WHERE false;

-- No table, home tables, replicated tables.
-- must
SELECT 1;
-- must
SELECT 1 AS a, 'x' AS b, NULL AS c, true AS d, 1.50 AS e;
-- must
SELECT * FROM settings ORDER BY name;
-- must
SELECT * FROM countries ORDER BY code;
-- must
SELECT count(*) FROM countries;
-- must
SELECT generate_series(1, 3);
-- must
VALUES (1, 'a'), (2, 'b');
-- must
SELECT s.name, c.name FROM settings s CROSS JOIN countries c ORDER BY 1, 2;
-- must
SELECT relname FROM pg_class WHERE relname = 'orders';
SELECT 1 / 0;
SELECT nope;
SELECT * FROM nowhere;
SELECT nope FROM orders;
SELEC 1;
SELECT * FROM orders WHERE nope = 1;
SELECT tenant::date FROM orders WHERE tenant = 1;

-- Fan-outs.
-- must
SELECT * FROM orders;
-- must
SELECT tenant, id FROM orders ORDER BY tenant, id;
-- must
SELECT tenant, id FROM orders ORDER BY tenant DESC, id LIMIT 4;
-- must
SELECT tenant, id, amount FROM orders ORDER BY amount, tenant, id;
-- must
SELECT tenant, id, amount FROM orders ORDER BY amount DESC NULLS LAST, tenant, id LIMIT 5 OFFSET 2;
-- must
SELECT id FROM orders ORDER BY placed;
-- must
SELECT count(*) FROM orders;
-- must
SELECT count(*), count(amount), sum(id), min(id), max(placed) FROM orders;
-- must
SELECT count(*) FROM orders WHERE amount > 50;
-- must
SELECT bool_and(shipped), bool_or(shipped) FROM lines;
-- must
SELECT min(amount), max(amount) FROM orders WHERE state = 'never';
-- must
SELECT count(*) FROM orders WHERE tenant IN (1, 3, 9);
-- must
SELECT tenant, id FROM orders WHERE tenant BETWEEN 2 AND 4 ORDER BY tenant, id;
-- must
SELECT tenant, id FROM orders WHERE tenant > 7 ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders WHERE tenant = 1 OR tenant = 9 ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders WHERE tenant = ANY (ARRAY[1, 5, 7]) ORDER BY 1, 2;
-- must
SELECT o.tenant, o.id, l.line FROM orders o JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id ORDER BY 1, 2, 3;
-- must
SELECT o.tenant, o.id, l.line FROM orders o LEFT JOIN lines l ON l.tenant = o.tenant AND l.order_id = o.id ORDER BY 1, 2, 3;
-- must
SELECT o.tenant, o.id, l.line FROM orders o JOIN lines l USING (tenant) WHERE l.order_id = o.id ORDER BY 1, 2, 3;
-- must
SELECT c.tenant, c.id, k.eu FROM customers c JOIN countries k ON k.code = c.country ORDER BY 1, 2;
-- must
SELECT c.tenant, c.id, k.eu FROM customers c LEFT JOIN countries k ON k.code = c.country ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.tenant = o.tenant AND l.order_id = o.id) ORDER BY 1, 2;
-- must
SELECT tenant, id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.tenant = o.tenant AND l.order_id = o.id) ORDER BY 1, 2;
-- must
SELECT DISTINCT tenant FROM orders ORDER BY tenant;
-- must
SELECT tenant, count(*), sum(amount) FROM orders GROUP BY tenant ORDER BY tenant;
-- must
SELECT tenant, id, row_number() OVER (PARTITION BY tenant ORDER BY id) FROM orders ORDER BY 1, 2;
-- must
SELECT tenant, max(amount) FROM orders GROUP BY tenant HAVING count(*) > 1 ORDER BY tenant;
-- must
SELECT 1 FROM orders LIMIT 0;
SELECT tenant, id FROM orders ORDER BY tenant, id FETCH FIRST 3 ROWS ONLY;
SELECT tenant, id FROM orders ORDER BY tenant, id OFFSET 12;
SELECT tenant, id FROM orders ORDER BY 1, 2 LIMIT ALL;
SELECT o.tenant AS t, o.* FROM orders o ORDER BY o.tenant, o.id LIMIT 2;
SELECT id, amount * 2 AS twice FROM orders ORDER BY twice, id, tenant;
SELECT id FROM orders ORDER BY tenant, id LIMIT 3;
SELECT upper(name) FROM customers;
SELECT name FROM customers ORDER BY name;
SELECT name FROM customers ORDER BY name COLLATE "C";
SELECT name FROM customers ORDER BY lower(name), tenant, id;
SELECT country, count(*) FROM customers GROUP BY country ORDER BY country;
SELECT country, count(*) FROM customers GROUP BY country;
SELECT country FROM customers GROUP BY country HAVING count(*) > 2 ORDER BY 1;
SELECT avg(amount) FROM orders;
SELECT sum(amount) FROM orders;
SELECT avg(id), stddev(id), variance(amount) FROM orders;
SELECT count(DISTINCT state) FROM orders;
SELECT count(DISTINCT tenant) FROM orders;
SELECT sum(amount) FILTER (WHERE state = 'paid') FROM orders;
SELECT count(*) FILTER (WHERE state = 'paid') FROM orders;
SELECT state, sum(amount) FROM orders GROUP BY state ORDER BY sum(amount) DESC;
SELECT state, count(*) AS n FROM orders GROUP BY state ORDER BY n DESC, state LIMIT 2;
SELECT string_agg(state, ',' ORDER BY tenant, id) FROM orders;
SELECT array_agg(id ORDER BY tenant, id) FROM orders;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders;
SELECT mode() WITHIN GROUP (ORDER BY state) FROM orders;
SELECT DISTINCT state FROM orders;
SELECT DISTINCT state FROM orders ORDER BY state;
SELECT DISTINCT ON (state) state, tenant, id FROM orders ORDER BY state, tenant, id;
SELECT state, rank() OVER (ORDER BY amount) FROM orders ORDER BY tenant, id;
SELECT tenant, sum(amount) OVER (ORDER BY tenant, id) FROM orders ORDER BY tenant, id;
SELECT state, tenant, sum(amount) FROM orders GROUP BY ROLLUP (state, tenant) ORDER BY 1, 2;
SELECT state, count(*) FROM orders GROUP BY GROUPING SETS ((state), ()) ORDER BY 1;
SELECT tenant FROM orders UNION SELECT tenant FROM customers ORDER BY 1;
SELECT tenant, id FROM orders UNION ALL SELECT tenant, id FROM customers ORDER BY 1, 2;
SELECT tenant FROM customers EXCEPT SELECT tenant FROM lines ORDER BY 1;
SELECT tenant FROM customers INTERSECT SELECT tenant FROM lines ORDER BY 1;
SELECT * FROM (SELECT tenant, count(*) AS n FROM orders GROUP BY tenant) s WHERE n > 1 ORDER BY tenant;
SELECT max(n) FROM (SELECT tenant, count(*) AS n FROM orders GROUP BY tenant) s;
SELECT count(*) FROM (SELECT * FROM orders LIMIT 5) s;
SELECT avg(n) FROM (SELECT count(*) AS n FROM orders GROUP BY state) s;
WITH t AS (SELECT tenant, sum(amount) AS s FROM orders GROUP BY tenant) SELECT tenant FROM t WHERE s > 100 ORDER BY tenant;
WITH t AS (SELECT max(amount) AS m FROM orders) SELECT tenant, id FROM orders, t WHERE amount = m;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r ORDER BY n;
WITH RECURSIVE r(n) AS (SELECT min(tenant) FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r ORDER BY n;
SELECT tenant, id FROM orders WHERE amount > (SELECT avg(amount) FROM orders) ORDER BY 1, 2;
SELECT tenant, id FROM orders WHERE amount = (SELECT max(amount) FROM orders);
SELECT tenant, id FROM orders o WHERE amount > (SELECT avg(amount) FROM orders i WHERE i.tenant = o.tenant) ORDER BY 1, 2;
SELECT tenant, id FROM orders WHERE customer IN (SELECT id FROM customers WHERE country = 'fr') ORDER BY 1, 2;
SELECT tenant, id FROM orders WHERE tenant IN (SELECT tenant FROM customers WHERE country = 'fr') ORDER BY 1, 2;
SELECT tenant, id FROM orders WHERE tenant NOT IN (SELECT tenant FROM lines) ORDER BY 1, 2;
SELECT o.tenant, c.tenant FROM orders o JOIN customers c ON c.id = o.customer ORDER BY 1, 2;
SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer;
SELECT count(*) FROM orders o CROSS JOIN customers c;
SELECT count(*) FROM orders a JOIN orders b ON a.amount = b.amount;
SELECT l.tenant, s.held FROM lines l JOIN stock s ON s.item = l.item ORDER BY 1, 2 NULLS FIRST;
SELECT s.item, sum(l.quantity) FROM stock s LEFT JOIN lines l ON l.item = s.item GROUP BY s.item ORDER BY 1;
SELECT o.id, s.value FROM orders o JOIN settings s ON s.name = 'limit' WHERE o.tenant = 3 ORDER BY 1;
SELECT count(*) FROM orders, settings;
SELECT k.name, count(c.id) FROM countries k LEFT JOIN customers c ON c.country = k.code GROUP BY k.name ORDER BY 1;
SELECT k.name FROM countries k WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.country = k.code) ORDER BY 1;
SELECT k.code, c.name FROM countries k FULL JOIN customers c ON c.country = k.code ORDER BY 1, 2;
SELECT item, held FROM stock ORDER BY held NULLS FIRST, item, place;
SELECT item, count(*) FROM stock GROUP BY item ORDER BY item;
SELECT item, tags, doc FROM stock WHERE item IN ('nut', 'cog') ORDER BY item, place;
SELECT item, doc->>'kg' FROM stock ORDER BY item, place;
SELECT item FROM stock WHERE 'steel' = ANY (tags) ORDER BY item, place;
SELECT x.item, x.tag FROM stock, LATERAL unnest(tags) AS x(tag) WHERE false;
SELECT s.item, t.tag FROM stock s, LATERAL unnest(s.tags) AS t(tag) ORDER BY 1, 2;
SELECT c.tenant, o.id FROM customers c, LATERAL (SELECT id FROM orders WHERE orders.tenant = c.tenant ORDER BY id LIMIT 1) o ORDER BY 1, 2;
SELECT tenant, CASE WHEN amount > 100 THEN 'big' WHEN amount IS NULL THEN 'none' ELSE 'small' END FROM orders ORDER BY tenant, id;
SELECT placed::date, count(*) FROM orders GROUP BY 1 ORDER BY 1;
SELECT date_trunc('month', placed) AS m, sum(amount) FROM orders GROUP BY m ORDER BY m;
SELECT extract(month FROM placed), count(*) FROM orders GROUP BY 1 ORDER BY 1;
SELECT weight FROM lines ORDER BY weight NULLS FIRST, tenant, order_id, line;
SELECT sum(quantity), sum(price), avg(price) FROM lines;
SELECT max(name), min(name) FROM customers;
SELECT max(since), min(since) FROM customers;
SELECT every(eu) FROM countries;
SELECT count(*) FROM orders WHERE note LIKE '%n%';
SELECT tenant, id FROM orders WHERE note IS NULL ORDER BY 1, 2;
SELECT tenant, id, note FROM orders ORDER BY 1, 2;
SELECT coalesce(sum(amount), 0) FROM orders WHERE state = 'never';
SELECT count(*) = 15 FROM orders;
SELECT count(*) + 1 FROM orders;
SELECT sum(id) * 2, count(*)::text FROM orders;
SELECT sum(id)::float / count(*) FROM orders;
SELECT tenant % 3 AS m, count(*) FROM orders GROUP BY m ORDER BY m;
SELECT exists (SELECT 1 FROM orders WHERE amount > 900);
SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM customers);
SELECT ARRAY(SELECT id FROM orders ORDER BY tenant, id);
SELECT tenant, id FROM orders FOR UPDATE;
SELECT tenant, id FROM orders WHERE tenant = 3 ORDER BY id FOR UPDATE;
SELECT o FROM orders o WHERE tenant = 3 ORDER BY id;
SELECT row_to_json(c) FROM customers c WHERE tenant = 3 ORDER BY id;
SELECT json_agg(name ORDER BY tenant, id) FROM customers;
TABLE countries;
TABLE settings;
TABLE orders;

-- Writes.
-- must
INSERT INTO orders VALUES (3, 10, 1, '2024-06-01', 1.25, 'open', 'new');
-- must
INSERT INTO orders (id, tenant, customer, placed) VALUES (11, 4, 1, '2024-06-02') RETURNING *;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (0, 20, 1, '2024-06-03'), (9, 20, 1, '2024-06-04'), (5, 20, 1, '2024-06-05');
-- must
-- ordered
INSERT INTO orders (tenant, id, customer, placed) VALUES (8, 21, 1, '2024-06-03'), (1, 21, 1, '2024-06-04'), (8, 22, 1, '2024-06-05') RETURNING tenant, id;
-- must
SELECT tenant, id FROM orders ORDER BY tenant, id;
INSERT INTO orders VALUES (3, 10, 1, '2024-06-01', 1.25, 'open', 'again');
INSERT INTO orders VALUES (0, 30, 1, '2024-06-01'), (9, 1, 1, '2024-06-01');
-- must
SELECT count(*) FROM orders WHERE id = 30;
-- must
INSERT INTO orders VALUES (3, 10, 1, '2024-06-01', 2.5, 'open', 'again') ON CONFLICT (tenant, id) DO UPDATE SET amount = excluded.amount, note = excluded.note;
-- must
INSERT INTO orders VALUES (3, 10, 1, '2024-06-01') ON CONFLICT DO NOTHING;
-- must
SELECT amount, note FROM orders WHERE tenant = 3 AND id = 10;
-- must
UPDATE orders SET amount = amount + 1 WHERE tenant = 3 AND id = 10;
-- must
UPDATE orders SET amount = 1 WHERE tenant = 3 AND id = 10 RETURNING tenant, id, amount;
-- must
UPDATE orders SET state = 'late' WHERE state = 'open';
-- must
UPDATE orders SET note = 'multi' WHERE tenant IN (0, 9) AND id = 20 RETURNING tenant;
-- must
DELETE FROM orders WHERE tenant = 4 AND id = 11;
-- must
DELETE FROM orders WHERE id = 20;
-- must
DELETE FROM lines WHERE quantity IS NULL RETURNING tenant, item;
-- must
UPDATE orders SET amount = l.price FROM lines l WHERE l.tenant = orders.tenant AND l.order_id = orders.id AND l.line = 1 AND orders.tenant = 9;
UPDATE orders SET amount = l.price FROM lines l WHERE l.tenant = orders.tenant AND l.order_id = orders.id AND l.line = 1;
DELETE FROM lines USING orders o WHERE o.tenant = lines.tenant AND o.id = lines.order_id AND o.state = 'gone';
-- must
SELECT tenant, id, amount FROM orders ORDER BY 1, 2;
-- must
SELECT tenant, order_id, line FROM lines ORDER BY 1, 2, 3;
-- must
INSERT INTO countries VALUES ('it', 'Italy', true);
-- must
UPDATE countries SET name = 'Italia' WHERE code = 'it' RETURNING code, name;
-- must
SELECT name FROM countries WHERE code = 'it';
-- must
DELETE FROM countries WHERE code = 'it';
INSERT INTO countries VALUES ('de', 'again', true);
-- must
INSERT INTO settings VALUES ('new', 1);
-- must
UPDATE settings SET value = value * 10 WHERE name = 'new';
-- must
DELETE FROM settings WHERE name = 'new' RETURNING value;
-- must
INSERT INTO stock VALUES ('washer', 1, 5, NULL, NULL, NULL), ('pin', 1, 6, NULL, NULL, NULL);
-- must
UPDATE stock SET held = held + 1 WHERE item = 'pin';
-- must
SELECT item, held FROM stock WHERE item IN ('washer', 'pin') ORDER BY held;
-- must
DELETE FROM stock WHERE item = 'washer' OR item = 'pin';
UPDATE orders SET id = 'x' WHERE tenant = 3;
INSERT INTO orders VALUES (3, 99, 1, 'no date');
INSERT INTO orders (tenant, id) VALUES (3, 99);
INSERT INTO orders (tenant, id, nope) VALUES (3, 99, 1);
UPDATE orders SET amount = 1e20 WHERE tenant = 3;
DELETE FROM nowhere;
INSERT INTO orders SELECT tenant, id + 100, customer, placed, amount, state, note FROM orders WHERE tenant = 3;
INSERT INTO orders SELECT tenant, id + 200, customer, placed, amount, state, note FROM orders;
SELECT tenant, id FROM orders WHERE id > 100 ORDER BY 1, 2;
DELETE FROM orders WHERE id > 100;
WITH gone AS (DELETE FROM lines WHERE tenant = 0 RETURNING *) SELECT count(*) FROM gone;
WITH d AS (DELETE FROM lines WHERE tenant = 7 RETURNING tenant, item) INSERT INTO customers SELECT tenant, 77, item, NULL, NULL FROM d;

-- Transactions.
-- must
BEGIN;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (0, 50, 1, '2024-07-01');
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (9, 50, 1, '2024-07-01');
-- must
SELECT tenant FROM orders WHERE id = 50 ORDER BY 1;
-- must
ROLLBACK;
-- must
SELECT count(*) FROM orders WHERE id = 50;
-- must
BEGIN;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (0, 51, 1, '2024-07-01'), (9, 51, 1, '2024-07-01');
-- must
SAVEPOINT one;
-- must
UPDATE orders SET note = 'in savepoint' WHERE id = 51;
INSERT INTO orders (tenant, id, customer, placed) VALUES (5, 51, 1, '2024-07-01'), (9, 51, 1, '2024-07-01');
SELECT 1;
-- must
ROLLBACK TO one;
-- must
SELECT tenant, note FROM orders WHERE id = 51 ORDER BY 1;
-- must
COMMIT;
-- must
SELECT tenant, note FROM orders WHERE id = 51 ORDER BY 1;
BEGIN;
SELECT 1 / 0;
SELECT count(*) FROM orders;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SHOW transaction_isolation;
SELECT count(*) FROM orders;
COMMIT;
BEGIN READ ONLY;
SELECT count(*) FROM orders;
DELETE FROM orders;
ROLLBACK;
COMMIT;
ROLLBACK;
SAVEPOINT outside;
START TRANSACTION;
DECLARE c CURSOR FOR SELECT id FROM orders WHERE tenant = 9 ORDER BY id;
FETCH 2 FROM c;
FETCH ALL FROM c;
CLOSE c;
DECLARE d CURSOR FOR SELECT tenant, id FROM orders ORDER BY 1, 2;
FETCH 3 FROM d;
COMMIT;
SET work_mem = '5MB';
SHOW work_mem;
RESET work_mem;
SHOW search_path;
BEGIN;
SET LOCAL timezone = 'Asia/Tokyo';
SELECT item, seen FROM stock ORDER BY item, place;
COMMIT;
SELECT item, seen FROM stock WHERE item = 'gear';
DELETE FROM orders WHERE id IN (50, 51);
TRUNCATE lines;
SELECT count(*) FROM lines;

-- What random statements have found.
WITH unread AS (SELECT * FROM settings) SELECT tenant, count(*) FROM orders GROUP BY tenant ORDER BY 1;
WITH unread AS (SELECT 1 FROM settings) UPDATE orders SET note = note WHERE tenant > 100;
SELECT DISTINCT ON ((SELECT count(*) FROM stock s WHERE s.held > 10)) (SELECT count(*) FROM stock s WHERE s.held > 10) AS c, o.id FROM orders o JOIN lines l ON l.line = o.id ORDER BY c, o.id;
SELECT (SELECT count(*) FROM stock) AS c, count(*) FROM orders o JOIN lines l ON l.line = o.id GROUP BY (SELECT count(*) FROM stock);
-- must
INSERT INTO orders (nope) VALUES (1);
-- must
INSERT INTO orders (id, id) VALUES (1, 1);
-- must
BEGIN;
-- must
INSERT INTO settings VALUES ('limit', 1);
-- must
INSERT INTO orders VALUES (0, 90, 1, '2024-01-01', 1), (9, 90, 1, '2024-01-01', 1);
-- must
INSERT INTO orders VALUES (9, 91, 1, '2024-01-01', 1);
-- must
COMMIT;
-- must
BEGIN;
-- must
INSERT INTO orders (nope) VALUES (1);
-- must
COMMIT;
-- must
BEGIN;
-- must
INSERT INTO orders VALUES (5, 90, 1, '2024-01-01', 1), (9, 90, 1, '2024-01-01', 1);
-- must
SELECT count(*) FROM orders o, settings s WHERE s.value = o.id;
-- must
ROLLBACK;

-- Values that are worked out before it is known where a row goes, or that all shards must have alike.
-- must
INSERT INTO drafts (id, what) VALUES (1, 'by default') RETURNING *;
-- must
INSERT INTO drafts (tenant, id, what) VALUES (2 + 3, 2, 'it''s'), (abs(-8), 3, NULL), (DEFAULT, 4, 'x'), (9, 5, 'y') RETURNING tenant, id, what;
-- must
INSERT INTO drafts VALUES (length('ab'), 6), (0, 7);
-- must
INSERT INTO drafts (id, tenant) VALUES (8, CASE WHEN now() > '2000-01-01' THEN 4 END) ON CONFLICT DO NOTHING;
-- must
INSERT INTO drafts (id, tenant) VALUES (9, 1 / 0);
INSERT INTO drafts DEFAULT VALUES;
-- must
SELECT * FROM drafts ORDER BY tenant, id;
BEGIN;
-- must
INSERT INTO drafts (id, tenant, what) VALUES (10, 1 + 1, now()::text = now()::text);
-- must
INSERT INTO drafts (id, tenant) VALUES (11, 6 + 1), (12, 3);
-- must
COMMIT;
-- must
SELECT * FROM drafts WHERE id > 9 ORDER BY id;
-- must
INSERT INTO marks (code) VALUES ('a'), ('b') RETURNING id, code, at = until;
-- must
INSERT INTO marks (code, at, until) VALUES ('c', now(), now() + interval '1 day'), ('d', DEFAULT, NULL) RETURNING id, code, until - at;
-- must
INSERT INTO marks (code, until) VALUES ('a', now()) ON CONFLICT (code) DO UPDATE SET until = now() + interval '1 hour', at = EXCLUDED.at RETURNING code, until - at;
-- must
UPDATE marks SET at = now(), until = current_timestamp WHERE code = 'b' AND at <= now() RETURNING id, code, at = until;
-- must
DELETE FROM marks WHERE until > now() + interval '12 hours' RETURNING code;
-- must
SELECT id, code, until - at, count(*) OVER () FROM marks ORDER BY id;
INSERT INTO marks (code) SELECT 'e';
UPDATE marks SET until = clock_timestamp();

-- Cursors over several shards: their rows come together where the cursor is.
-- must
DECLARE c CURSOR FOR SELECT * FROM orders;
-- must
BEGIN;
-- must
DECLARE c SCROLL CURSOR FOR SELECT tenant, id, amount FROM orders ORDER BY amount NULLS FIRST, tenant, id;
-- must
-- ordered
FETCH 3 FROM c;
-- must
MOVE FORWARD 2 IN c;
-- must
-- ordered
FETCH NEXT FROM c;
-- must
-- ordered
FETCH BACKWARD 2 FROM c;
-- must
DECLARE d CURSOR FOR SELECT state, count(*) FROM orders GROUP BY state ORDER BY state;
-- must
-- ordered
FETCH ALL FROM d;
-- must
SELECT avg(amount) FROM orders;
-- must
UPDATE orders SET note = 'seen' WHERE tenant = 9;
-- must
-- ordered
FETCH ABSOLUTE 2 FROM c;
-- must
CLOSE c;
-- must
DECLARE c CURSOR FOR SELECT count(*) FROM lines;
-- must
FETCH ALL FROM c;
-- must
FETCH ALL FROM nosuch;
-- must
ROLLBACK;
-- must
BEGIN;
-- must
DECLARE c CURSOR FOR SELECT tenant, id FROM orders ORDER BY tenant, id;
-- must
DECLARE c CURSOR FOR SELECT tenant, id FROM orders ORDER BY tenant DESC, id;
-- must
ROLLBACK;
-- must
BEGIN;
-- must
DECLARE c CURSOR FOR SELECT tenant, id FROM orders WHERE tenant = 9 ORDER BY id;
-- must
-- ordered
FETCH 2 FROM c;
-- must
COMMIT;

-- Functions that read sharded tables would see one shard's rows.
-- refused
SELECT orders_of(3);
-- refused
SELECT through(9);
-- refused
SELECT * FROM settings WHERE value < through(9);
-- refused
UPDATE settings SET value = orders_of(3);
-- must
SELECT twice(4);
-- must
SELECT orders_of(tenant) FROM orders WHERE tenant = 3 AND id = 1;
SELECT orders_of(tenant) FROM orders;
-- refused
DO 'begin delete from orders; end';

-- Partial rows finished in one PostgreSQL.
-- must
SELECT state, count(*), count(amount), sum(id), min(note), max(placed), avg(id), avg(amount) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT state, count(*) AS n FROM orders GROUP BY state HAVING count(*) > 3 ORDER BY n DESC, state;
-- must
SELECT state AS s, sum(amount) FROM orders GROUP BY s ORDER BY s NULLS FIRST;
-- must
SELECT upper(state), count(*) FROM orders GROUP BY upper(state) ORDER BY 1;
-- must
SELECT upper(state) || '!', count(*) FROM orders GROUP BY upper(state) ORDER BY upper(state);
-- must
SELECT o.state, count(*) FROM orders o GROUP BY state ORDER BY o.state DESC;
-- must
SELECT id % 2 AS odd, sum(amount) / count(*) FROM orders GROUP BY id % 2 ORDER BY odd;
-- must
SELECT id % 2, id % 3, count(*) FROM orders GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT sum(amount), avg(amount), count(DISTINCT state), min(state) FROM orders;
-- must
SELECT sum(amount), count(DISTINCT state) FROM orders WHERE tenant > 100;
-- must
SELECT count(DISTINCT state), count(DISTINCT customer), count(*) FROM orders;
-- must
SELECT state, count(DISTINCT customer) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT array_agg(DISTINCT state) FROM orders;
-- must
SELECT sum(DISTINCT customer), avg(DISTINCT customer) FROM orders;
-- must
SELECT state, customer, count(*), grouping(state, customer) FROM orders GROUP BY ROLLUP (state, customer) ORDER BY 1, 2, 4;
-- must
SELECT state, customer, sum(amount) FROM orders GROUP BY CUBE (state, customer) ORDER BY 1, 2, 3;
-- must
SELECT state, count(*) FROM orders GROUP BY GROUPING SETS ((state), ()) ORDER BY 1 NULLS LAST, 2;
-- must
SELECT state, count(*) FROM orders WHERE tenant > 100 GROUP BY ROLLUP (state);
-- must
SELECT state, count(*), rank() OVER (ORDER BY count(*) DESC), sum(count(*)) OVER () FROM orders GROUP BY state ORDER BY 1;
-- must
SELECT DISTINCT count(*) FROM orders GROUP BY customer ORDER BY 1;
-- must
SELECT count(*) FILTER (WHERE amount > 10), sum(amount) FILTER (WHERE state = 'paid'), avg(id) FILTER (WHERE id > 1) FROM orders;
-- must
SELECT CASE WHEN count(*) > 3 THEN 'many' ELSE state END, count(*) FROM orders GROUP BY state ORDER BY 2, 1;
-- must
SELECT coalesce(state, '?'), max(note) FROM orders GROUP BY state ORDER BY max(note) NULLS FIRST, 1;
-- must
SELECT bool_and(shipped), bool_or(shipped), every(quantity > 0), bit_and(line), bit_or(line) FROM lines;
-- must
SELECT item, avg(quantity), avg(price), sum(weight)::numeric(20,3), avg(weight)::numeric(20,3) FROM lines GROUP BY item ORDER BY item;
-- must
SELECT max(item), min(item) FROM lines;
-- must
SELECT item, sum(quantity * price) AS total FROM lines GROUP BY item ORDER BY total DESC NULLS LAST LIMIT 2;
-- must
SELECT l.item, count(*) FROM lines l JOIN orders o ON o.tenant = l.tenant AND o.id = l.order_id WHERE o.state <> 'gone' GROUP BY l.item ORDER BY 2 DESC, 1;
-- must
SELECT k.name, count(*), sum(o.amount) FROM customers c JOIN orders o ON o.tenant = c.tenant AND o.customer = c.id JOIN countries k ON k.code = c.country GROUP BY k.name ORDER BY k.name;
-- must
WITH paid AS (SELECT * FROM orders WHERE state = 'paid') SELECT customer, count(*), avg(amount) FROM paid GROUP BY customer ORDER BY customer;
-- must
SELECT customer, count(*) FROM (SELECT * FROM orders WHERE amount > 1) o GROUP BY customer ORDER BY 1;
-- must
SELECT extract(month FROM placed), count(*) FROM orders GROUP BY extract(month FROM placed) ORDER BY 1;
-- must
SELECT date_trunc('month', placed) AS month, sum(amount) FROM orders GROUP BY 1 ORDER BY 1;
-- must
SELECT placed::date, count(*) FROM orders GROUP BY placed::date ORDER BY 1 LIMIT 3;
-- must
SELECT amount IS NULL, count(*) FROM orders GROUP BY amount IS NULL ORDER BY 1;
-- must
SELECT max(amount) - min(amount) AS spread FROM orders;
-- must
SELECT sum(amount) / 7.0 FROM orders WHERE tenant = 100;
-- must
SELECT 100.00 * sum(CASE WHEN state = 'paid' THEN amount ELSE 0 END) / sum(amount) FROM orders;
-- must
SELECT state, array_agg(id ORDER BY tenant, id) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT stddev(amount), variance(id), corr(id, tenant) IS NULL FROM orders;
SELECT state FROM orders GROUP BY customer;
SELECT count(*), note FROM orders;
SELECT state, count(*) FROM orders GROUP BY 3;
SELECT sum(state) FROM orders GROUP BY customer;
-- must
SELECT name FROM customers ORDER BY name DESC LIMIT 3;
-- must
SELECT name, tenant FROM customers ORDER BY country, name OFFSET 2 LIMIT 4;
-- must
SELECT tenant FROM customers ORDER BY lower(name) DESC, name FETCH FIRST 2 ROWS ONLY;
-- must
SELECT DISTINCT country FROM customers ORDER BY country NULLS FIRST LIMIT 3;
-- must
SELECT DISTINCT upper(name), country FROM customers ORDER BY 1, 2;
-- must
SELECT * FROM customers ORDER BY name;
-- must
SELECT c.*, length(name) FROM customers c ORDER BY c.country DESC NULLS LAST, c.name LIMIT 5;
-- must
SELECT name FROM customers WHERE tenant > 2 UNION ALL SELECT note FROM orders WHERE tenant < 3 ORDER BY 1 LIMIT 6;
-- must
SELECT tags, doc FROM stock ORDER BY tags, item, place;
-- must
SELECT item COLLATE "C" AS i FROM stock ORDER BY item LIMIT 2;
-- must
SELECT tenant, count(*) FROM orders GROUP BY tenant ORDER BY max(note), tenant;
-- must
SELECT tenant, name FROM (SELECT tenant, name, row_number() OVER (PARTITION BY tenant ORDER BY id) AS n FROM customers) x WHERE n = 1 ORDER BY name;
BEGIN;
-- must
UPDATE orders SET state = 'done' WHERE tenant = 9;
-- must
SELECT state, count(*), avg(amount) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT name FROM customers ORDER BY name LIMIT 1;
-- must
SELECT count(DISTINCT state) FROM orders;
-- must
ROLLBACK;

-- Transactions that may not write: what several shards have is brought together beside them.
-- must
BEGIN READ ONLY;
-- must
SELECT state, count(*), avg(amount) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT o.id, l.item FROM orders o JOIN lines l ON l.line = o.id ORDER BY 1, 2;
-- must
SELECT name FROM customers ORDER BY name LIMIT 2;
-- must
SELECT s.name, count(*) FROM settings s JOIN orders o ON o.id = s.value GROUP BY s.name ORDER BY 1;
-- must
UPDATE orders SET note = 'x';
-- must
ROLLBACK;
-- must
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
-- must
SELECT state, avg(amount) FROM orders GROUP BY state ORDER BY state;
-- must
SELECT count(DISTINCT state) / 0 FROM orders;
-- must
SELECT count(*) FROM orders;
-- must
COMMIT;
-- must
SELECT count(*) FROM orders WHERE (state = 'open' AND amount > 5) OR (state = 'paid' AND id = 1);
-- must
SELECT sum(l.price) FROM lines l, orders o WHERE (o.id = l.line AND o.state = 'open' AND l.price > 2) OR (o.id = l.line AND o.state = 'paid' AND o.customer = 1 AND l.quantity > 1);

-- Rows that are read in one place and belong in another.
-- must
INSERT INTO drafts (tenant, id, what) SELECT g % 10, 100 + g, 'poured ' || g FROM generate_series(1, 1203) g;
-- must
SELECT tenant, count(*), min(what), max(id) FROM drafts GROUP BY tenant ORDER BY tenant;
-- must
INSERT INTO drafts (tenant, id, what) SELECT (tenant + 1) % 10, 5000 + id, what FROM drafts WHERE id BETWEEN 100 AND 120 ORDER BY id LIMIT 7 RETURNING tenant, id, what;
-- must
INSERT INTO drafts (id, what) SELECT 7000 + g, NULL FROM generate_series(1, 3) g RETURNING *;
-- must
INSERT INTO drafts (tenant, id, what) SELECT tenant, id, 'again' FROM drafts WHERE id > 7000 ON CONFLICT (tenant, id) DO UPDATE SET what = EXCLUDED.what RETURNING what;
-- must
INSERT INTO drafts (tenant, id) SELECT 4, 2.5 + g FROM generate_series(8000, 8001) g RETURNING id;
-- must
INSERT INTO drafts (tenant, id, what) SELECT customer, 9000 + id, count(*) OVER ()::text FROM orders WHERE state IS NOT NULL AND customer < 10 ORDER BY tenant, id LIMIT 5;
-- must
SELECT * FROM drafts WHERE id > 7000 ORDER BY tenant, id;
-- must
INSERT INTO drafts (tenant, id) SELECT g, g / (g - 3) FROM generate_series(1, 5) g;
-- must
INSERT INTO drafts (tenant, nope) SELECT g, g FROM generate_series(1, 5) g;
-- must
INSERT INTO drafts (tenant, id, what) SELECT 1, 9500, 'x' FROM orders WHERE false RETURNING id;
-- must
INSERT INTO settings SELECT name, count(*) FROM customers GROUP BY name ON CONFLICT (name) DO NOTHING;
-- must
SELECT count(*) FROM settings;
-- must
INSERT INTO marks (code) SELECT 'm' || o.tenant FROM orders o GROUP BY o.tenant ORDER BY o.tenant LIMIT 3 RETURNING code;
BEGIN;
-- must
INSERT INTO drafts (tenant, id, what) SELECT tenant, id + 10000, what FROM drafts;
-- must
SELECT count(*) FROM drafts;
-- must
ROLLBACK;
-- must
SELECT count(*) FROM drafts;

-- One time for all shards.
-- must
SELECT count(DISTINCT now()) FROM orders;
-- must
SELECT min(now()) = max(current_timestamp), count(*) FROM orders;
-- must
SELECT count(DISTINCT now()), now() - max(now()) FROM orders;
-- must
SELECT count(DISTINCT length('abc')), length('abc') FROM orders;
-- must
SELECT count(*) FROM (SELECT DISTINCT now() AS n, localtime, current_date FROM orders) x;
-- must
SELECT now() > placed, now()::date - current_date, CASE WHEN id > 1 THEN now() - now() ELSE '1 hour' END FROM orders ORDER BY tenant, id;
-- must
SELECT now() = now(), (SELECT now() FROM countries LIMIT 0), count(*) FROM orders WHERE placed < now() AND now() = (SELECT now()) GROUP BY now();
-- must
SELECT count(*) FROM orders o, now() n WHERE o.placed < n;
-- must
SELECT min(now) = max(now) FROM (SELECT now(), tenant FROM orders UNION ALL SELECT current_timestamp, 1 FROM lines) x;
-- must
PREPARE timed AS SELECT count(DISTINCT now()), count(*) FROM orders WHERE placed < now() AND id > $1;
-- must
EXECUTE timed (1);
DEALLOCATE timed;
-- must
UPDATE stock SET seen = now() WHERE held > 0;
-- must
SELECT count(DISTINCT seen) FROM stock WHERE held > 0;
UPDATE stock SET seen = NULL;
-- must
INSERT INTO drafts (tenant, id, what) VALUES (1, 7001, now()::text), (5, 7001, now()::text), (9, 7001, now()::text);
-- must
SELECT count(DISTINCT what) FROM drafts WHERE id = 7001;
DELETE FROM drafts WHERE id = 7001;
-- A transaction that may not write, and one that failed to.
BEGIN READ ONLY;
SAVEPOINT a;
INSERT INTO drafts (tenant, id, what) VALUES (1, 900, 'x'), (5, 901, 'y'), (9, 902, 'z');
ROLLBACK TO a;
DELETE FROM countries;
ROLLBACK TO a;
-- must
SELECT count(*) FROM drafts;
-- must
COMMIT;
BEGIN;
SAVEPOINT a;
UPDATE orders SET note = 'x';
ROLLBACK TO a;
SET TRANSACTION READ ONLY;
UPDATE orders SET note = 'x';
ROLLBACK TO a;
-- must
COMMIT;
-- Cursors that stay.
BEGIN;
-- must
DECLARE c CURSOR WITH HOLD FOR SELECT tenant, id, note FROM orders ORDER BY tenant, id;
-- must
FETCH 3 FROM c;
-- must
COMMIT;
-- must
FETCH 3 FROM c;
-- must
SELECT count(*) FROM orders;
-- must
FETCH ALL FROM c;
CLOSE c;
-- must
DECLARE d CURSOR WITH HOLD FOR SELECT o.id, count(*) FROM orders o JOIN lines l ON l.line = o.id GROUP BY o.id ORDER BY o.id;
-- must
FETCH 1 FROM d;
-- must
FETCH ALL FROM d;
CLOSE d;
BEGIN;
-- must
DECLARE c CURSOR WITH HOLD FOR SELECT tenant, id, now() = now() FROM orders ORDER BY tenant, id;
-- must
UPDATE orders SET note = 'held' WHERE tenant IN (1, 8);
-- must
COMMIT;
-- must
FETCH 3 FROM c;
CLOSE c;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT tenant, id FROM orders ORDER BY tenant, id;
ROLLBACK;
FETCH 1 FROM c;
-- Tables of the home shard that are made from what several have.
-- must
CREATE TEMP TABLE taken AS SELECT tenant, count(*) AS n, sum(amount) FROM orders GROUP BY tenant;
-- must
SELECT * FROM taken ORDER BY tenant;
-- must
SELECT o.tenant, o.id, t.n FROM taken t JOIN orders o USING (tenant) ORDER BY 1, 2;
-- must
SELECT tenant, id, note INTO TEMP others FROM orders WHERE tenant = 8;
-- must
SELECT * FROM others ORDER BY tenant, id;
-- must
DROP TABLE taken, others;
-- must
CREATE TABLE made (t, n) AS SELECT tenant, avg(amount) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 4;
-- must
SELECT * FROM made ORDER BY t;
-- must
CREATE TABLE IF NOT EXISTS made AS SELECT 1 AS x, tenant FROM orders;
-- must
CREATE TABLE empty_one AS SELECT * FROM stock WITH NO DATA;
-- must
SELECT * FROM empty_one;
-- must
DROP TABLE made, empty_one;

-- INSERT ... SELECT whose rows go elsewhere, and hit a row twice far apart.
INSERT INTO drafts (tenant, id, what) VALUES (1, 8000, 'old'), (7, 8001, 'old');
-- must
INSERT INTO drafts (tenant, id, what) SELECT g % 3, 8100 + g % 700, 'x' FROM generate_series(0, 2100) g ON CONFLICT (tenant, id) DO UPDATE SET what = drafts.what || excluded.what;
-- must
INSERT INTO drafts (tenant, id, what) SELECT g % 10, 8000 + g, 'new' FROM generate_series(0, 1900) g ON CONFLICT (tenant, id) DO UPDATE SET what = drafts.what || excluded.what RETURNING id, what;
-- must
INSERT INTO drafts (tenant, id, what) SELECT g % 10, 8000 + g, 'again' FROM generate_series(0, 1900) g ON CONFLICT (tenant, id) DO UPDATE SET what = drafts.what || excluded.what WHERE drafts.id > 9000;
-- must
SELECT count(*), count(DISTINCT what), min(what), max(what) FROM drafts;
DELETE FROM drafts;
-- COPY.
-- must
-- data 1\t1\tone\n5\t1\tfive\n9\t1\t\\N\n
COPY drafts FROM STDIN;
-- must
-- data 5;2;a\n6;3;\n
COPY drafts (tenant, id, what) FROM STDIN (FORMAT csv, DELIMITER ';', FORCE_NOT_NULL (what));
-- must
COPY drafts TO STDOUT;
-- must
-- data kiwi,1,"",\n,2,"",\n"",3,,\n
COPY stock (item, place, held, tags) FROM STDIN (FORMAT csv, FORCE_NULL (held), FORCE_NOT_NULL (item));
-- must
SELECT item, place, held FROM stock WHERE place < 4 AND (item = 'kiwi' OR item = '');
-- must
-- data none,1,1\n
COPY stock (item, place, held) FROM STDIN (FORMAT csv, NULL 'none', FORCE_NOT_NULL (item));
-- must
SELECT item, place, held FROM stock WHERE item IN ('none', '');
DELETE FROM stock WHERE item IN ('kiwi', 'none', '');
-- must
-- data sea\nlake\n
COPY marks (code) FROM STDIN;
-- must
SELECT count(*), count(DISTINCT at), count(DISTINCT id) FROM marks WHERE code IN ('sea', 'lake');
-- must
SELECT count(*) FROM orders o, marks m WHERE m.code = 'lake' AND m.at <= now() AND m.id > 0;
-- data sea\n
COPY marks (code) FROM STDIN;
BEGIN;
UPDATE orders SET note = 'copied' WHERE tenant IN (1, 8);
-- must
-- data pond,2020-01-01\ncity,\n
COPY marks (code, until) FROM STDIN (FORMAT csv);
-- must
SELECT code, until FROM marks WHERE code IN ('pond', 'city', 'sea');
-- must
COMMIT;
DELETE FROM marks WHERE code IN ('sea', 'lake', 'pond', 'city');

-- Rows of several shards for a table of the home shard, in a transaction that began elsewhere.
BEGIN;
-- must
SELECT count(*) FROM orders WHERE tenant = 5;
-- must
SELECT count(*) FROM orders WHERE tenant BETWEEN 4 AND 5;
-- must
INSERT INTO settings SELECT name || tenant || id, id FROM customers;
-- must
SELECT count(*), sum(value) FROM settings;
ROLLBACK;

-- Times with a precision: one for all shards, of the type that they have.
-- must
SELECT min(t) = max(t), count(*) FROM (SELECT current_timestamp(3) AS t FROM orders UNION ALL SELECT current_timestamp(3) FROM lines) x;
-- must
SELECT count(DISTINCT localtimestamp(0)), count(DISTINCT current_time(2)) FROM orders;
SELECT current_timestamp(2) >= now() - interval '1 second', localtime(1) IS NOT NULL FROM orders WHERE tenant IN (1, 9);
BEGIN;
-- must
UPDATE marks SET until = current_timestamp(0) WHERE at <= current_timestamp(6);
-- must
INSERT INTO marks (code, until) VALUES ('precise', current_timestamp(0));
-- must
SELECT until = date_trunc('second', until) FROM marks WHERE code = 'precise';
ROLLBACK;

-- Constants that only PostgreSQL folds say where a statement belongs.
-- must
SELECT tenant, id FROM orders WHERE tenant = 2 + 1 ORDER BY id;
-- must
SELECT tenant, id FROM orders WHERE tenant = length('abc') AND id > 0 ORDER BY id;
-- must
SELECT tenant, id FROM orders WHERE tenant = COALESCE(NULL, 9) ORDER BY id;
-- must
SELECT tenant, id FROM orders WHERE tenant < 5 * 2 AND tenant >= 7 + 1 ORDER BY 1, 2;
SELECT tenant, id FROM orders WHERE tenant = 1 / 0;
SELECT count(*), min(now()) = max(now()) FROM orders WHERE tenant >= 1 + 0;
BEGIN;
-- must
UPDATE orders SET note = 'folded' WHERE tenant = 4 - 1;
-- must
DELETE FROM lines WHERE tenant = '9'::text::int AND line = 1;
-- must
SELECT tenant, id FROM orders WHERE note = 'folded' ORDER BY 1, 2;
-- must
SELECT tenant, order_id FROM lines ORDER BY 1, 2, line;
ROLLBACK;
BEGIN;
-- must
INSERT INTO drafts (tenant, id, what) VALUES (3.6, 900, 'rounded'), (9, 901, 'not'), ('4', 902, 'text') RETURNING tenant, id;
-- must
INSERT INTO drafts (tenant, id) VALUES (2.5 * 2, 903);
-- must
SELECT tenant, id FROM drafts WHERE tenant IN (4, 5) AND id >= 900 ORDER BY id;
ROLLBACK;
INSERT INTO drafts (tenant, id) VALUES (99999999999, 1);
INSERT INTO drafts (tenant, id) VALUES ('three', 1);

-- Strings that are not what they look like.
-- must
SELECT item, place FROM stock WHERE item = U&'!006Eut' UESCAPE '!' ORDER BY place;
-- must
SELECT item, place FROM stock WHERE item IN ('cog', U&'\0067ear', U&'*006eut' UESCAPE '*') ORDER BY 1, 2;
BEGIN;
-- must
INSERT INTO stock (item, place) VALUES (U&'!0061pple' UESCAPE '!', 1), (E'\x70ear', 2), ($$plum$$, 3), ('fi'
  'g', 4);
-- must
SELECT item, place FROM stock WHERE item IN ('apple', 'pear', 'plum', 'fig') ORDER BY place;
-- must
SELECT place FROM stock WHERE item = 'apple';
-- must
SELECT place FROM stock WHERE item = 'fig';
ROLLBACK;
SET standard_conforming_strings = off;
SET escape_string_warning = off;
-- must
SELECT item, place FROM stock WHERE item = E'n\x75t' ORDER BY place;
-- must
SELECT item, place FROM stock WHERE item = 'nut' ORDER BY place;
SELECT item, place FROM stock WHERE item = 'n\x75t' ORDER BY place;
SELECT count(*) FROM stock WHERE item IN ('nut', 'a\');--');
RESET standard_conforming_strings;
SET client_encoding = 'LATIN1';
-- must
SELECT name FROM customers WHERE tenant = 3 AND id = 1;
SELECT count(*) FROM stock WHERE item = 'é';
SET client_encoding = 'UTF8';

-- Inheritance, and keys that would be something else than what is written.
BEGIN;
SET TRANSACTION SNAPSHOT '00000003-0000001B-1';
ROLLBACK;
