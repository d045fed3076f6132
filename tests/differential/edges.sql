-- What a sceptic would try: values at the ends of their types, order and collations, frames, sets, ties, cursors, errors
-- in the midst of transactions, constraints that wait for COMMIT, COPY as files have it.

-- Sums and averages at the edges of their types.
-- must
SELECT sum(small), sum(id), avg(small), max(small), min(small) FROM kinds;
-- must
SELECT sum(big) FROM kinds;
-- must
SELECT sum(big), avg(big) FROM kinds WHERE big > 0;
-- must
SELECT sum(n) FROM kinds;
-- must
SELECT sum(n), avg(n), max(n), min(n) FROM kinds WHERE n <> 'NaN' AND n < 'Infinity';
-- must
SELECT sum(n), max(n), min(n) FROM kinds WHERE n <> 'NaN';
-- must
SELECT sum(n) FROM kinds WHERE tenant = 9 OR tenant = 0;
-- must
SELECT sum(p), avg(p), sum(p) FILTER (WHERE id = 2) FROM kinds;
-- must
SELECT max(f), min(f), max(r), min(r) FROM kinds;
-- must
SELECT max(f), min(f) FROM kinds WHERE f <> 'NaN';
-- must
SELECT sum(span), avg(span), max(span), min(span) FROM kinds;
-- must
SELECT max(at), min(at), max(fixed), min(fixed), max(short), min(short), max(word), min(word), max(raw), min(raw) FROM kinds;
-- must
SELECT max(feels), min(feels), count(DISTINCT feels) FROM kinds;
-- must
SELECT max(nums), min(nums), count(DISTINCT nums) FROM kinds;
-- must
SELECT bool_and(flag), bool_or(flag), every(flag IS NOT NULL) FROM kinds;
-- must
SELECT bool_and(flag) FROM kinds WHERE flag IS NULL;
-- must
SELECT count(*), sum(id), avg(id), min(id), bool_and(flag) FROM kinds WHERE false;
-- must
SELECT sum(id), count(*) FROM kinds WHERE id > 100 GROUP BY tenant;
-- must
SELECT sum(big::numeric), sum(big * 1.0) FROM kinds;
SELECT sum(big * 2) FROM kinds WHERE tenant = 6;
SELECT sum(id::smallint), sum(2147483647), sum(2147483647::int) FROM kinds;
SELECT (sum(id) * 1000000000000000000)::bigint FROM kinds;
-- must
SELECT sum(1e-20::numeric), sum(100::numeric(5,2)), sum(n * 0) FROM kinds WHERE n < 'Infinity';
-- must
SELECT stddev_pop(id), var_samp(p), corr(id, tenant)::numeric(10,6), regr_slope(id, tenant)::numeric(10,6) FROM kinds;
-- must
SELECT avg(flag::int), sum(flag::int) FROM kinds;
-- must
SELECT bit_and(id), bit_or(id), bit_xor(id) FROM kinds;
-- must
SELECT count(n), count(DISTINCT n), count(DISTINCT n::text) FROM kinds;
-- must
SELECT trim_scale(n), count(*) FROM kinds GROUP BY n ORDER BY n;
-- must
SELECT trim_scale(n + 0), count(*), sum(id) FROM kinds GROUP BY n + 0 ORDER BY 1;
-- must
SELECT p, count(*) FROM kinds GROUP BY p ORDER BY p DESC NULLS LAST;
-- must
SELECT f, count(*) FROM kinds GROUP BY f ORDER BY f;
-- must
SELECT span, count(*) FROM kinds GROUP BY span ORDER BY span;
-- must
SELECT fixed, count(*) FROM kinds GROUP BY fixed ORDER BY fixed;
-- must
SELECT short, count(*) FROM kinds GROUP BY short ORDER BY short;
-- must
SELECT feels, count(*), avg(p) FROM kinds GROUP BY feels ORDER BY feels;
-- must
SELECT feels, count(*) FROM kinds GROUP BY feels HAVING feels > 'sad' ORDER BY feels DESC;
-- must
SELECT nums, count(*) FROM kinds GROUP BY nums ORDER BY nums;
-- must
SELECT bytes, count(*) FROM kinds GROUP BY bytes ORDER BY bytes;
-- must
SELECT flag, max(word), min(raw) FROM kinds GROUP BY flag ORDER BY flag;
-- must
SELECT raw COLLATE "C" AS c, count(*) FROM kinds GROUP BY raw COLLATE "C" ORDER BY c;
-- must
SELECT word, count(*) FROM kinds GROUP BY word ORDER BY word;
-- must
SELECT max(raw) < min(word COLLATE "C"), max(word) FROM kinds;
SELECT max(raw) < max(word) FROM kinds;
-- must
SELECT raw || '', count(*) FROM kinds GROUP BY raw || '' ORDER BY raw || '';
-- must
SELECT short::varchar(2), p::numeric(6,1), count(*) FROM kinds WHERE p < 1000 GROUP BY 1, 2 ORDER BY 1, 2;
-- must
SELECT repeat('x', 40000) || id AS wide, count(*), max(short) FROM kinds GROUP BY 1 ORDER BY 1;
-- must
SELECT short || repeat('y', 90000) AS wide, sum(p), max(f), min(at), count(DISTINCT feels) FROM kinds GROUP BY 1 ORDER BY 1;
-- must
SELECT feels, repeat('z', 200000) AS wide, count(*), sum(f) FILTER (WHERE id = 2) FROM kinds GROUP BY 1, 2 ORDER BY 1;
-- must
SELECT word, repeat('w', 90000) FROM kinds ORDER BY word, tenant, id LIMIT 7;
BEGIN;
UPDATE kinds SET short = 'txn' WHERE tenant IN (0, 8);
-- must
SELECT short, count(*), max(f) FROM kinds GROUP BY short ORDER BY short;
-- must
SELECT short, repeat('y', 90000) AS wide, sum(p) FROM kinds GROUP BY 1, 2 ORDER BY 1;
-- must
SELECT short, count(*) FROM kinds GROUP BY short ORDER BY short;
ROLLBACK;
-- must
BEGIN READ ONLY;
-- must
SELECT short, repeat('y', 90000) AS wide, sum(p) FROM kinds GROUP BY 1, 2 ORDER BY 1;
-- must
SELECT feels, count(*) FROM kinds GROUP BY feels ORDER BY feels;
-- must
COMMIT;
SET extra_float_digits = -5;
-- must
SELECT f, count(*) FROM kinds WHERE f < 5 GROUP BY f ORDER BY f;
-- must
SELECT max(f) = 3.3333333333333335, sum(f) FILTER (WHERE id = 2 OR tenant = 8) > 3.33333333 FROM kinds WHERE f < 5;
-- must
SELECT f = 3.3333333333333335 AS same, repeat('v', 90000) AS wide, max(f) = 3.3333333333333335 FROM kinds WHERE f < 5 GROUP BY f, 2 ORDER BY f;
-- must
SELECT a.f = b.f, a.tenant FROM kinds a JOIN kinds b ON a.f = b.f AND a.id <> b.tenant WHERE a.f < 5 ORDER BY 2;
-- must
INSERT INTO kinds (tenant, id, f, r) SELECT tenant + 1, 70, f, r FROM kinds WHERE tenant = 8;
RESET extra_float_digits;
-- must
SELECT f, r FROM kinds WHERE id = 70;
DELETE FROM kinds WHERE id = 70;
SET datestyle = 'SQL, DMY';
SET timezone = 'America/New_York';
-- must
SELECT at, count(*) FROM kinds GROUP BY at ORDER BY at;
-- must
SELECT at::date, count(*), max(at) FROM kinds GROUP BY 1 ORDER BY 1;
-- must
SELECT max(at) - interval '1 day' FROM kinds WHERE at < '01/01/2030';
-- must
INSERT INTO kinds (tenant, id, at, span) SELECT tenant + 1, 71, at, span FROM kinds WHERE tenant IN (0, 6);
RESET timezone;
RESET datestyle;
-- must
SELECT tenant, at, span FROM kinds WHERE id = 71 ORDER BY 1;
DELETE FROM kinds WHERE id = 71;
SET intervalstyle = 'sql_standard';
-- must
SELECT span, count(*) FROM kinds GROUP BY span ORDER BY span;
-- must
SELECT sum(span), max(span) FROM kinds;
-- must
INSERT INTO kinds (tenant, id, span) SELECT tenant + 1, 72, span - '2 hours' FROM kinds WHERE tenant IN (0, 6);
RESET intervalstyle;
-- must
SELECT tenant, span FROM kinds WHERE id = 72 ORDER BY 1, 2;
DELETE FROM kinds WHERE id = 72;
SET bytea_output = 'escape';
-- must
SELECT bytes, count(*) FROM kinds GROUP BY bytes ORDER BY bytes;
RESET bytea_output;

