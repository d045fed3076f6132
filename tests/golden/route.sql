SELECT 1
-- tier 1: route to any shard

SELECT * FROM settings WHERE key = 'a'
-- tier 1: route to s1

SELECT * FROM orders WHERE tenant_id = 5
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE 150 = tenant_id AND status = 'open'
-- tier 1: route to s2, shardlet t2

SELECT * FROM orders WHERE tenant_id = '42'
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id = -42
-- tier 1: route to s1, shardlet t1

SELECT * FROM orders WHERE tenant_id = 350::int
-- tier 1: route to s3, shardlet t4

--! $1 bigint = 250
SELECT * FROM orders WHERE tenant_id = $1
-- tier 1: route to s1, shardlet t3

--! $1 integer = 250
SELECT * FROM orders WHERE tenant_id = $1
-- tier 1: route to s1, shardlet t3

--! $1 unknown = 150
SELECT * FROM orders WHERE tenant_id = $1
-- tier 1: route to s2, shardlet t2

--! $1 bigint = NULL
SELECT * FROM orders WHERE tenant_id = $1
-- tier 1: route to s1

SELECT * FROM orders o JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id WHERE o.tenant_id = 150
-- tier 1: route to s2, shardlet t2

SELECT * FROM orders o JOIN plans p ON p.id = o.plan_id WHERE o.tenant_id = 150
-- tier 1: route to s2, shardlet t2

SELECT * FROM customers WHERE region = 'de'
-- tier 1: route to s2, shardlet eu

SELECT * FROM customers WHERE region = 'xx'
-- refused KG001: no shardlet of map regions has the key ('xx')
--   hint: CREATE SHARDLET makes one for it; SHOW SHARDLETS OF regions lists those that are there.

SELECT * FROM accounts WHERE id = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
-- tier 1: route to s2, shardlet u2

SELECT * FROM cells WHERE x = 5 AND y = 'z'
-- tier 1: route to s2, shardlet c2

SELECT * FROM cells WHERE (x, y) = (5, 'a')
-- tier 1: route to s1, shardlet c1

SELECT * FROM plans
-- tier 1: route to any shard

SELECT * FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: concatenate

SELECT * FROM orders ORDER BY id
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: merge in order of column 2 bigint

SELECT count(*) FROM orders
-- tier 2: 3 shards
--   s1, s2, s3: (own text)
--   merge: fold one row from each: sum bigint

SELECT * FROM states WHERE id = 5
-- tier 1: route to s1, shardlet open

SELECT * FROM states WHERE id = 25
-- refused KG002: shardlet closed is offline
--   hint: ALTER SHARDLET closed SET ONLINE opens it again.

SELECT * FROM states WHERE id = 35
-- tier 1: route to s3, shardlet held

SELECT * FROM states WHERE id = 35 FOR UPDATE
-- hold: shardlet held is being handed over

SELECT * FROM states WHERE id = 15
-- tier 1: route to s2, shardlet readonly

SELECT * FROM states WHERE id = 15 FOR UPDATE
-- refused KG002: shardlet readonly is read only
--   hint: ALTER SHARDLET readonly SET ONLINE lets statements write to it again.

SELECT * FROM orders WHERE tenant_id = 5 FOR UPDATE
-- tier 1: route to s1, shardlet t1, writes

SELECT version()
-- tier 1: route to any shard

SELECT pg_advisory_lock(5)
-- tier 1: route to s1, writes

SELECT current_setting('search_path')
-- tier 1: route to any shard

SELECT gen_random_uuid()
-- tier 1: route to any shard

SELECT o.* FROM orders o, items i WHERE o.tenant_id = 150 AND i.tenant_id = 151 AND o.id = i.order_id
-- tier 1: route to s2, shardlet t2

SELECT o.* FROM orders o, settings s WHERE o.tenant_id = 5 AND s.key = o.status
-- tier 1: route to s1, shardlet t1

SELECT count(*), avg(qty) FROM orders WHERE tenant_id = 150
-- tier 1: route to s2, shardlet t2

SELECT status, count(*) FROM orders WHERE tenant_id = 150 GROUP BY ROLLUP (status) HAVING count(*) > 1 ORDER BY status LIMIT 3
-- tier 1: route to s2, shardlet t2

SELECT * FROM orders WHERE tenant_id = 150 AND id IN (SELECT order_id FROM items WHERE tenant_id = 150 ORDER BY price LIMIT 1)
-- tier 1: route to s2, shardlet t2

SELECT total_orders(5)
-- refused 0A000: the function total_orders, which names the sharded table public.orders, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

SELECT log_it('x')
-- tier 1: route to s1, writes

SELECT count_of('settings')
-- refused 0A000: the function count_of, which puts the statements together that it EXECUTEs, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

SELECT calls_count_of('settings')
-- refused 0A000: the function calls_count_of, which puts the statements together that it EXECUTEs, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

SELECT count_of('orders') FROM orders WHERE tenant_id = 5
-- tier 1: route to s1, shardlet t1, writes

SELECT sets_it('x')
-- tier 1: route to s1, writes

CALL count_of('orders')
-- refused 0A000: the function count_of, which puts the statements together that it EXECUTEs, in a statement without a sharding key
--   hint: It would see the rows of one shard. Send its statements themselves, or call it in a statement that says with = which sharding key it is for.

DO $$ BEGIN EXECUTE 'update or' || 'ders set note = 1'; END $$
-- refused 0A000: DO that puts the statements together that it EXECUTEs
--   hint: It would see the rows of one shard. Send its statements themselves.

DO $$ BEGIN EXECUTE 'update settings set value = 1' ; PERFORM 1; END $$
-- tier 1: route to s1, writes

DO $$ BEGIN PERFORM total_orders(5); END $$
-- refused 0A000: DO that names the sharded table public.orders
--   hint: It would see the rows of one shard. Send its statements themselves.

DO 'BEGIN PERFORM sets_it(''x''); END'
-- tier 1: route to s1, writes

