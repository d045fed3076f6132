#!/usr/bin/python3
"""A tenant tries to get at the rows of others, in front of a running router with two shards: bound to its key by
the configuration, or by SET kintsugi.tenant; in the simple and in the extended protocol. argv[1] is the program.

Every row of the tenant 42 says "mine", every other row and every shared secret says "SECRET" and is a word that no
cast to a number reads. No answer may hold that word, whatever it is."""
import pathlib
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, USER, PASSWORD, psycopg  # noqa: E402
import protocol  # noqa: E402

TENANT, TENANT_PASSWORD = "tenant42", "tenant-secret"

SCHEMA = """
CREATE TABLE orders (tenant_id bigint NOT NULL, id bigint NOT NULL, note text, qty int, PRIMARY KEY (tenant_id, id))
    SHARD BY tenants (tenant_id);
CREATE TABLE items (tenant_id bigint NOT NULL, order_id bigint, sku text) SHARD BY tenants (tenant_id);
CREATE TABLE loose (tenant_id bigint NOT NULL, id bigint, note text) SHARD BY tenants (tenant_id);
CREATE TABLE places (region text NOT NULL, note text) SHARD BY regions (region);
CREATE TABLE plans (id int PRIMARY KEY, name text) REPLICATED;
CREATE TABLE settings (key text, value text);
CREATE VIEW all_orders AS SELECT * FROM orders;
CREATE FUNCTION peek() RETURNS text LANGUAGE sql STABLE AS 'SELECT max(note) FROM orders';
CREATE FUNCTION peek(orders) RETURNS text LANGUAGE sql STABLE AS 'SELECT max(note) FROM orders';
CREATE PROCEDURE wipe() LANGUAGE sql AS 'DELETE FROM orders';
INSERT INTO orders SELECT 42, g, 'mine', 1 FROM generate_series(1, 5) g;
INSERT INTO orders SELECT 43, g, 'SECRET' || g, 0 FROM generate_series(1, 5) g;
INSERT INTO items VALUES (42, 1, 'mine');
INSERT INTO items VALUES (43, 1, 'SECRET');
INSERT INTO loose VALUES (43, 1, 'SECRET');
INSERT INTO places VALUES ('de', 'SECRET');
INSERT INTO plans VALUES (1, 'shared');
INSERT INTO settings VALUES ('a', 'SECRET');
"""