-- Order.
-- must
SELECT tenant, id, word FROM kinds ORDER BY word, tenant, id;
-- must
SELECT tenant, id, word FROM kinds ORDER BY word DESC NULLS LAST, tenant, id LIMIT 4 OFFSET 1;
-- must
SELECT tenant, id, raw FROM kinds ORDER BY raw DESC, tenant, id;
-- must
SELECT tenant, id, raw FROM kinds ORDER BY raw COLLATE "und-x-icu" NULLS FIRST, tenant, id;
-- must
SELECT tenant, id, short FROM kinds ORDER BY short NULLS FIRST, tenant, id;
-- must
SELECT tenant, id, fixed FROM kinds ORDER BY fixed, tenant, id;
-- must
SELECT tenant, id, feels FROM kinds ORDER BY feels DESC, tenant, id;
-- must
SELECT tenant, id, f FROM kinds ORDER BY f DESC NULLS FIRST, tenant, id;
-- must
SELECT tenant, id, r FROM kinds ORDER BY r, tenant, id;
-- must
SELECT tenant, id, n FROM kinds ORDER BY n, tenant, id;
-- must
SELECT tenant, id, span FROM kinds ORDER BY span NULLS FIRST, tenant, id;
-- must
SELECT tenant, id, at FROM kinds ORDER BY at DESC, tenant DESC, id DESC;
-- must
SELECT tenant, id, bytes FROM kinds ORDER BY bytes USING >, tenant, id;
-- must
SELECT tenant, id, flag FROM kinds ORDER BY flag NULLS FIRST, tenant DESC, id;
-- must
SELECT tenant, id FROM kinds ORDER BY nums, tenant, id;
-- must
SELECT tenant, id, big FROM kinds ORDER BY -big::numeric, tenant, id;
-- must
SELECT id FROM kinds ORDER BY id FETCH FIRST 1 ROW WITH TIES;
-- must
SELECT id FROM kinds ORDER BY id OFFSET 1 FETCH NEXT 2 ROWS WITH TIES;
-- must
SELECT tenant, id FROM kinds ORDER BY tenant, id OFFSET 0 LIMIT NULL;
SELECT tenant, id FROM kinds ORDER BY tenant, id LIMIT -1;
SELECT tenant, id FROM kinds ORDER BY tenant, id OFFSET -1;
-- must
SELECT tenant, id FROM kinds ORDER BY tenant, id LIMIT 2 + 1 OFFSET 1 + 1;
-- must
SELECT tenant, id FROM kinds ORDER BY tenant, id LIMIT (SELECT 2);
-- must
SELECT tenant, id FROM kinds ORDER BY tenant, id OFFSET 100;
-- must
SELECT DISTINCT id FROM kinds ORDER BY id DESC LIMIT 1;
-- must
SELECT DISTINCT trim_scale(n) FROM kinds ORDER BY 1;
-- must
SELECT DISTINCT f, flag FROM kinds ORDER BY f, flag;
-- must
SELECT DISTINCT fixed FROM kinds ORDER BY fixed;
-- must
SELECT DISTINCT feels FROM kinds ORDER BY feels;
-- must
SELECT DISTINCT ON (id) id, tenant, word FROM kinds ORDER BY id, word DESC NULLS LAST, tenant;
-- must
SELECT DISTINCT ON (flag) flag, tenant, id FROM kinds ORDER BY flag NULLS FIRST, tenant DESC, id;
SELECT DISTINCT id FROM kinds ORDER BY tenant;
SELECT id FROM kinds ORDER BY 2;
SELECT id AS x, tenant AS x FROM kinds ORDER BY x;

-- Windows.
-- must
SELECT tenant, id, sum(id) OVER (ORDER BY tenant, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM kinds ORDER BY 1, 2;
-- must
SELECT tenant, id, count(*) OVER (ORDER BY tenant RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM kinds ORDER BY 1, 2;
-- must
SELECT tenant, id, array_agg(tenant) OVER (ORDER BY id GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) IS NULL FROM kinds ORDER BY 1, 2;
-- must
SELECT tenant, id, lag(p, 1, -1::numeric) OVER w, lead(id) OVER w, first_value(tenant) OVER w, last_value(id) OVER w, nth_value(tenant, 2) OVER w, ntile(3) OVER w, percent_rank() OVER w, cume_dist() OVER w FROM kinds WINDOW w AS (ORDER BY tenant, id) ORDER BY 1, 2;
-- must
SELECT tenant, id, sum(id) OVER (PARTITION BY tenant ORDER BY id), dense_rank() OVER (PARTITION BY tenant ORDER BY word) FROM kinds ORDER BY 1, 2;
-- must
SELECT id, sum(count(*)) OVER (ORDER BY id), rank() OVER (ORDER BY sum(tenant) DESC) FROM kinds GROUP BY id ORDER BY id;
-- must
SELECT tenant, sum(id) FILTER (WHERE flag) OVER (ORDER BY tenant, id) FROM kinds ORDER BY tenant, id;
-- must
SELECT row_number() OVER (ORDER BY tenant, id), tenant FROM kinds ORDER BY 1 DESC LIMIT 3;

-- Aggregates that need all rows, sets of groups, sets of rows.
-- must
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id), percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY p), mode() WITHIN GROUP (ORDER BY flag), rank(1.5) WITHIN GROUP (ORDER BY p) FROM kinds;
-- must
SELECT string_agg(short, '|' ORDER BY tenant, id), array_agg(id ORDER BY tenant DESC, id), json_object_agg(tenant || '.' || id, p ORDER BY tenant, id), xmlagg(xmlelement(name x, id) ORDER BY tenant, id)::text FROM kinds;
-- must
SELECT string_agg(DISTINCT feels::text, ',' ORDER BY feels::text DESC), array_agg(DISTINCT flag ORDER BY flag NULLS FIRST) FROM kinds;
-- must
SELECT flag, feels, count(*), grouping(flag, feels) FROM kinds GROUP BY GROUPING SETS ((flag, feels), (flag), ()) ORDER BY 4, 1 NULLS FIRST, 2 NULLS FIRST;
-- must
SELECT flag, sum(p) FROM kinds GROUP BY ROLLUP (flag) HAVING count(*) > 1 ORDER BY grouping(flag), 1;
-- must
SELECT count(*) FROM kinds GROUP BY () HAVING false;
-- must
SELECT count(*) FROM kinds WHERE false HAVING count(*) = 0;
-- must
SELECT 1 FROM kinds HAVING count(*) > 2;
-- must
SELECT tenant FROM kinds HAVING count(*) > 2;
-- must
SELECT feels FROM kinds UNION SELECT 'ok' ORDER BY 1;
-- must
SELECT n + 0.00000 FROM kinds UNION ALL SELECT 1.00000 ORDER BY 1 LIMIT 5;
-- must
SELECT id FROM kinds INTERSECT ALL SELECT id FROM parents ORDER BY 1;
-- must
SELECT tenant FROM kinds EXCEPT ALL SELECT tenant FROM parents ORDER BY 1;
-- must
(SELECT tenant, id FROM kinds ORDER BY tenant, id LIMIT 2) UNION ALL (SELECT tenant, id FROM kinds ORDER BY tenant DESC, id DESC LIMIT 2) ORDER BY 1, 2;
-- must
SELECT tenant, id FROM kinds UNION SELECT tenant, id FROM parents UNION ALL SELECT 0, 0 ORDER BY 1, 2 OFFSET 3 LIMIT 5;
-- must
SELECT count(*) FROM (SELECT tenant FROM kinds ORDER BY tenant LIMIT 3) x JOIN parents p USING (tenant);
-- must
SELECT * FROM (SELECT tenant, id FROM kinds ORDER BY tenant DESC, id OFFSET 2 LIMIT 3) x ORDER BY 1, 2;
-- must
SELECT tenant, (SELECT p.rank FROM parents p WHERE p.tenant = k.tenant ORDER BY p.rank DESC LIMIT 1) FROM kinds k ORDER BY tenant, id;
-- must
SELECT tenant, id FROM kinds k WHERE id = (SELECT max(id) FROM kinds i WHERE i.tenant = k.tenant) AND tenant > ALL (SELECT rank FROM parents) ORDER BY 1;
-- must
SELECT tenant, id FROM kinds WHERE (tenant, id) NOT IN (SELECT tenant, id FROM parents) ORDER BY 1, 2;
-- must
SELECT tenant, id FROM kinds WHERE p NOT IN (SELECT p FROM kinds WHERE tenant = 2) ORDER BY 1, 2;
SELECT (SELECT tenant FROM kinds) FROM parents;
SELECT sum(1 / (tenant - 4)) FROM kinds;
SELECT tenant FROM kinds WHERE 1 / (tenant - 9) > 5;
SELECT tenant::text::int, ('x' || id)::int FROM kinds ORDER BY 1;

