// What the tenant guard lets through and what it refuses, over the golden world: the session is the tenant 42
// of the map tenants. tests/frontend/tenant_pgtest.cc tries to break out of a running router.
#include "planner/tenant_guard.h"

#include <gtest/gtest.h>

#include "shardmap/key_encoding.h"
#include "tests/planner/fixture.h"

namespace kintsugi::planner::testing {
namespace {

TenantGuard guard_of(const std::string& map, const shardmap::KeyTypes& types, std::vector<std::string> key) {
  return {map, *shardmap::encode_key(types, key), map + "(" + key[0] + ")"};
}

const TenantGuard& tenant() {
  static const TenantGuard guard = guard_of("tenants", {shardmap::KeyType::kBigint}, {"42"});
  return guard;
}

// "inside", or why not.
std::string judged(const std::string& text, const TenantGuard& guard = tenant(),
                   std::vector<Parameter> parameters = {}) {
  const World& world = golden_world();
  Planning planning(world);
  auto analysis = planning.analyse_text(text);
  if (!analysis) return "no analysis: " + analysis.error().message;
  const Values values{&planning.normal, parser::split_statements(text)[0].begin, parameters};
  const auto error = refuses(guard, **analysis, values, *world.map);
  if (!error) return "inside";
  EXPECT_EQ(error->sqlstate, "KG004");
  return error->detail;
}

Parameter bigint(const char* text) {
  return {.type = 20, .binary = false, .null = false, .bytes = text};
}

TEST(TenantGuard, LetsThroughWhatIsPinned) {
  for (
      const char* text : {
          "SELECT 1",
          "SELECT now(), version(), current_user",
          "SELECT * FROM orders WHERE tenant_id = 42",
          "SELECT * FROM orders o WHERE 42 = o.tenant_id AND status = 'open' ORDER BY placed LIMIT 10 FOR "
          "UPDATE",
          "SELECT o.id, i.sku FROM orders o JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id "
          "WHERE o.tenant_id = 42",
          "SELECT o.id, i.sku FROM orders o LEFT JOIN items i USING (tenant_id) WHERE tenant_id = 42",
          "SELECT o.id, i.sku FROM orders o LEFT JOIN items i ON i.tenant_id = 42 WHERE o.tenant_id = 42",
          "SELECT status, sum(amount * qty), count(*) FROM orders WHERE tenant_id = 42 GROUP BY status "
          "HAVING sum(amount / 2) > 10",
          "SELECT id, amount::int, round(amount / qty), to_char(placed, 'YYYY'), (SELECT max(sku) FROM items i "
          "WHERE i.tenant_id = 42 AND i.order_id = o.id) FROM orders o WHERE tenant_id = 42",
          "SELECT * FROM orders o WHERE tenant_id = 42 AND EXISTS (SELECT 1 FROM items i WHERE i.tenant_id = "
          "o.tenant_id AND i.order_id = o.id)",
          "SELECT * FROM orders WHERE tenant_id = 42 AND id IN (SELECT order_id FROM items WHERE tenant_id = "
          "42)",
          "SELECT * FROM orders WHERE tenant_id = 42 AND amount > (SELECT avg(amount) FROM orders WHERE "
          "tenant_id = 42)",
          "WITH mine AS (SELECT id, amount FROM orders WHERE tenant_id = 42) SELECT sum(amount) FROM mine "
          "WHERE id > 3",
          "SELECT day, sum(v) FROM (SELECT date_trunc('day', placed) AS day, amount * qty AS v FROM orders "
          "WHERE "
          "tenant_id = 42) x GROUP BY day",
          "SELECT id FROM orders WHERE tenant_id = 42 UNION ALL SELECT order_id FROM items WHERE tenant_id = "
          "42",
          "SELECT * FROM orders WHERE tenant_id = 42 AND status LIKE 'op%' AND lower(note) = 'x'",
          "SELECT o.*, p.name FROM orders o JOIN plans p ON p.id = o.plan_id WHERE o.tenant_id = 42",
          "SELECT * FROM plans WHERE price / 2 > 1",
          "INSERT INTO orders (tenant_id, id, status) VALUES (42, 1, upper('x')), (42, 2, DEFAULT) RETURNING *",
          "INSERT INTO items (tenant_id, order_id, pos) SELECT tenant_id, id, 1 FROM orders WHERE tenant_id = "
          "42",
          "INSERT INTO items (tenant_id, order_id, pos) SELECT 42, g, 1 FROM generate_series(1, 3) g",
          "INSERT INTO orders (tenant_id, id, qty) VALUES (42, 1, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET "
          "qty = orders.qty + excluded.qty",
          "UPDATE orders SET amount = amount + 1, tenant_id = 42 WHERE tenant_id = 42 AND id = 3 RETURNING "
          "amount",
          "UPDATE orders o SET status = i.sku FROM items i WHERE o.tenant_id = 42 AND i.tenant_id = "
          "o.tenant_id",
          "DELETE FROM orders WHERE tenant_id = 42 AND id = 3",
          "DECLARE c CURSOR FOR SELECT * FROM orders WHERE tenant_id = 42",
          "EXPLAIN (ROUTE) SELECT * FROM orders WHERE tenant_id = 42",
      })
    EXPECT_EQ(judged(text), "inside") << text;
  EXPECT_EQ(judged("SELECT * FROM orders WHERE tenant_id = $1 AND status LIKE $2", tenant(),
                   {bigint("42"), {.type = 25, .bytes = "x%"}}),
            "inside");
  EXPECT_EQ(judged("INSERT INTO orders (id, tenant_id) VALUES (1, $1)", tenant(), {bigint("42")}), "inside");
  const TenantGuard cell{"cells",
                         *shardmap::encode_key({shardmap::KeyType::kInt, shardmap::KeyType::kText}, {"1", "a"}),
                         "cells(1, a)"};
  EXPECT_EQ(judged("SELECT v FROM cells WHERE y = 'a' AND x = 1", cell), "inside");
}

TEST(TenantGuard, RefusesEverythingElse) {
  for (
      const char* text : {
          // Other keys, no key, a key that is not proven.
          "SELECT * FROM orders",
          "SELECT * FROM orders WHERE tenant_id = 43",
          "SELECT * FROM orders WHERE tenant_id IN (42, 43)",
          "SELECT * FROM orders WHERE tenant_id = 42 OR true",
          "SELECT * FROM orders WHERE tenant_id >= 42 AND tenant_id <= 42",
          "SELECT * FROM orders WHERE NOT tenant_id = 42",
          "SELECT * FROM orders WHERE tenant_id = 41 + 1",
          "SELECT * FROM orders WHERE tenant_id = (SELECT 42)",
          "SELECT * FROM orders WHERE (tenant_id = 42) IS NOT NULL",
          "SELECT * FROM orders WHERE CASE WHEN true THEN tenant_id = 42 END",
          "SELECT * FROM orders WHERE id = 42",
          "TABLE orders",
          "SELECT * FROM events_2024 WHERE id = 1",
          // The condition stands elsewhere.
          "SELECT * FROM (SELECT * FROM orders) o WHERE tenant_id = 42",
          "WITH o AS (SELECT * FROM orders) SELECT * FROM o WHERE tenant_id = 42",
          "WITH o AS MATERIALIZED (SELECT tenant_id, note::int FROM orders) SELECT * FROM o WHERE tenant_id = "
          "42",
          "SELECT (SELECT max(note) FROM orders) FROM orders WHERE tenant_id = 42",
          "SELECT * FROM orders WHERE tenant_id = 42 UNION SELECT * FROM orders",
          "SELECT * FROM orders o, items i WHERE o.tenant_id = 42",
          "SELECT * FROM orders o LEFT JOIN items i ON o.tenant_id = 42 AND i.tenant_id = 42",
          "SELECT * FROM orders o RIGHT JOIN items i ON i.tenant_id = o.tenant_id AND o.tenant_id = 42",
          "SELECT * FROM orders o FULL JOIN items i USING (tenant_id) WHERE o.tenant_id = 42",
          "SELECT * FROM orders NATURAL JOIN items WHERE tenant_id = 42",
          "SELECT * FROM orders o WHERE o.tenant_id = 42 AND EXISTS (SELECT 1 FROM items i WHERE o.tenant_id = "
          "42)",
          "SELECT * FROM orders o WHERE tenant_id = 42 AND id IN (SELECT id FROM orders WHERE o.tenant_id = "
          "42)",
          // Names that mean something else.
          "SELECT * FROM orders AS o (id, tenant_id) WHERE o.tenant_id = 42",
          "SELECT * FROM orders o WHERE o.total_of = 42",
          "SELECT o.add_tax FROM orders o WHERE tenant_id = 42",
          "SELECT (o).note FROM orders o WHERE tenant_id = 42",
          "WITH orders AS (SELECT 42 AS tenant_id) SELECT * FROM public.orders, orders o "
          "WHERE o.tenant_id = 42",
          "SELECT * FROM (WITH orders AS (SELECT 1) SELECT 1) x, orders",
          // Errors that tell of others.
          "SELECT 1 FROM orders WHERE note::int = 1 AND tenant_id = 42",
          "SELECT 1 FROM orders WHERE 1 / qty = 1 AND tenant_id = 42",
          "SELECT 1 FROM orders WHERE tenant_id = 42 AND has_table_privilege(note, 'select')",
          "SELECT 1 FROM orders WHERE note LIKE E'abc\\\\' AND tenant_id = 42",
          "SELECT 1 FROM orders WHERE note LIKE note AND tenant_id = 42",
          "SELECT 1 FROM orders WHERE note ~ code AND tenant_id = 42",
          "SELECT 1 FROM orders WHERE to_number(note, '9') = 1 AND tenant_id = 42",
          "SELECT v FROM (SELECT note::int AS v FROM orders WHERE tenant_id = 42) x WHERE v > 1",
          "WITH x AS (SELECT note::int AS v FROM orders WHERE tenant_id = 42) SELECT * FROM x WHERE v > 1",
          "SELECT v FROM (SELECT note::int AS v FROM orders WHERE tenant_id = 42) x GROUP BY v HAVING v > 1",
          "SELECT 1 FROM orders o WHERE tenant_id = 42 AND qty = (SELECT pos FROM items i WHERE tenant_id = 42 "
          "AND "
          "i.order_id = o.id)",
          "SELECT note FROM orders WHERE tenant_id = 42 GROUP BY note HAVING note::int > 1",
      })
    EXPECT_NE(judged(text), "inside") << text;
}

TEST(TenantGuard, RefusesFunctionsAndOtherTables) {
  for (const char* text : {
           // Functions.
           "SELECT total_of(42)",
           "SELECT add_tax(amount) FROM orders WHERE tenant_id = 42",
           "SELECT log_it('x')",
           "SELECT query_to_xml('select * from orders', true, true, '')",
           "SELECT pg_catalog.query_to_xml('select * from orders', true, true, '')",
           "SELECT table_to_xml('orders', true, true, '')",
           "SELECT * FROM ts_stat('select to_tsvector(note) from orders')",
           "SELECT ts_rewrite('a'::tsquery, 'select ''a''::tsquery, ''b''::tsquery')",
           "SELECT pg_read_file('postgresql.conf')",
           "SELECT * FROM pg_ls_dir('.')",
           "SELECT lo_export(1, '/tmp/x')",
           "SELECT pg_terminate_backend(1)",
           "SELECT set_config('search_path', 'x', false)",
           "SELECT nextval('invoice_numbers')",
           "SELECT pg_advisory_lock(1)",
           "SELECT dblink('dbname=app', 'select 1')",
           "SELECT pg_relation_size('orders')",
           "SELECT pg_stat_get_activity(NULL)",
           "SELECT 1 OPERATOR(public.+) 1",
           // Other tables.
           "SELECT * FROM settings",
           "SELECT * FROM audit WHERE tenant_id = 42",
           "SELECT * FROM customers WHERE region = 'de'",
           "SELECT * FROM open_orders WHERE tenant_id = 42",
           "SELECT * FROM nowhere",
           "SELECT * FROM pg_stats",
           "SELECT * FROM pg_stat_activity",
           "SELECT * FROM pg_catalog.pg_authid",
           "SELECT * FROM pg_prepared_statements",
           "SELECT * FROM orders TABLESAMPLE SYSTEM (100) WHERE tenant_id = 42",
       })
    EXPECT_NE(judged(text), "inside") << text;
}

TEST(TenantGuard, RefusesWritesAndTheRest) {
  for (
      const char* text : {
          // Writes.
          "INSERT INTO orders (tenant_id, id) VALUES (43, 1)",
          "INSERT INTO orders (tenant_id, id) VALUES (42, 1), (43, 2)",
          "INSERT INTO orders (id) VALUES (1)",
          "INSERT INTO orders (tenant_id, id) VALUES (40 + 3, 1)",
          "INSERT INTO notes (body) VALUES ('x')",
          "INSERT INTO orders (tenant_id, id) SELECT id, 1 FROM orders WHERE tenant_id = 42",
          "INSERT INTO orders (tenant_id, id) SELECT 43, 1",
          "INSERT INTO orders (tenant_id, id) SELECT 42, id FROM orders",
          "INSERT INTO orders (tenant_id, id, note) VALUES (42, 1, (SELECT note FROM orders WHERE tenant_id = "
          "43))",
          "INSERT INTO orders (tenant_id, id) VALUES (42, 1) ON CONFLICT (id) DO UPDATE SET note = orders.note",
          "INSERT INTO orders (tenant_id, id) VALUES (42, 1) ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE "
          "SET "
          "note = orders.note",
          "INSERT INTO orders (tenant_id, id) VALUES (42, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET "
          "tenant_id = 43",
          "INSERT INTO plans (id) VALUES (1)",
          "INSERT INTO settings VALUES ('a', 'b')",
          "UPDATE orders SET note = 'x'",
          "UPDATE orders SET tenant_id = 43 WHERE tenant_id = 42",
          "UPDATE orders SET tenant_id = tenant_id + 1 WHERE tenant_id = 42",
          "UPDATE orders o SET note = i.sku FROM items i WHERE o.tenant_id = 42",
          "UPDATE plans SET price = 0",
          "DELETE FROM orders",
          "DELETE FROM orders WHERE CURRENT OF c",
          "DELETE FROM orders USING items WHERE items.tenant_id = 42",
          "WITH gone AS (DELETE FROM orders WHERE tenant_id = 42 RETURNING *) SELECT * FROM gone",
          "SELECT * FROM plans FOR UPDATE",
          "SELECT * FROM orders o, plans p WHERE o.tenant_id = 42 FOR UPDATE",
          "SELECT * INTO x FROM orders WHERE tenant_id = 42",
          "MERGE INTO orders o USING items i ON o.tenant_id = 42 AND i.tenant_id = 42 WHEN MATCHED THEN DELETE",
          // Everything else.
          "COPY orders TO STDOUT",
          "COPY orders FROM STDIN",
          "COPY (SELECT * FROM orders WHERE tenant_id = 42) TO STDOUT",
          "EXPLAIN SELECT * FROM orders WHERE tenant_id = 42",
          "EXPLAIN (ROUTE) SELECT * FROM orders",
          "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders WHERE tenant_id = 42",
          "DECLARE c CURSOR FOR SELECT * FROM orders",
          "TRUNCATE orders",
          "LOCK TABLE orders",
          "CREATE TABLE mine (a int)",
          "CREATE TEMP TABLE mine AS SELECT * FROM orders",
          "DROP TABLE orders",
          "VACUUM orders",
          "CALL log_it('x')",
          "DO $$ BEGIN END $$",
          "LISTEN x",
      })
    EXPECT_NE(judged(text), "inside") << text;
  EXPECT_NE(judged("SELECT * FROM orders WHERE tenant_id = $1", tenant(), {bigint("43")}), "inside");
  EXPECT_NE(judged("SELECT * FROM orders WHERE tenant_id = 42 AND note LIKE $1", tenant(),
                   {{.type = 25, .bytes = "abc\\"}}),
            "inside");
  EXPECT_NE(judged("SELECT * FROM orders WHERE tenant_id = 42", {"tenants", "", "tenants(42)"}), "inside");
}

// A frame's equalities are its own.
TEST(TenantGuard, AnEqualityOfOneQueryIsNoneOfTheNext) {
  EXPECT_NE(judged("SELECT 1 FROM (SELECT 1 FROM orders JOIN items USING (tenant_id) WHERE tenant_id = 42) a, "
                   "(SELECT 1 FROM orders o, items i WHERE o.tenant_id = 42) b"),
            "inside");
}

}  // namespace
}  // namespace kintsugi::planner::testing