HOSTILE = [
    "SELECT * FROM orders",
    "SELECT * FROM orders WHERE tenant_id = 43",
    "select*from/* /* nested */ tenant_id = 42 */orders",
    "SELECT * FROM orders -- WHERE tenant_id = 42",
    "SELECT * FROM orders WHERE tenant_id = 43 -- tenant_id = 42",
    "SELECT * FROM orders WHERE note <> 'x'' AND tenant_id = 42 AND ''' ",
    "SELECT * FROM orders WHERE note <> E'\\'AND tenant_id = 42 --'",
    "SELECT * FROM orders WHERE note <> $$ AND tenant_id = 42 $$",
    "SELECT * FROM orders WHERE tenant_id = 42 OR 1 = 1",
    "SELECT * FROM orders WHERE tenant_id = 42 IS NOT NULL",
    "SELECT * FROM orders WHERE tenant_id IN (42, 43)",
    "SELECT * FROM orders WHERE tenant_id = ANY (ARRAY[42, 43])",
    "SELECT * FROM orders WHERE tenant_id BETWEEN 42 AND 43",
    "SELECT * FROM orders WHERE tenant_id = 42 + 1",
    "SELECT * FROM orders WHERE tenant_id = (SELECT 43)",
    "SELECT * FROM orders WHERE tenant_id = 42 UNION ALL SELECT * FROM orders",
    "SELECT * FROM orders WHERE tenant_id = 42 UNION ALL SELECT * FROM orders WHERE tenant_id = 43",
    "SELECT * FROM orders WHERE tenant_id = 42 EXCEPT SELECT * FROM orders WHERE tenant_id = 43",
    "TABLE orders",
    "SELECT * FROM orders a JOIN orders b ON a.tenant_id = 42",
    "SELECT b.* FROM orders a LEFT JOIN orders b ON a.id = b.id WHERE a.tenant_id = 42",
    "SELECT b.* FROM orders a RIGHT JOIN orders b ON a.tenant_id = b.tenant_id AND a.tenant_id = 42",
    "SELECT * FROM orders a FULL JOIN items b USING (tenant_id) WHERE tenant_id = 42",
    "SELECT * FROM orders NATURAL JOIN items WHERE tenant_id = 42",
    "SELECT * FROM orders AS o (id, tenant_id) WHERE o.tenant_id = 42",
    "SELECT (SELECT string_agg(note, ',') FROM orders) FROM orders WHERE tenant_id = 42",
    "SELECT * FROM orders WHERE tenant_id = 42 AND EXISTS (SELECT 1 FROM orders b WHERE b.note LIKE 'SECRET1%')",
    "SELECT * FROM orders o WHERE tenant_id = 42 AND id IN (SELECT id FROM orders WHERE o.tenant_id = 42)",
    "WITH x AS (SELECT * FROM orders) SELECT * FROM x WHERE tenant_id = 42",
    "WITH x AS MATERIALIZED (SELECT tenant_id, note::int FROM orders) SELECT * FROM x WHERE tenant_id = 42",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION SELECT o.qty FROM x, orders o) SELECT * FROM x",
    "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE orders SET note = 'x' WHERE tenant_id = 42 RETURNING *) SELECT * FROM x",
    "WITH orders AS (SELECT 42 AS tenant_id) SELECT * FROM public.orders, orders o WHERE o.tenant_id = 42",
    "SELECT * FROM (SELECT * FROM orders OFFSET 0) o WHERE tenant_id = 42",
    "SELECT * FROM orders, LATERAL (SELECT * FROM items WHERE order_id = id) i WHERE orders.tenant_id = 42",
    "SELECT 1 FROM orders WHERE note::int = 1 AND tenant_id = 42",
    "SELECT 1 FROM orders WHERE 1 / qty = 1 AND tenant_id = 42",
    "SELECT 1 FROM orders WHERE has_table_privilege(note, 'select') AND tenant_id = 42",
    "SELECT 1 FROM orders WHERE date_trunc(note, now()) IS NULL AND tenant_id = 42",
    "SELECT 1 FROM orders WHERE note LIKE E'SECRET1\\\\' AND tenant_id = 42",
    "SELECT v FROM (SELECT note::int AS v FROM orders WHERE tenant_id = 42) x WHERE v > 1",
    "SELECT note FROM orders WHERE tenant_id = 42 GROUP BY note HAVING note::int > 1",
    "SELECT 1 FROM orders o WHERE qty = (SELECT order_id FROM items WHERE tenant_id = 42) AND tenant_id = 42",
    "SELECT peek()",
    "SELECT o.peek FROM orders o WHERE tenant_id = 42",
    "SELECT (o).peek FROM orders o WHERE tenant_id = 42",
    "SELECT peek(o) FROM orders o WHERE tenant_id = 42",
    "CALL wipe()",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "SELECT query_to_xml('select * from orders', true, true, '')",
    "SELECT pg_catalog.\"query_to_xml\"('select * from orders', true, true, '')",
    "SELECT table_to_xml('orders', true, true, '')",
    "SELECT * FROM ts_stat('select to_tsvector(note) from orders')",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT * FROM pg_ls_dir('.')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT query FROM pg_stat_activity",
    "SELECT most_common_vals FROM pg_stats WHERE tablename = 'orders'",
    "SELECT statement FROM pg_prepared_statements",
    "SELECT set_config('kintsugi.tenant', '43', false)",
    "SELECT set_config('search_path', 'x', false)",
    "SELECT current_setting('kintsugi.tenant')",
    "SELECT nextval('x')",
    "SELECT pg_advisory_lock(1)",
    "SELECT * FROM all_orders WHERE tenant_id = 42",
    "SELECT * FROM settings",
    "SELECT * FROM places WHERE region = 'de'",
    "SELECT * FROM kintsugi.txn_decision",
    "SELECT * FROM nowhere",
    "SELECT * FROM orders TABLESAMPLE SYSTEM (100) WHERE tenant_id = 42",
    "SELECT * FROM orders WHERE tenant_id = 43 FOR UPDATE",
    "SELECT * FROM plans FOR UPDATE",
    "SELECT * INTO mine FROM orders WHERE tenant_id = 42",
    "INSERT INTO orders VALUES (43, 99, 'x')",
    "INSERT INTO orders VALUES (42, 99, 'x'), (43, 99, 'x')",
    "INSERT INTO orders SELECT 43, 99, 'x'",
    "INSERT INTO orders SELECT 42, id + 100, note FROM orders",
    "INSERT INTO orders (tenant_id, id, note) VALUES (42, 98, (SELECT max(note) FROM orders))",
    "INSERT INTO loose VALUES (42, 1, 'x') ON CONFLICT (id) DO UPDATE SET note = loose.note RETURNING *",
    "INSERT INTO orders VALUES (42, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET tenant_id = 43",
    "INSERT INTO plans VALUES (2, 'x')",
    "UPDATE orders SET note = 'x'",
    "UPDATE orders SET tenant_id = 43 WHERE tenant_id = 42",
    "UPDATE orders SET note = i.sku FROM items i WHERE orders.tenant_id = 42",
    "UPDATE plans SET name = 'x'",
    "DELETE FROM orders",
    "DELETE FROM orders WHERE tenant_id = 43",
    "DELETE FROM orders USING items WHERE items.tenant_id = 42",
    "MERGE INTO orders USING items i ON orders.tenant_id = 42 AND i.tenant_id = 42 WHEN MATCHED THEN DELETE",
    "TRUNCATE orders",
    "LOCK TABLE orders",
    "COPY orders TO STDOUT",
    "COPY orders FROM STDIN",
    "COPY (SELECT * FROM orders) TO STDOUT",
    "COPY orders TO '/tmp/x'",
    "COPY orders TO PROGRAM 'cat'",
    "EXPLAIN SELECT * FROM orders WHERE tenant_id = 43",
    "EXPLAIN ANALYZE SELECT * FROM orders WHERE tenant_id = 42",
    "EXPLAIN (ROUTE) SELECT * FROM orders",
    "PREPARE p AS SELECT * FROM orders",
    "PREPARE p AS SELECT * FROM orders WHERE tenant_id = 42",
    "EXECUTE p",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders WHERE tenant_id = 42",
    "DECLARE c CURSOR FOR SELECT * FROM orders",
    "FETCH ALL FROM not_mine",
    "CREATE TABLE mine (a int)",
    "CREATE TEMP TABLE orders (a int)",
    "CREATE VIEW v AS SELECT * FROM orders",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE orders ADD COLUMN x int",
    "DROP TABLE orders",
    "GRANT ALL ON orders TO public",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "RESET ROLE",
    "SET search_path = pg_temp, public",
    "SET client_encoding = 'SJIS'",
    "SET standard_conforming_strings = off",
    "SET session_replication_role = replica",
    "SET TRANSACTION SNAPSHOT '00000003-0000001B-1'",
    "COMMIT PREPARED 'x'",
    "ROLLBACK PREPARED 'x'",
    "PREPARE TRANSACTION 'x'",
    "LISTEN x",
    "NOTIFY x",
    "VACUUM orders",
    "SHOW SHARDLETS",
    "SHOW STATS",
    "SHOW SHARDS",
    "SELECT FROM WHERE",
]