-- Writes and what they return.
-- must
-- ordered
INSERT INTO parents VALUES (9, 30, 30), (0, 31, 31), (5, 32, 32), (0, 33, 33), (9, 34, 34) RETURNING tenant, id, rank * 2 AS double;
-- must
-- ordered
INSERT INTO parents VALUES (8, 40, 40), (0, 31, 99), (5, 41, 41), (9, 30, 99) ON CONFLICT (tenant, id) DO NOTHING RETURNING tenant, id;
-- must
-- ordered
INSERT INTO parents AS p VALUES (9, 30, 1030), (3, 42, 42), (0, 31, 1031) ON CONFLICT (tenant, id) DO UPDATE SET rank = excluded.rank + p.rank WHERE p.tenant > 0 RETURNING p.tenant, p.id, p.rank;
-- must
INSERT INTO parents VALUES (1, 50, 50), (9, 50, 50), (1, 50, 51) ON CONFLICT (tenant, id) DO UPDATE SET rank = 0;
-- must
SELECT count(*) FROM parents WHERE id = 50;
-- must
INSERT INTO parents VALUES (1, 60, 60), (9, 60, 60) ON CONFLICT ON CONSTRAINT parents_pkey DO NOTHING;
INSERT INTO parents VALUES (1, 61, 60), (9, 61, 60) ON CONFLICT (nope) DO NOTHING;
INSERT INTO parents VALUES (1, 62, 1), (9, 62, NULL);
-- must
SELECT count(*) FROM parents WHERE id > 60;
-- must
UPDATE parents SET rank = rank + 100 WHERE id >= 30 RETURNING tenant, id, rank;
-- must
UPDATE parents p SET rank = p.rank + k.id FROM kinds k WHERE k.tenant = p.tenant AND k.id = 2 RETURNING p.tenant, p.id, p.rank, k.word;
-- must
DELETE FROM parents p USING kinds k, countries c WHERE k.tenant = p.tenant AND c.code = 'de' AND p.id >= 30 AND k.id = 1 RETURNING p.tenant, p.id, c.name;
-- must
DELETE FROM parents WHERE id >= 30;
-- must
UPDATE parents SET (rank, id) = (SELECT 7, id + 0) WHERE tenant IN (0, 9) AND id = 2;
-- must
UPDATE kinds SET small = small + 1 WHERE tenant IN (0, 9);
-- must
SELECT tenant, id, small FROM kinds ORDER BY 1, 2;
-- must
UPDATE parents SET rank = DEFAULT WHERE tenant IN (0, 9);
-- must
WITH moved AS (SELECT tenant, id FROM parents WHERE id = 1) UPDATE children c SET parent = 1 FROM moved m WHERE m.tenant = c.tenant RETURNING c.tenant, c.id;

-- Constraints that are looked at when all has been done.
BEGIN;
-- must
INSERT INTO children VALUES (0, 20, 200), (9, 20, 200);
-- must
INSERT INTO parents VALUES (0, 200, 200), (9, 200, 200);
-- must
COMMIT;
-- must
SELECT count(*) FROM children WHERE id = 20;
BEGIN;
-- must
INSERT INTO children VALUES (0, 21, 210), (5, 21, 210), (9, 21, 210);
-- must
INSERT INTO parents VALUES (0, 210, 210), (5, 210, 210);
-- must
COMMIT;
-- must
SELECT count(*) FROM children WHERE id = 21;
-- must
INSERT INTO children VALUES (0, 22, 220), (9, 22, 1);
BEGIN;
-- must
INSERT INTO children VALUES (0, 23, 230), (9, 23, 230);
-- must
SAVEPOINT a;
-- must
SET CONSTRAINTS ALL IMMEDIATE;
-- must
ROLLBACK TO a;
-- must
INSERT INTO parents VALUES (0, 230, 230), (9, 230, 230);
-- must
SET CONSTRAINTS ALL IMMEDIATE;
-- must
INSERT INTO children VALUES (9, 24, 240);
-- must
ROLLBACK;
BEGIN;
-- must
UPDATE parents SET rank = 3 - rank WHERE tenant = 9 AND id < 3;
-- must
UPDATE parents SET rank = 5 WHERE id = 1 AND tenant IN (0, 5);
-- must
COMMIT;
BEGIN;
-- must
UPDATE parents SET rank = 1 WHERE tenant IN (0, 9) AND id < 3;
-- must
COMMIT;
-- must
SELECT * FROM parents ORDER BY tenant, id;

-- Savepoints and errors in the midst of transactions over several shards.
BEGIN;
-- must
INSERT INTO parents VALUES (0, 300, 300), (9, 300, 300);
-- must
SAVEPOINT a;
-- must
INSERT INTO parents VALUES (5, 301, 301), (9, 300, 1);
-- must
SELECT count(*) FROM parents;
-- must
ROLLBACK TO SAVEPOINT a;
-- must
SAVEPOINT b;
-- must
DELETE FROM parents WHERE id = 300;
-- must
RELEASE SAVEPOINT b;
-- must
SELECT count(*) FROM parents WHERE id = 300;
-- must
ROLLBACK TO a;
-- must
SELECT count(*) FROM parents WHERE id = 300;
ROLLBACK TO SAVEPOINT nosuch;
-- must
ROLLBACK TO a;
-- must
RELEASE a;
-- must
COMMIT AND CHAIN;
-- must
SELECT count(*) FROM parents WHERE id = 300;
-- must
SELECT 1 / (tenant - 9) FROM parents;
-- must
COMMIT;
-- must
DELETE FROM parents WHERE id = 300;
BEGIN;
-- must
DELETE FROM children;
-- must
SAVEPOINT a;
-- must
SAVEPOINT a;
-- must
INSERT INTO children VALUES (1, 1, NULL), (7, 1, NULL);
-- must
ROLLBACK TO a;
-- must
RELEASE a;
-- must
INSERT INTO children VALUES (2, 1, NULL), (8, 1, NULL);
-- must
ROLLBACK TO a;
-- must
SELECT count(*) FROM children;
-- must
ROLLBACK AND CHAIN;
-- must
SELECT count(*) FROM children;
-- must
ROLLBACK;
-- must
BEGIN ISOLATION LEVEL SERIALIZABLE;
-- must
SELECT count(*) FROM children;
-- must
INSERT INTO children VALUES (1, 70, NULL), (7, 70, NULL);
SHOW transaction_isolation;
-- must
COMMIT;
DELETE FROM children WHERE id = 70;

-- Cursors.
BEGIN;
-- must
DECLARE c SCROLL CURSOR FOR SELECT tenant, id, word FROM kinds ORDER BY word NULLS FIRST, tenant, id;
-- must
-- ordered
FETCH LAST FROM c;
-- must
-- ordered
FETCH BACKWARD 3 FROM c;
-- must
-- ordered
FETCH PRIOR FROM c;
-- must
-- ordered
FETCH RELATIVE -1 FROM c;
-- must
-- ordered
FETCH FIRST FROM c;
-- must
-- ordered
FETCH ABSOLUTE -2 FROM c;
-- must
MOVE BACKWARD ALL IN c;
-- must
-- ordered
FETCH FORWARD ALL FROM c;
-- must
DECLARE n NO SCROLL CURSOR FOR SELECT tenant, id FROM kinds ORDER BY tenant, id;
-- must
FETCH 2 FROM n;
-- must
FETCH BACKWARD 1 FROM n;
-- must
ROLLBACK;
BEGIN;
-- must
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT feels, count(*) FROM kinds GROUP BY feels ORDER BY feels;
-- must
UPDATE kinds SET feels = 'sad';
-- must
COMMIT;
-- must
-- ordered
FETCH ALL FROM h;
-- must
-- ordered
FETCH BACKWARD ALL FROM h;
-- must
CLOSE h;
-- must
CLOSE h;

-- COPY as files have it.
-- must
-- data tenant,id,rank\n1,500,5\n"8","501","6"\n
COPY parents FROM STDIN (FORMAT csv, HEADER match);
-- must
-- data tenant,ident,rank\n1,502,5\n
COPY parents FROM STDIN (FORMAT csv, HEADER match);
-- must
-- data id,tenant,rank\n502,1,7\n503,8,8\n
COPY parents (id, tenant, rank) FROM STDIN (FORMAT csv, HEADER);
-- must
-- data 1|600|'a|b'|NULL\n8|601|'it''s'|'NULL'\n9|602|''|'\n
COPY kinds (tenant, id, short, raw) FROM STDIN (FORMAT csv, DELIMITER '|', QUOTE '''', NULL 'NULL');
-- must
-- data 1|600|'a|b'|NULL\n8|601|'it''s'|'NULL'\n9|602|''|'x'\n
COPY kinds (tenant, id, short, raw) FROM STDIN (FORMAT csv, DELIMITER '|', QUOTE '''', NULL 'NULL');
-- must
SELECT tenant, id, short, raw FROM kinds WHERE id >= 600 ORDER BY 1;
-- must
-- data 1;610;a\n8;611;-\n9;612;\\x41\\x42\n
COPY kinds (tenant, id, short) FROM STDIN (DELIMITER ';', NULL '-');
-- must
SELECT tenant, id, short FROM kinds WHERE id >= 610 ORDER BY 1;
-- must
-- data 1\t620\tok\n9\t620\tok\nx\t620\tbad\n
COPY kinds (tenant, id, short) FROM STDIN;
-- must
-- data 1\t620\tok\n9\t620\tthis is too long\n
COPY kinds (tenant, id, short) FROM STDIN;
-- must
-- data 1\t620\n9\t620\t1\t2\n
COPY kinds (tenant, id, short) FROM STDIN;
-- must
-- data 1\t620\tok\n9\t1\tthere already\n
COPY kinds (tenant, id, short) FROM STDIN;
-- must
SELECT count(*) FROM kinds WHERE id = 620;
-- must
-- data 1\t620\tok\n\\.\n
COPY kinds (tenant, id, short) FROM STDIN;
-- must
SELECT tenant, short FROM kinds WHERE id = 620;
-- must
-- data 1,700,1\n8,701,2\n9,702,3\n
COPY parents FROM STDIN (FORMAT csv) WHERE tenant > 1;
-- must
SELECT tenant, id FROM parents WHERE id >= 500 ORDER BY 1, 2;
-- must
-- data 1,2023-05-05,old\n1,2024-05-05,new\n8,2024-06-01,\n
COPY logs (tenant, day, what) FROM STDIN (FORMAT csv);
-- must
-- data 1,2023-05-06,77\n8,2024-06-02,78\n
COPY logs (tenant, day, seq) FROM STDIN (FORMAT csv);
-- must
SELECT tenant, day, what, tableoid::regclass::text FROM logs ORDER BY 1, 2;
-- must
SELECT count(*) FROM logs_old;
-- must
COPY logs (tenant, day, what) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *);
-- must
COPY (SELECT tenant, id, short FROM kinds ORDER BY tenant, id) TO STDOUT (FORMAT csv, HEADER, NULL '~');
-- must
COPY (SELECT short, count(*), max(f) FROM kinds GROUP BY short ORDER BY short LIMIT 3) TO STDOUT;
-- must
COPY (SELECT DISTINCT feels FROM kinds) TO STDOUT;
-- must
COPY (SELECT k.id, p.rank FROM kinds k JOIN parents p ON p.rank = k.id WHERE k.id < 5) TO STDOUT (DELIMITER '|');
-- must
COPY (SELECT count(*), sum(id) FROM kinds) TO STDOUT;
-- must
COPY (WITH w AS (SELECT tenant, word FROM kinds WHERE id = 1) SELECT word FROM w ORDER BY word DESC LIMIT 2) TO STDOUT (FORMAT csv);
-- must
COPY (SELECT 1 / (tenant - 9) FROM kinds ORDER BY 1) TO STDOUT;
BEGIN READ ONLY;
-- must
COPY (SELECT feels, count(*) FROM kinds GROUP BY feels ORDER BY feels) TO STDOUT;
-- must
COMMIT;
BEGIN;
DELETE FROM kinds WHERE tenant = 9;
-- must
COPY (SELECT tenant, count(*) FROM kinds GROUP BY tenant ORDER BY tenant) TO STDOUT;
-- must
COPY (SELECT short FROM kinds ORDER BY short COLLATE "C", id) TO STDOUT;
ROLLBACK;
-- must
DELETE FROM logs;
-- must
DELETE FROM parents WHERE id >= 500;

-- Rows that are read on one shard and written on another keep every digit, blank and zone.
-- must
INSERT INTO kinds (tenant, id, fixed, short, word, raw, bytes, feels, nums, n, p, span) SELECT tenant + 1, 800 + id, fixed, short, word, raw, bytes, feels, nums, n, p, span FROM kinds WHERE id < 3;
-- must
SELECT tenant, id, fixed, short, word, raw, bytes, feels, nums, n, p, span FROM kinds WHERE id > 800 ORDER BY 1, 2;
SET datestyle = 'SQL, MDY';
SET timezone = 'Asia/Kolkata';
SET extra_float_digits = -10;
-- must
INSERT INTO kinds (tenant, id, at, f, r) SELECT tenant + 1, 900 + id, at, f, r FROM kinds WHERE id < 3;
-- must
SELECT at, count(*) FROM kinds GROUP BY at ORDER BY at;
-- must
SELECT a.tenant, a.feels, a.at, a.f = b.f AND a.r = b.r AS same FROM kinds a JOIN kinds b ON b.at = a.at AND b.id = a.id + 900 WHERE a.id < 3 AND b.tenant = a.tenant + 1 ORDER BY 1, 3;
RESET extra_float_digits;
RESET timezone;
RESET datestyle;
-- must
SELECT tenant, id, at, f, r FROM kinds WHERE id > 900 ORDER BY 1, 2;
DELETE FROM kinds WHERE id > 3;