# What a second mind thought of, later.
HOSTILE += [
    "SELECT * FROM ONLY orders",
    "SELECT * FROM orders WHERE NOT (tenant_id <> 42)",
    "SELECT * FROM orders WHERE (tenant_id = 42) = false",
    "SELECT * FROM orders WHERE CASE WHEN tenant_id = 42 THEN true ELSE true END",
    "SELECT * FROM orders WHERE tenant_id = 42 AND true OR true",
    "SELECT * FROM orders WHERE tenant_id OPERATOR(pg_catalog.<>) 42",
    "SELECT * FROM orders WHERE 42 = tenant_id + 0",
    "SELECT * FROM orders WHERE (tenant_id, id) IN ((42, 1), (43, 1))",
    "SELECT * FROM orders WHERE (tenant_id, id) >= (42, 1)",
    "SELECT * FROM orders WHERE tenant_id IS NOT DISTINCT FROM 43",
    "SELECT * FROM orders WHERE U&\"tenant\\005fid\" = 43",
    "SELECT * FROM orders o, (SELECT 42 AS tenant_id) x WHERE x.tenant_id = 42",
    "SELECT * FROM orders o JOIN (VALUES (42), (43)) v (t) ON o.tenant_id = v.t",
    "SELECT * FROM orders o JOIN generate_series(42, 43) g ON o.tenant_id = g",
    "SELECT * FROM orders o JOIN plans p ON o.tenant_id = p.id",
    "SELECT * FROM orders o LEFT JOIN plans p ON o.tenant_id = 42",
    "SELECT b.* FROM plans p LEFT JOIN orders b ON p.id = 1 AND b.tenant_id = 43",
    "SELECT a.* FROM orders a FULL JOIN orders b ON a.tenant_id = 42 AND b.tenant_id = 42",
    "SELECT note FROM orders WHERE tenant_id = 42 INTERSECT SELECT note FROM orders",
    "SELECT * FROM orders FETCH FIRST 1 ROW ONLY",
    "SELECT count(*) OVER () FROM orders",
    "SELECT 1 FROM orders WHERE tenant_id = 42 ORDER BY (SELECT max(note) FROM orders)",
    "SELECT 1 FROM orders WHERE tenant_id = 42 LIMIT (SELECT count(*) FROM orders)",
    "SELECT 1 FROM orders WHERE tenant_id = 42 GROUP BY (SELECT max(note) FROM orders)",
    "SELECT 1 WHERE EXISTS (SELECT FROM orders WHERE tenant_id = 43)",
    "SELECT sum(qty) FILTER (WHERE EXISTS (SELECT FROM orders)) FROM orders WHERE tenant_id = 42",
    "SELECT ARRAY(SELECT note FROM orders)",
    "VALUES ((SELECT max(note) FROM orders))",
    "WITH t AS (SELECT 42 AS k) SELECT * FROM orders WHERE tenant_id = (SELECT k + 1 FROM t)",
    "WITH RECURSIVE t AS (SELECT note FROM orders WHERE tenant_id = 42 UNION ALL SELECT o.note FROM t JOIN orders o ON true) SELECT * FROM t",
    "WITH plans AS (TABLE orders) SELECT * FROM plans",
    "INSERT INTO orders (tenant_id, id) VALUES (42, 7) RETURNING (SELECT max(note) FROM orders)",
    "INSERT INTO orders (id, tenant_id) VALUES (42, 43)",
    "INSERT INTO orders VALUES (42, 1) ON CONFLICT (tenant_id, id) DO UPDATE SET note = (SELECT max(note) FROM orders o)",
    "INSERT INTO orders TABLE orders",
    "UPDATE orders SET note = (SELECT max(note) FROM orders o) WHERE tenant_id = 42",
    "UPDATE orders SET (note, qty) = (SELECT max(note), 1 FROM orders o) WHERE tenant_id = 42",
    "UPDATE orders SET note = o.note FROM orders o WHERE orders.tenant_id = 42 AND o.tenant_id = 43",
    "DELETE FROM orders WHERE tenant_id = 42 RETURNING (SELECT max(note) FROM orders)",
    "DELETE FROM orders o USING orders p WHERE o.tenant_id = 42 AND p.id = o.id RETURNING p.note",
    "SELECT lastval()",
    "SELECT pg_relation_size('orders')",
    "SELECT pg_stat_get_live_tuples('orders'::regclass)",
    "SELECT * FROM pg_stat_user_tables",
    "SELECT * FROM pg_stats_ext",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_cursors",
    "SELECT pg_get_viewdef('all_orders'::regclass)",
    "SELECT pg_export_snapshot()",
    "SELECT pg_reload_conf()",
    "SELECT * FROM pg_logical_slot_peek_changes('x', NULL, NULL)",
    "COMMENT ON TABLE orders IS 'x'",
    "REINDEX TABLE orders",
    "ANALYZE orders",
    "CLUSTER orders",
    "LOAD 'x'",
    "CHECKPOINT",
    "REASSIGN OWNED BY app TO postgres",
    "ALTER ROLE app SUPERUSER",
    "CREATE RULE r AS ON SELECT TO plans DO INSTEAD SELECT * FROM plans",
    "MOVE SHARDLET a TO SHARD s2",
    "ALTER SHARDLET a SET OFFLINE",
    "CANCEL JOB 1",
]