-- Literals of every size.
-- must
SELECT sum(2147483647), sum(2147483648), sum(9223372036854775807), sum(1234567890), count(*) FROM kinds;
-- must
SELECT max(2147483647), min(2147483648), max(-1), sum(000000000001) FROM kinds;
-- must
SELECT 1234567890 AS x, tenant FROM kinds ORDER BY x, tenant, id;

-- An error behind rows that have come already.
-- must
COPY (SELECT tenant FROM kinds WHERE 1 / (tenant - 9) < 5 ORDER BY id) TO STDOUT;
-- must
SELECT s.item, k.tenant FROM kinds k JOIN stock s ON s.place = k.id WHERE 1 / (k.tenant - 9) < 100;
-- must
SELECT count(*) FROM kinds k, stock s WHERE s.place = k.id AND 1 / (k.tenant - 8) < 100;
-- must
SELECT k.tenant FROM kinds k JOIN parents p ON p.rank = k.id WHERE 1 / (p.tenant - 9) < 100;
-- must
CREATE TEMP TABLE broken AS SELECT tenant, 1 / (tenant - 9) FROM kinds;
-- must
INSERT INTO settings SELECT 'broken' || id || tenant, 1 / (tenant - 9) FROM kinds;
-- must
SELECT count(*) FROM settings;
BEGIN;
-- must
SELECT s.item, k.tenant FROM kinds k JOIN stock s ON s.place = k.id WHERE 1 / (k.tenant - 9) < 100;
-- must
SELECT 1;
ROLLBACK;
BEGIN;
-- must
DECLARE c CURSOR FOR SELECT tenant, 1 / (tenant - 9) FROM kinds;
-- must
COMMIT;

-- Rows as values, and what has no type of its own.
-- must
SELECT count(DISTINCT (tenant, id)), count(DISTINCT ROW(id, flag)) FROM kinds;
-- must
SELECT (id, short), word FROM kinds WHERE tenant < 3 ORDER BY word, id;
-- must
SELECT 'x', NULL, word FROM kinds ORDER BY word, tenant, id LIMIT 3;
-- must
SELECT word FROM kinds ORDER BY (word, id), tenant LIMIT 3;
-- must
LOCK TABLE kinds IN SHARE MODE;

-- Writes of which a part is read first: it is of another map, or not by the key.
-- must
UPDATE orders SET note = 'stocked' WHERE id IN (SELECT place FROM stock WHERE held > 500) RETURNING tenant, id, note;
-- must
UPDATE orders SET note = 'none' WHERE id NOT IN (SELECT place FROM stock) RETURNING tenant, id;
-- must
UPDATE orders SET note = 'null' WHERE id NOT IN (SELECT held FROM stock) RETURNING tenant, id;
-- must
UPDATE orders SET note = 'key' WHERE tenant IN (SELECT place + 2 FROM stock) RETURNING tenant, id;
-- must
UPDATE orders SET note = 'key' WHERE tenant IN (SELECT held FROM stock WHERE held > 5000) RETURNING tenant, id;
-- must
UPDATE orders SET amount = (SELECT sum(held) / 7 FROM stock), note = (SELECT max(item) FROM stock) WHERE state = 'open' RETURNING tenant, id, amount, note;
-- must
UPDATE orders SET (amount, note) = (SELECT avg(held), min(item) FROM stock WHERE place = 1) WHERE state = 'paid' RETURNING *;
-- must
UPDATE orders o SET amount = s.held, note = s.item FROM stock s WHERE s.place = 2 AND s.item = 'cog' AND o.state = 'gone' RETURNING o.tenant, o.id, o.amount, s.*;
-- must
UPDATE orders o SET note = k.word FROM kinds k WHERE k.id = o.id AND k.tenant = 9 AND o.tenant < 3 RETURNING o.tenant, o.id, o.note, k.f, k.n, k.span, k.at, k.feels, k.nums, k.bytes, k.fixed, k.p;
-- must
UPDATE kinds a SET f = b.f, n = b.n, p = b.p, span = b.span, at = b.at, feels = b.feels, nums = b.nums, fixed = b.fixed, short = b.short, word = b.word, bytes = b.bytes FROM kinds b WHERE b.tenant = 6 AND a.tenant = 2;
-- must
SELECT * FROM kinds ORDER BY tenant, id;
-- must
UPDATE orders o SET note = c.name FROM customers c JOIN stock s ON s.place = c.id WHERE c.tenant = o.tenant AND s.item = 'nut' AND o.customer = c.id RETURNING o.tenant, o.id, note;
-- must
UPDATE orders o SET note = q.top FROM (SELECT place, max(item) AS top FROM stock GROUP BY place) q WHERE q.place = o.id RETURNING o.tenant, o.id, note, q;
-- must
UPDATE orders o SET note = 'deep' FROM (SELECT place FROM stock WHERE item IN (SELECT item FROM lines) AND place NOT IN (SELECT value FROM settings)) q WHERE q.place = o.id RETURNING o.tenant, o.id;
-- must
UPDATE orders o SET amount = (SELECT count(*) FROM stock s WHERE s.place = o.id AND s.held > o.tenant) RETURNING tenant, id, amount;
-- must
UPDATE orders o SET note = (SELECT string_agg(item, ',' ORDER BY item) FROM stock s WHERE s.place = o.id) WHERE EXISTS (SELECT 1 FROM stock s WHERE s.place = o.id AND s.doc ? 'kg') RETURNING tenant, id, note;
-- must
UPDATE orders SET amount = amount + (SELECT max(amount) FROM orders) WHERE amount < (SELECT avg(amount) FROM orders) RETURNING tenant, id, amount;
-- must
UPDATE orders SET note = 'ranked' WHERE (tenant, id) IN (SELECT tenant, id FROM orders ORDER BY amount DESC NULLS LAST, tenant, id LIMIT 3) RETURNING tenant, id;
-- must
UPDATE orders SET note = 'all' WHERE amount >= ALL (SELECT held FROM stock WHERE held < 10) AND id = ANY (SELECT place FROM stock) RETURNING tenant, id;
-- must
UPDATE orders SET note = 'array' WHERE id = ANY (ARRAY(SELECT place FROM stock WHERE item LIKE 'c%')) RETURNING tenant, id;
-- must
UPDATE orders SET state = (SELECT name FROM settings WHERE value = 3) WHERE tenant > 6 RETURNING tenant, id, state;
-- must
UPDATE orders SET amount = s.value FROM settings s, countries c WHERE c.code = 'de' AND s.name = c.code || '' OR s.name = 'factor' AND orders.tenant = 4 RETURNING orders.tenant, s.name, c.name;
-- must
WITH top AS (SELECT tenant, max(amount) AS most FROM orders GROUP BY tenant), few AS (SELECT max(most) AS m FROM top) UPDATE orders o SET note = 'top' FROM few WHERE o.amount = few.m RETURNING o.tenant, o.id, few.m;
-- must
WITH s(item, n) AS MATERIALIZED (SELECT item, count(*) FROM stock GROUP BY item) DELETE FROM lines USING s WHERE s.item = lines.item AND s.n > 1 RETURNING lines.tenant, lines.item, s.n;
-- must
DELETE FROM lines WHERE item IN (SELECT item FROM stock WHERE held < 10) RETURNING tenant, order_id, line;
-- must
DELETE FROM lines USING orders o WHERE o.id = lines.order_id AND o.state = 'open' AND o.tenant = 9 RETURNING lines.tenant, o.tenant;
-- must
DELETE FROM stock WHERE item IN (SELECT note FROM orders) OR place > (SELECT count(*) FROM orders WHERE tenant > 100);
-- must
SELECT * FROM lines ORDER BY 1, 2, 3;
-- must
UPDATE orders SET note = 'odd' WHERE id IN (SELECT 1 FROM stock UNION ALL SELECT 2) RETURNING tenant, id;
UPDATE orders SET note = (SELECT item FROM stock);
-- must
UPDATE orders SET amount = (SELECT 1 / 0 FROM orders);
-- must
UPDATE orders SET nosuch = (SELECT max(held) FROM stock);
-- must
UPDATE orders SET amount = (SELECT nosuch FROM stock);
-- must
UPDATE orders SET amount = (SELECT item, place FROM stock LIMIT 1);
-- must
DELETE FROM orders WHERE note COLLATE "C" IN (SELECT raw FROM kinds) RETURNING tenant, id;
UPDATE kinds SET short = 'c' WHERE word IN (SELECT raw FROM kinds) RETURNING tenant, id;
-- must
UPDATE kinds SET short = 'd' WHERE fixed IN (SELECT fixed FROM kinds WHERE id = 2) RETURNING tenant, id, fixed;
-- must
UPDATE settings SET value = (SELECT count(*) FROM orders) WHERE name = 'limit' RETURNING *;
-- must
DELETE FROM settings s USING orders o WHERE o.state = s.name AND o.tenant = 9 RETURNING s.*;
-- must
UPDATE countries SET name = (SELECT max(name) FROM customers) WHERE code = 'jp' RETURNING *;
-- must
DELETE FROM countries WHERE code NOT IN (SELECT country FROM customers WHERE country IS NOT NULL) RETURNING code;
-- must
INSERT INTO countries VALUES ('zz', (SELECT min(name) FROM customers), (SELECT count(*) > 3 FROM orders)) RETURNING *;
-- must
INSERT INTO settings VALUES ('sum', (SELECT sum(id) FROM orders)), ('one', 1) RETURNING *;
-- must
INSERT INTO orders (tenant, id, customer, placed, amount) VALUES (1, 70, 1, '2024-01-01', (SELECT max(held) FROM stock)), (8, 70, (SELECT count(*) FROM stock), '2024-01-01', 1 + (SELECT min(held) FROM stock)) RETURNING *;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES ((SELECT max(tenant) FROM orders), (SELECT max(id) + 1 FROM orders), 1, '2024-01-01') RETURNING tenant, id;
-- must
INSERT INTO kinds (tenant, id, nums, feels, fixed, f) VALUES (1, 77, (SELECT nums FROM kinds WHERE tenant = 6), (SELECT feels FROM kinds WHERE tenant = 6), (SELECT fixed FROM kinds WHERE tenant = 3), (SELECT f FROM kinds WHERE tenant = 8)), (8, 77, (SELECT array_agg(f ORDER BY tenant, id) FROM kinds WHERE f BETWEEN 0 AND 5), 'ok', (SELECT fixed FROM kinds WHERE tenant = 2), 1) RETURNING *;
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (1, (SELECT place FROM stock), 1, '2024-01-01');
-- must
INSERT INTO stock (item, place) VALUES ((SELECT name FROM customers WHERE tenant = 3 AND id = 2), 1), ('new', (SELECT count(*) FROM orders)) RETURNING *;
-- must
WITH many AS (SELECT tenant, count(*) AS n FROM orders GROUP BY tenant) INSERT INTO drafts (tenant, id, what) SELECT 9 - tenant, n, 'w' FROM many WHERE n > 1 RETURNING *;
-- must
SELECT * FROM orders ORDER BY tenant, id;

-- A WITH that writes, over several shards, where nothing else could see it.
-- must
WITH d AS (DELETE FROM orders WHERE amount < 10 OR note = 'top' RETURNING *) SELECT count(*), max(amount), min(note) FROM d;
-- must
WITH d AS (DELETE FROM orders WHERE state = 'gone' RETURNING tenant, id, note) INSERT INTO drafts SELECT * FROM d RETURNING tenant, id, what;
-- must
WITH u AS (UPDATE orders SET note = 'moved' WHERE id = 2 RETURNING tenant, id, note) INSERT INTO stock (item, place, held) SELECT note || tenant, id, 5 FROM u RETURNING item, place;
-- must
WITH i AS (INSERT INTO customers (tenant, id, name) VALUES (0, 80, 'x'), (9, 80, 'y') RETURNING tenant, id), j AS (INSERT INTO orders (tenant, id, customer, placed) SELECT tenant, 81, id, '2024-01-01' FROM i RETURNING *) SELECT tenant, customer FROM j ORDER BY 1;
-- must
WITH i AS (INSERT INTO customers (tenant, id, name) VALUES (0, 82, 'x'), (9, 82, 'y')) SELECT 1 AS one;
-- must
WITH c AS (UPDATE countries SET eu = NOT eu RETURNING code, eu) SELECT * FROM c ORDER BY code;
-- must
WITH u AS (UPDATE kinds SET short = 'r' WHERE id = 2 RETURNING *) SELECT * FROM u ORDER BY tenant, id;
-- must
SELECT * FROM drafts ORDER BY tenant, id;
-- must
BEGIN ISOLATION LEVEL REPEATABLE READ;
-- must
UPDATE orders SET note = 'mine' WHERE tenant IN (0, 9);
-- must
UPDATE customers SET name = 'seen' WHERE id IN (SELECT customer FROM orders WHERE note = 'mine') RETURNING tenant, id;
-- must
WITH d AS (DELETE FROM orders WHERE note = 'mine' RETURNING tenant, id) SELECT count(*) FROM d;
-- must
SAVEPOINT s;
-- must
UPDATE customers SET since = (SELECT max(placed) FROM orders), name = (SELECT 1 / (count(*) - count(*)) FROM stock);
-- must
ROLLBACK TO s;
-- must
UPDATE customers SET since = (SELECT max(placed) FROM orders) RETURNING tenant, id, since;
-- must
COMMIT;
-- must
SELECT * FROM customers ORDER BY tenant, id;
-- must
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
-- must
UPDATE customers SET since = (SELECT max(placed) FROM orders);
-- must
ROLLBACK;

-- Rows that come together beside a transaction that may not write and has one snapshot.
-- must
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
-- must
SELECT o.id, l.item FROM orders o JOIN lines l ON l.line = o.id ORDER BY 1, 2;
-- must
SELECT s.name, count(*) FROM settings s JOIN orders o ON o.id = s.value GROUP BY s.name ORDER BY 1;
-- must
SAVEPOINT s;
-- must
RELEASE s;
-- must
SELECT count(*) FROM orders o WHERE o.amount > (SELECT avg(l.price) FROM lines l WHERE l.line = o.id);
-- must
SELECT count(*) / 0 FROM orders o JOIN lines l ON l.line = o.id;
-- must
SELECT 1;
-- must
ROLLBACK;
-- must
SELECT tenant FROM orders LIMIT -1;
-- must
SELECT tenant FROM orders ORDER BY tenant, id LIMIT 3 OFFSET -1;
-- must
SELECT nosuch FROM orders LIMIT -1;

-- What PostgreSQL has no assignment for is no key, though a cast would make it one.
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (true, 1, 1, '2024-01-01');
-- must
INSERT INTO orders (tenant, id, customer, placed) VALUES (8, 90, 1, '2024-01-01'), (false, 90, 1, '2024-01-01');
-- must
INSERT INTO drafts VALUES (B'1', 1, 'x');
-- must
INSERT INTO drafts VALUES (X'1F', 1, 'x');
-- must
INSERT INTO stock (item, place) VALUES (true, 90), (7.50, 90) RETURNING item;
-- must
DELETE FROM stock WHERE place = 90;
COPY drafts (nosuch) FROM STDIN;