# Statements, and what the first row of the answer is (None: no rows are looked at).
LEGITIMATE = [
    ("SELECT 1", "1"),
    ("SELECT current_user", USER),
    ("SELECT count(*) FROM orders WHERE tenant_id = 42", "5"),
    ("SELECT note FROM orders WHERE tenant_id = 42 AND id = 3 AND note LIKE 'm%' FOR UPDATE", "mine"),
    ("SELECT count(*) FROM orders o JOIN items i ON i.tenant_id = o.tenant_id AND i.order_id = o.id "
     "WHERE o.tenant_id = 42", "1"),
    ("SELECT count(*) FROM orders LEFT JOIN items USING (tenant_id) WHERE tenant_id = 42", "5"),
    ("SELECT sum(qty * 2) FROM orders WHERE tenant_id = 42 HAVING sum(qty / 1) > 1", "10"),
    ("SELECT upper(note) || to_char(id, 'FM9') FROM orders WHERE tenant_id = 42 ORDER BY id LIMIT 1", "MINE1"),
    ("WITH x AS (SELECT id FROM orders WHERE tenant_id = 42) SELECT max(id) FROM x", "5"),
    ("SELECT count(*) FROM orders o WHERE tenant_id = 42 AND EXISTS (SELECT 1 FROM items i WHERE "
     "i.tenant_id = o.tenant_id AND i.order_id = o.id)", "1"),
    ("SELECT id FROM orders WHERE tenant_id = 42 UNION SELECT order_id FROM items WHERE tenant_id = 42 ORDER BY 1",
     "1"),
    ("SELECT name FROM plans", "shared"),
    ("SELECT p.name FROM orders o JOIN plans p ON p.id = o.qty WHERE o.tenant_id = 42 LIMIT 1", "shared"),
    ("SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = 'orders'::regclass AND attnum = 1", "tenant_id"),
    ("INSERT INTO orders VALUES (42, 6, 'mine', 1) RETURNING note", "mine"),
    ("INSERT INTO orders VALUES (42, 6, 'mine', 1) ON CONFLICT (tenant_id, id) DO UPDATE SET qty = orders.qty + "
     "excluded.qty RETURNING qty", "2"),
    ("INSERT INTO items SELECT tenant_id, id, note FROM orders WHERE tenant_id = 42 AND id = 6", None),
    ("UPDATE orders SET qty = qty + 1 WHERE tenant_id = 42 AND id = 6 RETURNING qty", "3"),
    ("DELETE FROM items WHERE tenant_id = 42 AND order_id = 6", None),
    ("DELETE FROM orders WHERE tenant_id = 42 AND id = 6", None),
    ("BEGIN", None),
    ("DECLARE c CURSOR FOR SELECT note FROM orders WHERE tenant_id = 42", None),
    ("FETCH 1 FROM c", "mine"),
    ("CLOSE c", None),
    ("SAVEPOINT s", None),
    ("ROLLBACK TO s", None),
    ("COMMIT", None),
    ("SET statement_timeout = '1min'", None),
    ("SET client_encoding = 'UTF8'", None),
    ("SET TIME ZONE 'UTC'", None),
    ("SHOW kintsugi.tenant", "tenants(42)"),
    ("SHOW server_version_num", None),
    ("DISCARD ALL", None),
    ("SHOW kintsugi.tenant", "tenants(42)"),
]