-- One time for all shards, in views as well.
-- must
SELECT count(DISTINCT seen_at), count(DISTINCT today), count(*) > 10 FROM fresh;
-- must
SELECT age, count(*) > 10, max(seen_at) = min(seen_at), min(seen_at) = now(), max(today) = current_date FROM fresher GROUP BY age;
-- must
WITH f AS (SELECT * FROM fresher) SELECT count(DISTINCT a.seen_at), count(*) > 10 FROM f a JOIN f b ON a.seen_at = b.seen_at;
-- must
SELECT pg_typeof(seen_at), pg_typeof(today), today = current_date FROM fresh WHERE tenant IN (0, 9) GROUP BY 1, 2, 3;

-- A query in parentheses is the same query.
-- must
-- ordered
(SELECT tenant, id FROM orders ORDER BY amount DESC NULLS LAST, tenant, id LIMIT 3);
-- must
-- ordered
((SELECT tenant FROM orders ORDER BY tenant LIMIT 3));
-- must
-- ordered
(SELECT tenant FROM orders ORDER BY tenant, id OFFSET 4);
-- must
-- ordered
(SELECT tenant, id FROM orders ORDER BY state, tenant, id LIMIT 3);
-- must
-- ordered
(SELECT item, place FROM stock ORDER BY item, place FETCH FIRST ROW ONLY);
-- must
-- ordered
WITH x AS (SELECT 1) (SELECT tenant FROM orders ORDER BY tenant LIMIT 3);
-- must
-- ordered
(WITH x AS (SELECT * FROM orders) SELECT tenant, id FROM x ORDER BY tenant DESC, id LIMIT 2);
-- must
(SELECT tenant FROM orders ORDER BY tenant LIMIT 3) ORDER BY 1 DESC;
-- must
(SELECT tenant FROM orders ORDER BY tenant, id OFFSET 3) LIMIT 0;
-- must
(SELECT tenant FROM orders ORDER BY tenant, id LIMIT 3) OFFSET 1;
-- must
(SELECT tenant FROM orders ORDER BY tenant LIMIT 3) UNION ALL (SELECT tenant FROM customers ORDER BY tenant LIMIT 2);
-- must
(SELECT count(*), max(amount) FROM orders);
-- must
((SELECT DISTINCT state FROM orders));
-- must
(SELECT state, count(*), avg(amount) FROM orders GROUP BY state);
-- must
COPY (SELECT tenant FROM orders ORDER BY tenant LIMIT 3) TO STDOUT;
-- must
COPY ((SELECT tenant FROM orders ORDER BY tenant LIMIT 3)) TO STDOUT;
-- must
INSERT INTO drafts (SELECT tenant, 950 + id, state FROM orders ORDER BY tenant, id LIMIT 2);
-- must
SELECT * FROM drafts WHERE id > 950 ORDER BY 1, 2;
DELETE FROM drafts;

-- Types that users have made: they have another number on every shard.
PREPARE moods (mood) AS SELECT feels, count(*) FROM kinds WHERE feels >= $1 GROUP BY feels ORDER BY feels;
EXECUTE moods ('ok');
EXECUTE moods ('sad');
DEALLOCATE moods;
PREPARE moods (mood, int) AS SELECT k.id, s.item, greatest(k.feels, $1) FROM kinds k JOIN stock s ON s.place = k.id + $2 WHERE $1 = ANY (ARRAY[k.feels, 'ok']) ORDER BY 1, 2, 3;
EXECUTE moods ('ok', 0);
EXECUTE moods (NULL, 1);
DEALLOCATE moods;

-- A row as one value.
-- must
SELECT o.*::text FROM orders o WHERE id = 1 ORDER BY 1;

-- What a failed transaction is asked.
PREPARE three AS SELECT 3;
BEGIN;
SELECT count(*) FROM orders;
SELECT 1 / (tenant - 9) FROM orders WHERE tenant = 9;
FETCH NEXT FROM nobody;
EXECUTE three;
SET extra_float_digits = 1;
SHOW extra_float_digits;
CLOSE nobody;
ROLLBACK;
DEALLOCATE three;

-- Parentheses around the first of a union, behind JOIN and MATERIALIZED.
-- must
SELECT o.id, x.id FROM orders o CROSS JOIN ((SELECT id FROM kinds ORDER BY 1 LIMIT 2) UNION ALL SELECT 0) AS x ORDER BY 1, 2;
-- must
WITH x AS MATERIALIZED ((SELECT id FROM kinds ORDER BY 1 LIMIT 2) UNION ALL SELECT 0) SELECT count(*), sum(id) FROM x;

-- BEGIN within a block: a warning, and its modes are set.
BEGIN ISOLATION LEVEL REPEATABLE READ;
-- must
BEGIN READ ONLY;
-- must
SHOW transaction_read_only;
UPDATE orders SET note = 'q' WHERE tenant = 3 AND id = 1;
ROLLBACK;
BEGIN;
-- must
BEGIN ISOLATION LEVEL SERIALIZABLE;
-- must
SHOW transaction_isolation;
-- must
SELECT count(*) FROM orders;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1;
ROLLBACK;
BEGIN;
SAVEPOINT a;
BEGIN ISOLATION LEVEL SERIALIZABLE;
ROLLBACK TO a;
-- must
SHOW transaction_isolation;
COMMIT;
BEGIN;
SELECT id FROM orders WHERE tenant = 1;
-- must
START TRANSACTION READ ONLY, DEFERRABLE;
-- must
SELECT id, current_setting('transaction_read_only') FROM orders WHERE tenant = 9 ORDER BY 1;
BEGIN;
UPDATE orders SET note = 'q' WHERE tenant = 9;
COMMIT;

-- AND CHAIN: the modes as they were, and nothing else of it.
BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM orders WHERE tenant = 1;
-- must
COMMIT AND CHAIN;
-- must
SHOW transaction_isolation;
SELECT 1 / 0;
ROLLBACK AND CHAIN;
-- must
SHOW transaction_isolation;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT 1 / 0;
ROLLBACK AND CHAIN;
-- must
SHOW transaction_isolation;
ROLLBACK;
BEGIN;
SET LOCAL work_mem = '7MB';
SELECT id FROM orders WHERE tenant = 1;
SAVEPOINT a;
COMMIT AND CHAIN;
-- must
SELECT id, current_setting('work_mem') FROM orders WHERE tenant IN (1, 9) ORDER BY tenant, 1;
ROLLBACK TO a;
ROLLBACK;
BEGIN;
SET work_mem = '7MB';
SELECT id FROM orders WHERE tenant = 1;
COMMIT AND CHAIN;
-- must
SELECT id, current_setting('work_mem') FROM orders WHERE tenant IN (1, 9) ORDER BY tenant, 1;
COMMIT;
RESET work_mem;
BEGIN;
SET default_transaction_isolation = 'serializable';
COMMIT AND CHAIN;
-- must
SHOW transaction_isolation;
COMMIT;
RESET default_transaction_isolation;

-- What has failed behind a savepoint is not done again on the next shard.
BEGIN;
UPDATE orders SET note = note WHERE tenant = 1;
SAVEPOINT a;
SET no_such_setting = 1;
ROLLBACK TO a;
-- must
UPDATE orders SET note = note WHERE tenant = 9;
SAVEPOINT b;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
ROLLBACK TO a;
-- must
UPDATE orders SET note = note WHERE tenant = 5;
-- must
COMMIT;

-- array_nulls = off: NULL in an array's text is a word, not so where rows go from shard to shard.
SET array_nulls = off;
-- must
SELECT tenant, id, nums, feels FROM kinds WHERE nums IS NOT NULL ORDER BY nums, feels, tenant, id;
-- must
SELECT feels, count(*), max(nums), min(feels) FROM kinds GROUP BY feels ORDER BY feels;
-- must
SELECT max(feels), avg(id) FROM kinds WHERE feels IS NULL;
-- must
SELECT CASE WHEN id = 1 THEN NULL ELSE word END AS w, avg(id) FROM kinds GROUP BY 1 ORDER BY 1;
-- must
SELECT nullif(int4range(id, 4), '[1,4)') AS r, avg(id) FROM kinds GROUP BY 1 ORDER BY 1;
-- must
SELECT k.nums, k.feels, s.tags, '{NULL}'::text[] FROM kinds k JOIN stock s ON s.place = k.id ORDER BY 1, 2, 3;
BEGIN ISOLATION LEVEL REPEATABLE READ;
-- must
UPDATE drafts SET what = s.feels::text FROM (SELECT id, max(feels) AS feels FROM kinds GROUP BY id) s WHERE s.id = drafts.id;
ROLLBACK;
BEGIN;
INSERT INTO kinds (tenant, id, nums, feels) SELECT tenant + 1, 80 + id, nums, feels FROM kinds WHERE tenant IN (0, 4, 6, 9);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE kinds k SET nums = s.a FROM (SELECT place, array_agg(held ORDER BY held)::int[] AS a FROM stock GROUP BY place) s WHERE s.place = k.id;
ROLLBACK;
RESET array_nulls;

-- Columns of the result that are called as others of the tables.
-- must
SELECT x.c2 AS c0, x.c1 AS c1, (-1.00) AS c2 FROM (SELECT since AS c2, tenant AS c1, id AS c0 FROM customers) x ORDER BY c0, c2, c1;
-- must
SELECT since AS name, id AS since FROM customers ORDER BY name, since, customers.name;
-- must
SELECT DISTINCT since AS name, id AS since FROM customers ORDER BY name, since;
-- must
SELECT lower(name) AS since, id AS lower FROM customers ORDER BY since, lower LIMIT 5;
-- must
SELECT id AS name FROM customers ORDER BY lower(name), name, tenant LIMIT 3;
-- must
SELECT id AS name FROM customers ORDER BY name, customers.name, tenant LIMIT 3;
-- must
SELECT tenant AS id, id AS tenant FROM orders ORDER BY id + 0, tenant + 0;

-- Other client encodings: in some a letter has the byte of a backslash, in others letters have another order.
INSERT INTO drafts VALUES (1, 1, 'ё'), (9, 1, 'я'), (5, 1, 'а'), (3, 1, 'Ж'), (7, 2, 'ソ'), (0, 2, '表');
SET client_encoding = 'KOI8R';
-- must
SELECT tenant, what FROM drafts WHERE id = 1 ORDER BY tenant;
SELECT DISTINCT what FROM drafts WHERE id = 1;
SELECT max(what COLLATE "C"), min(what COLLATE "C") FROM drafts WHERE id = 1;
SELECT what FROM drafts WHERE id = 1 ORDER BY what COLLATE "C";
-- must
SELECT what, count(*), avg(id) FROM drafts WHERE id = 1 GROUP BY what ORDER BY what;
SET client_encoding = 'SJIS';
-- must
SELECT what FROM drafts WHERE id = 2 ORDER BY tenant;
SELECT k.what, s.item FROM drafts k JOIN stock s ON s.place = k.id WHERE k.id = 2 ORDER BY k.tenant, 2;
BEGIN;
INSERT INTO drafts SELECT tenant + 1, 3, what FROM drafts WHERE id = 2;
ROLLBACK;
SET client_encoding = 'UTF8';
-- must
SELECT * FROM drafts ORDER BY 1, 2;
DELETE FROM drafts;

-- What ALTER TABLE fills the rows that are there with is one time for all shards; the default stays what was said.
INSERT INTO drafts (tenant, id, what) VALUES (0, 1, 'a'), (1, 1, 'b'), (3, 1, 'c'), (5, 1, 'd'), (7, 1, 'e'), (9, 1, 'f');
-- must
ALTER TABLE drafts ADD COLUMN made timestamptz NOT NULL DEFAULT now(), ADD COLUMN due date DEFAULT CURRENT_DATE + 7;
-- must
ALTER TABLE drafts ADD part double precision DEFAULT extract(epoch FROM (statement_timestamp() - interval '1 day')) /* a comment */;
-- must
SELECT count(*), count(DISTINCT made), count(DISTINCT due), count(DISTINCT part), bool_and(made < now()), bool_and(due = current_date + 7) FROM drafts;
-- must
SELECT column_name, data_type, column_default, is_nullable FROM information_schema.columns WHERE table_name = 'drafts' ORDER BY 1;
-- must
INSERT INTO drafts (tenant, id) VALUES (1, 2);
-- must
INSERT INTO drafts (tenant, id) VALUES (9, 2);
-- must
SELECT count(DISTINCT made), count(DISTINCT due), count(DISTINCT part) FROM drafts;
-- must
ALTER TABLE drafts ADD COLUMN IF NOT EXISTS made timestamptz DEFAULT current_timestamp(0), ADD COLUMN IF NOT EXISTS "At" timestamp(0) DEFAULT (localtimestamp(3) AT TIME ZONE 'utc') CHECK ("At" > '2000-01-01');
-- must
SELECT count(DISTINCT made), count(DISTINCT "At"), bool_and("At" = date_trunc('second', "At")) FROM drafts;
-- must
ALTER TABLE drafts ALTER COLUMN due TYPE timestamptz USING now() - (id || ' days')::interval, ALTER COLUMN part DROP DEFAULT;
-- must
SELECT id, count(DISTINCT due), count(*) FROM drafts GROUP BY id ORDER BY id;
-- must
SELECT column_name, data_type, column_default FROM information_schema.columns WHERE table_name = 'drafts' ORDER BY 1;
-- must
ALTER TABLE drafts ADD COLUMN noise double precision DEFAULT random() + 0 * extract(epoch FROM now()), ADD COLUMN plain int DEFAULT 7, ALTER COLUMN made SET DEFAULT now();
-- must
SELECT count(DISTINCT noise), count(DISTINCT plain) FROM drafts;
ALTER TABLE drafts ADD COLUMN old interval DEFAULT age(timestamp '2020-01-01');
ALTER TABLE drafts ADD COLUMN "where" name DEFAULT current_catalog;
ALTER TABLE drafts ADD COLUMN began timestamptz DEFAULT 'now';
ALTER TABLE drafts ADD COLUMN began date DEFAULT ('now'::text)::date;
-- must
ALTER TABLE drafts DROP COLUMN made, DROP COLUMN due, DROP COLUMN part, DROP COLUMN "At", DROP COLUMN noise, DROP COLUMN plain, DROP COLUMN IF EXISTS old, DROP COLUMN IF EXISTS "where", DROP COLUMN IF EXISTS began;
BEGIN;
-- must
SELECT count(*) FROM drafts;
-- must
ALTER TABLE drafts ADD COLUMN made timestamptz DEFAULT now();
-- must
SELECT count(DISTINCT made), count(*) FROM drafts;
-- must
ALTER TABLE drafts DROP COLUMN made, ADD COLUMN IF NOT EXISTS made timestamptz DEFAULT now();
-- must
SELECT count(DISTINCT made), count(*) FROM drafts;
ALTER TABLE drafts ADD COLUMN made timestamptz DEFAULT now();
ROLLBACK;
DELETE FROM drafts;
-- must
ALTER TABLE countries ADD COLUMN listed timestamptz NOT NULL DEFAULT now();
-- must
SELECT count(DISTINCT listed), count(*) > 1 FROM customers JOIN countries ON code = country;
-- must
INSERT INTO countries (code, name) VALUES ('zz', 'Nowhere');
-- must
SELECT count(DISTINCT listed) FROM countries;
DELETE FROM countries WHERE code = 'zz';
-- must
ALTER TABLE countries DROP COLUMN listed;