house = None


def setUpModule():
    global house
    house = House(PROGRAM, shards=2)
    house.stop()
    with open(house.data + "/kintsugi.toml", "a") as config:
        config.write(f'[[user]]\nname = "{TENANT}"\npassword = "{TENANT_PASSWORD}"\n'
                     'tenant_map = "tenants"\ntenant_key = "42"\n')
    house.start()
    with house.sql() as admin:
        for number in (1, 2):
            admin.execute(f"CREATE SHARD s{number} DSN '{house.dsn(number)}'")
        admin.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        admin.execute("CREATE SHARDLET low OF tenants FOR VALUES FROM (MINVALUE) TO (42) ON SHARD s1")
        # 42 and 43 are in one shardlet: the guard is of the key, not of the shardlet.
        admin.execute("CREATE SHARDLET high OF tenants FOR VALUES FROM (42) TO (MAXVALUE) ON SHARD s2")
        admin.execute("CREATE SHARD MAP regions BY LIST (text)")
        admin.execute("CREATE SHARDLET de OF regions FOR VALUES IN ('de') ON SHARD s1")
        for statement in SCHEMA.strip().split(";\n"):
            if statement.strip():
                admin.execute(statement)
    for number in (1, 2):
        with house.shard(number) as shard:
            # Kintsugi would refuse it: a row in conflict may be another tenant's.
            shard.execute("CREATE UNIQUE INDEX ON loose (id)")


def tearDownModule():
    house.close()


class Client:
    """Speaks one of the two protocols and keeps all that came back."""

    def __init__(self, user, password, extended, **startup):
        self.raw = protocol.RawClient("127.0.0.1", house.port)
        refusal = self.raw.login(user, password, "app", **startup)
        assert refusal is None, refusal
        self.extended = extended

    def ask(self, statement):
        """(SQLSTATE or None, first value of the first row, everything as one text)"""
        if self.extended:
            self.raw.send(protocol.parse("", statement), protocol.bind("", ""), protocol.execute(""), protocol.SYNC)
        else:
            self.raw.send(protocol.query(statement))
        state, first, everything = None, None, b""
        while True:
            kind, body = self.raw.read()
            everything += body
            if kind == "E":
                state = protocol.error_fields(body)["C"] if state is None else state
            elif kind == "D" and first is None:
                size = int.from_bytes(body[2:6], "big", signed=True)
                first = None if size < 0 else body[6:6 + size].decode()
            elif kind == "G":
                self.raw.send(protocol.message("c"))
            elif kind == "Z":
                return state, first, everything.decode("utf-8", "replace")

    def close(self):
        self.raw.socket.close()


class TenantGuard(unittest.TestCase):
    def everything_of_others(self):
        with house.shard(2) as shard:
            return [shard.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
                    for table in ("orders", "items", "loose")]

    def hostile(self, client):
        before = self.everything_of_others()
        for statement in HOSTILE:
            with self.subTest(statement):
                state, _, everything = client.ask(statement)
                self.assertEqual(state, "KG004", everything)
                # The statement itself may be quoted by nobody either.
                self.assertNotIn("SECRET", everything.replace("'SECRET", ""))
        self.assertEqual(client.ask("SHOW kintsugi.tenant")[1], "tenants(42)")
        self.assertEqual(self.everything_of_others(), before)

    def legitimate(self, client, user):
        for statement, wanted in LEGITIMATE:
            if statement == "DISCARD ALL" and user != TENANT:
                break
            with self.subTest(statement):
                state, first, everything = client.ask(statement)
                self.assertIsNone(state, everything)
                if wanted is not None:
                    self.assertEqual(first, wanted)
                self.assertNotIn("SECRET", everything)

    def test_there_is_enough_of_both(self):
        self.assertGreaterEqual(len(HOSTILE), 60)
        self.assertGreaterEqual(len(LEGITIMATE), 20)

    def test_the_statements_work_for_whoever_is_not_guarded(self):
        """A hostile statement that failed for everybody would show nothing."""
        client = Client(USER, PASSWORD, False)
        works = 0
        for statement in HOSTILE:
            if statement.startswith("SELECT") and "lo_" not in statement and "terminate" not in statement:
                works += client.ask(statement)[0] is None
        client.close()
        self.assertGreaterEqual(works, 25)

    def test_bound_by_the_configuration(self):
        for extended in (False, True):
            client = Client(TENANT, TENANT_PASSWORD, extended)
            self.hostile(client)
            self.legitimate(client, TENANT)
            for statement in ("SET kintsugi.tenant = '43'", "RESET kintsugi.tenant", "SET kintsugi.tenant TO DEFAULT",
                              "SET kintsugi.tenant = 'regions(de)'"):
                self.assertEqual(client.ask(statement)[0], "KG004", statement)
            self.assertIsNone(client.ask("SET kintsugi.tenant = '42'")[0])
            client.close()

    def test_set_by_the_session(self):
        for extended in (False, True):
            client = Client(USER, PASSWORD, extended)
            self.assertIsNone(client.ask("SET kintsugi.tenant = 'tenants(42)'")[0])
            self.hostile(client)
            self.legitimate(client, USER)
            self.assertIsNone(client.ask("RESET kintsugi.tenant")[0])
            self.assertEqual(client.ask("SELECT count(*) FROM orders")[1], "10")
            # There are two maps: the value has to say which.
            self.assertEqual(client.ask("SET kintsugi.tenant = '42'")[0], "22023")
            self.assertEqual(client.ask("SET kintsugi.tenant = 'tenants(x)'")[0], "22P02")
            client.ask("SET kintsugi.tenant = 'tenants(42)'")
            self.assertIsNone(client.ask("DISCARD ALL")[0])
            self.assertEqual(client.ask("SHOW kintsugi.tenant")[1], "")
            self.assertEqual(client.ask("SET LOCAL kintsugi.tenant = 'tenants(42)'")[0], "0A000")
            self.assertEqual(client.ask("SELECT set_config('kintsugi.tenant', 'tenants(42)', false)")[0], "0A000")
            client.ask("BEGIN")
            self.assertIsNone(client.ask("SET kintsugi.tenant = 'tenants(42)'")[0])
            self.assertEqual(client.ask("SELECT count(*) FROM orders WHERE tenant_id = 42")[1], "5")
            self.assertEqual(client.ask("RESET kintsugi.tenant")[0], "25001")
            self.assertEqual(client.ask("SELECT count(*) FROM orders WHERE tenant_id = 42")[0], "25P02")
            client.ask("ROLLBACK")
            self.assertEqual(client.ask("SHOW kintsugi.tenant")[1], "tenants(42)")
            client.close()

    def test_several_statements_in_one_message(self):
        client = Client(TENANT, TENANT_PASSWORD, False)
        for statement in ("SELECT 1; SELECT * FROM orders", "BEGIN; SELECT * FROM orders; COMMIT",
                          "SELECT note FROM orders WHERE tenant_id = 42; SELECT note FROM orders WHERE tenant_id = 43",
                          "SET statement_timeout = 0; SELECT * FROM settings"):
            state, _, everything = client.ask(statement)
            self.assertEqual(state, "KG004", statement)
            self.assertNotIn("SECRET", everything)
            client.ask("ROLLBACK")
        # What ends a failed transaction, and goes on behind it.
        client.ask("BEGIN")
        client.ask("SELECT 1 / 0")
        for statement in ("; ROLLBACK; SELECT * FROM orders", "/* */ ROLLBACK; SELECT * FROM orders",
                          "ROLLBACK; SELECT * FROM settings"):
            state, _, everything = client.ask(statement)
            self.assertIsNotNone(state, statement)
            self.assertNotIn("SECRET", everything)
        client.ask("ROLLBACK")
        self.assertEqual(client.ask("SELECT count(*) FROM orders WHERE tenant_id = 42; SELECT 1")[1], "5")
        client.close()

    def test_the_extended_protocol_with_parameters(self):
        client = Client(TENANT, TENANT_PASSWORD, True)
        raw = client.raw

        def bound(text, *values, name=""):
            lines = raw.ask(protocol.parse(name, text), protocol.bind("", name, [v.encode() for v in values]),
                            protocol.execute(""), protocol.SYNC)
            return " ".join(lines)

        text = "SELECT note FROM orders WHERE tenant_id = $1 AND id = $2"
        self.assertIn("mine", bound(text, "42", "1"))
        self.assertIn("KG004", bound(text, "43", "1"))
        self.assertIn("KG004", bound("SELECT note FROM orders WHERE tenant_id = $1 + 1", "42"))
        self.assertIn("KG004", bound("SELECT note FROM orders WHERE tenant_id = $1::numeric", "42.5"))
        self.assertIn("KG004", bound("SELECT 1 FROM orders WHERE note LIKE $1 AND tenant_id = 42", "SECRET\\"))
        self.assertIn("KG004", bound("INSERT INTO orders (tenant_id, id) VALUES ($1, 9)", "43"))
        # Prepared once, bound with one key and another.
        raw.ask(protocol.parse("s", text), protocol.SYNC)
        for value, wanted in (("42", "mine"), ("43", "KG004"), ("42", "mine")):
            lines = raw.ask(protocol.bind("", "s", [value.encode(), b"1"]), protocol.execute(""), protocol.SYNC)
            self.assertIn(wanted, " ".join(lines))
            self.assertNotIn("SECRET", " ".join(lines))
        # Names of statements and portals that are not this session's.
        for name in ("kt1", "kt_1", "other"):
            lines = " ".join(raw.ask(protocol.bind("", name), protocol.execute(""), protocol.SYNC))
            self.assertRegex(lines, "KG004|26000")
        self.assertIn("34000", " ".join(raw.ask(protocol.execute("not_mine"), protocol.SYNC)))
        # Nothing at all is a statement that drivers send.
        self.assertIn("Z", " ".join(raw.ask(protocol.parse("", ""), protocol.bind("", ""), protocol.execute(""),
                                            protocol.SYNC))[-10:])
        self.assertIn("KG004", bound("-- nothing"))
        # A query in the middle of a batch.
        lines = " ".join(raw.ask(protocol.parse("", "SELECT 1"), protocol.bind("", ""), protocol.execute(""),
                                 protocol.query("SELECT * FROM orders")))
        self.assertNotIn("SECRET", lines)
        self.assertIn("closed", lines)
        client.close()

    def test_what_was_prepared_before_the_tenant_was_set(self):
        client = Client(USER, PASSWORD, True)
        raw = client.raw
        raw.ask(protocol.parse("all", "SELECT note FROM orders ORDER BY note DESC"), protocol.SYNC)
        raw.ask(protocol.parse("some", "SELECT note FROM orders WHERE tenant_id = $1 LIMIT 1"), protocol.SYNC)
        raw.ask(protocol.query("PREPARE whole AS SELECT value FROM settings"))
        raw.ask(protocol.query("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT value FROM settings; COMMIT"))
        raw.ask(protocol.query("SET kintsugi.tenant = 'tenants(42)'"))
        for pieces in ((protocol.bind("", "all"), protocol.execute(""), protocol.SYNC),
                       (protocol.bind("", "some", [b"43"]), protocol.execute(""), protocol.SYNC),
                       (protocol.query("EXECUTE whole"),), (protocol.query("FETCH ALL FROM c"),)):
            lines = " ".join(raw.ask(*pieces))
            self.assertIn("KG004", lines)
            self.assertNotIn("SECRET", lines)
        lines = " ".join(raw.ask(protocol.bind("", "some", [b"42"]), protocol.execute(""), protocol.SYNC))
        self.assertIn("mine", lines)
        client.close()

    def test_at_login(self):
        def refusal(user, password, **startup):
            raw = protocol.RawClient("127.0.0.1", house.port)
            lines = raw.login(user, password, "app", **startup)
            raw.socket.close()
            return None if lines is None else " ".join(lines)

        for startup in ({"search_path": "pg_temp"}, {"options": "-c role=postgres"}, {"client_encoding": "SJIS"},
                        {"options": "-c session_preload_libraries=x"}, {"options": "--kintsugi.tenant=43"},
                        {"options": "-c kintsugi.tenant=43"}, {"options": "-B 5"}, {"kintsugi.tenant": "43"}):
            self.assertIn("KG004", refusal(TENANT, TENANT_PASSWORD, **startup) or "logged in", startup)
        self.assertIsNone(refusal(TENANT, TENANT_PASSWORD, options="-c statement_timeout=5min", DateStyle="ISO"))
        client = Client(USER, PASSWORD, False, options="-c kintsugi.tenant=tenants(42) -c work_mem=4MB")
        self.assertEqual(client.ask("SHOW kintsugi.tenant")[1], "tenants(42)")
        self.assertEqual(client.ask("SHOW work_mem")[1], "4MB")
        self.assertEqual(client.ask("SELECT * FROM orders")[0], "KG004")
        client.close()

    def test_a_router_that_does_not_route_refuses_tenants(self):
        folder = pathlib.Path(house.root, "single")
        folder.mkdir()
        config = folder / "kintsugi.toml"
        shard = f'[server]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "127.0.0.1:0"\n[[shard]]\nname = "s1"\ndsn = "{house.dsn(1)}"\n'
        config.write_text(shard + '[[user]]\nname = "a"\npassword = "b"\ntenant_map = "tenants"\ntenant_key = "42"\n')
        run = subprocess.run([PROGRAM, "serve", "--data", str(folder)], capture_output=True, text=True, timeout=180)
        self.assertEqual(run.returncode, 1)
        self.assertIn('user "a" is bound to a tenant', run.stderr)
        self.assertIn("[map]", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
