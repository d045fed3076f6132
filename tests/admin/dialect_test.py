#!/usr/bin/python3
"""The statements of Kintsugi's own, each in every written form, and every SQLSTATE of its own as a driver and as psql get
it: message, detail, hint, and the context that names the shard. argv[1] is the program."""
import os
import pathlib
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, PASSWORD, READER, READER_PASSWORD, USER, psycopg, wait_until  # noqa: E402

house = admin = None


def setUpModule():
    global house, admin
    house = House(PROGRAM, shards=4)
    admin = house.sql()


def tearDownModule():
    admin.close()
    house.close()


def names(cursor):
    return [column.name for column in cursor.description]


class Dialect(unittest.TestCase):
    maxDiff = None

    def refused(self, sql, sqlstate, pattern=".", connection=None, parameters=None):
        with self.assertRaises(psycopg.Error) as caught:
            (connection or admin).execute(sql, parameters)
        self.assertEqual(caught.exception.sqlstate, sqlstate, caught.exception)
        self.assertRegex(str(caught.exception), pattern)
        return caught.exception.diag

    def job(self, sql):
        """A job that is waited for answers with its row."""
        cursor = admin.execute(sql)
        row = dict(zip(names(cursor), cursor.fetchone()))
        self.assertEqual(row["state"], "done", row)
        return row

    def shardlets(self, map="tenants"):
        cursor = admin.execute(f"SHOW SHARDLETS OF {map}")
        at = {name: i for i, name in enumerate(names(cursor))}
        return {row[at["name"]]: (row[at["low"]], row[at["high"]], row[at["shard"]], row[at["state"]]) for row in cursor.fetchall()}

    # The tests are one story, told in the order of their names.

    def test_00_statements_are_prepared_before_there_is_a_shard(self):
        with house.sql() as early:
            for _ in range(2):
                self.assertEqual(early.execute("SHOW SHARDS", prepare=True).fetchall(), [])
            with self.assertRaises(psycopg.Error) as caught:
                early.execute("SELECT 1", prepare=True)
            self.assertEqual(caught.exception.sqlstate, "KG005")

    def test_00b_everything_is_answered_before_there_is_a_shard(self):
        """By rows or by an error: a plan for no shard at all ended the router, or answered nothing."""
        statements = ["SELECT 1", "SELECT * FROM t", "BEGIN", "SELECT 1", "ROLLBACK", "SAVEPOINT a", "SET work_mem = '4MB'", "SHOW work_mem", "DISCARD ALL",
                      "LISTEN x", "NOTIFY x", "PREPARE p AS SELECT 1", "EXECUTE p", "DEALLOCATE ALL", "DECLARE c CURSOR FOR SELECT 1", "FETCH c", "VACUUM",
                      "CREATE TABLE t (a int)", "CREATE TABLE t (a int) REPLICATED", "CREATE TABLE t (a int) SHARD BY early (a)", "INSERT INTO t VALUES (1)",
                      "DROP TABLE t", "TRUNCATE t", "EXPLAIN SELECT 1", "EXPLAIN (ROUTE) SELECT 1", "CREATE SCHEMA s", "CREATE SEQUENCE q", "GRANT SELECT ON t TO app",
                      "DO $$ BEGIN END $$", "SET kintsugi.tenant = '42'", "SHOW kintsugi.tenant", "SET kintsugi.shard_new_tables = 'early(a)'", "SELECT 1; SELECT 2",
                      "SHOW SHARDS; SHOW JOBS", "SHOW STATS", "SHOW POOLS", "CREATE SHARD MAP early BY HASH (int) SHARDLETS 4", "REBALANCE", "DRAIN SHARD x",
                      "MOVE SHARDLET a TO SHARD b", "ROLLBACK PREPARED 'x'", "LOCK TABLE t", "ALTER TABLE t SHARD BY early (a)", "CHECKPOINT", "SELEC", ""]
        for prepare in (None, True):
            with house.sql() as early:
                for statement in statements:
                    try:
                        early.execute(statement, prepare=prepare)
                    except psycopg.Error as error:
                        self.assertIsNotNone(error.sqlstate, (statement, prepare, str(error)))
        self.assertIsNone(house.process.poll())

    def test_01_shards(self):
        for n in (1, 2, 3):
            self.assertEqual(admin.execute(f"CREATE SHARD s{n} DSN '{house.dsn(n)}'").statusmessage, "CREATE SHARD")
        self.assertEqual(admin.execute(f"ALTER SHARD s1 SET DSN '{house.dsn(1)} connect_timeout=9'").statusmessage, "ALTER SHARD")
        self.assertIn("connect_timeout=9", dict((r[0], r[1]) for r in admin.execute("SHOW SHARDS").fetchall())["s1"])
        self.assertEqual(admin.execute("DROP SHARD s3").statusmessage, "DROP SHARD")
        admin.execute(f"create shard s3 dsn '{house.dsn(3)}';")
        self.assertEqual([r[0] for r in admin.execute("show shards").fetchall()], ["s1", "s2", "s3"])
        self.refused("ALTER SHARD s1 SET DSN '" + house.dsn(4) + "'", "55000")
        self.refused("DROP SHARD nowhere", "42704", 'shard "nowhere" does not exist')

    def test_02_maps_and_shardlets(self):
        self.assertEqual(admin.execute("CREATE SHARD MAP tenants BY RANGE (bigint)").statusmessage, "CREATE SHARD MAP")
        admin.execute("CREATE SHARD MAP regions BY LIST (text)")
        admin.execute("CREATE SHARD MAP docs BY HASH (uuid) SHARDLETS 64 ON SHARDS (s1, s2)")
        docs = self.shardlets("docs")
        self.assertEqual(len(docs), 64)
        self.assertEqual({shard: sum(1 for s in docs.values() if s[2] == shard) for shard in ("s1", "s2")}, {"s1": 32, "s2": 32})
        self.assertEqual(admin.execute("DROP SHARD MAP docs").statusmessage, "DROP SHARD MAP")
        self.refused("CREATE SHARD MAP docs BY HASH (uuid) SHARDLETS 0", "42601", "one shardlet or more")
        self.assertEqual(admin.execute("CREATE SHARDLET a OF tenants FOR VALUES FROM (MINVALUE) TO (1000) ON SHARD s1").statusmessage,
                         "CREATE SHARDLET")
        admin.execute("CREATE SHARDLET z OF tenants FOR VALUES FROM (1000) TO (2000) ON SHARD s2")
        admin.execute("CREATE SHARDLET eu OF regions FOR VALUES IN ('de', 'fr') ON SHARD s2")
        self.assertEqual(admin.execute("ALTER SHARDLET a RENAME TO b").statusmessage, "ALTER SHARDLET")
        for state, shown in (("OFFLINE", "offline"), ("READ ONLY", "read only"), ("ONLINE", "online")):
            admin.execute(f"ALTER SHARDLET b SET {state}")
            self.assertEqual(self.shardlets()["b"], ("MINVALUE", "1000", "s1", shown))
        admin.execute("ALTER SHARDLET b RENAME TO a")
        admin.execute("CREATE SHARDLET gone OF tenants FOR VALUES FROM (5000) TO (MAXVALUE) ON SHARD s1")
        self.assertEqual(admin.execute("DROP SHARDLET gone").statusmessage, "DROP SHARDLET")

    def test_03_tables(self):
        admin.execute("CREATE TABLE orders (tenant_id bigint NOT NULL, id bigint, note text, PRIMARY KEY (tenant_id, id)) "
                      "SHARD BY tenants (tenant_id)")
        admin.execute("CREATE TABLE plans (name text PRIMARY KEY, price int) REPLICATED")
        for n in (1, 2, 3):
            with house.shard(n) as shard:
                shard.execute("CREATE TABLE lines (tenant_id bigint, n int, PRIMARY KEY (tenant_id, n)); CREATE TABLE rates (id int PRIMARY KEY)")
        with house.shard(1) as shard:
            shard.execute("INSERT INTO lines VALUES (1, 1), (999, 2)")
        admin.execute("ALTER TABLE lines SHARD BY tenants (tenant_id)")
        admin.execute("ALTER TABLE rates REPLICATED")
        notices = []
        admin.add_notice_handler(lambda said: notices.append(said.message_primary))
        self.assertEqual(admin.execute("ALTER TABLE IF EXISTS nothing SHARD BY tenants (tenant_id)").statusmessage, "ALTER TABLE")
        self.assertEqual(notices, ["table public.nothing does not exist, skipping"])
        for n in (1, 2, 3):
            with house.shard(n) as shard:
                shard.execute("CREATE TABLE people (id bigint PRIMARY KEY, tenant_id bigint)")
        admin.execute("ALTER TABLE people SHARD BY tenants (tenant_id)")
        self.assertIn("people_pkey (id)", notices[1])
        admin.execute("DROP TABLE people")
        self.assertEqual(self.refused("ALTER TABLE nothing SHARD BY tenants (tenant_id)", "42P01", "table public.nothing does not exist").message_detail,
                         'So it is on shard "s1".')
        self.refused("ALTER TABLE nothing REPLICATED", "42P01")
        self.assertEqual(admin.execute("SHOW SHARDED TABLES").fetchall(),
                         [("public.lines", "sharded", "tenants", "tenant_id"), ("public.orders", "sharded", "tenants", "tenant_id"),
                          ("public.plans", "replicated", None, None), ("public.rates", "replicated", None, None)])
        self.assertEqual(admin.execute("SELECT count(*) FROM lines").fetchone(), (2,))

    def test_03b_schemas_that_are_renamed_and_dropped_in_one_transaction_take_their_tables_along(self):
        placed = lambda: {row[0] for row in admin.execute("SHOW SHARDED TABLES").fetchall() if row[0].startswith("sh")}  # noqa: E731
        admin.execute("CREATE SCHEMA shelf")
        admin.execute("CREATE TABLE shelf.books (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
        admin.execute("INSERT INTO shelf.books VALUES (1), (1500)")
        with admin.transaction():
            admin.execute("ALTER SCHEMA shelf RENAME TO shed")
            self.assertEqual(admin.execute("SELECT count(*) FROM shed.books").fetchone(), (2,))
            admin.execute("ALTER SCHEMA shed RENAME TO shelf")
        self.assertEqual(placed(), {"shelf.books"})
        self.assertEqual(admin.execute("SELECT count(*) FROM shelf.books").fetchone(), (2,))
        with admin.transaction():
            admin.execute("CREATE TABLE shelf.more (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
            admin.execute("DROP SCHEMA shelf CASCADE")
        self.assertEqual(placed(), set())

    def test_04_new_tables_as_an_orm_makes_them(self):
        with house.sql() as orm:
            orm.execute("SET kintsugi.shard_new_tables = 'tenants(tenant_id)'")
            orm.execute("CREATE TABLE invoices (tenant_id bigint NOT NULL, id serial, PRIMARY KEY (tenant_id, id))")
            orm.execute("CREATE TABLE django_migrations (id serial PRIMARY KEY, app text)")
            placed = {row[0] for row in orm.execute("SHOW SHARDED TABLES").fetchall()}
            self.assertIn("public.invoices", placed)
            self.assertNotIn("public.django_migrations", placed)
            orm.execute("RESET kintsugi.shard_new_tables")
            # In one message, too: what follows a SET is about other names.
            orm.execute("SET kintsugi.shard_new_tables = 'tenants(tenant_id)'; CREATE TABLE together (tenant_id bigint PRIMARY KEY); CREATE TABLE apart (b int)")
            placed = {row[0] for row in orm.execute("SHOW SHARDED TABLES").fetchall()}
            self.assertEqual(("public.together" in placed, "public.apart" in placed), (True, False))
            orm.execute("RESET kintsugi.shard_new_tables; DROP TABLE together; DROP TABLE apart; CREATE SCHEMA elsewhere")
            orm.execute("CREATE TABLE elsewhere.things (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
            orm.execute("CREATE TABLE things (tenant_id bigint PRIMARY KEY)")
            orm.execute("SET search_path = elsewhere; INSERT INTO things VALUES (1), (1500); SELECT count(*) FROM things")
            orm.execute("RESET search_path")
            self.assertEqual(orm.execute("SELECT (SELECT count(*) FROM things), (SELECT count(*) FROM elsewhere.things)").fetchone(), (0, 2))
            self.assertEqual(orm.execute("SELECT count(*) FROM elsewhere.things WHERE tenant_id = 1500").fetchone(), (1,))
            orm.execute("DROP TABLE things")
            orm.execute("DROP TABLE elsewhere.things")
            orm.execute("DROP SCHEMA elsewhere")
            orm.execute("CREATE TABLE plain (tenant_id bigint)")
            self.assertNotIn("public.plain", {row[0] for row in orm.execute("SHOW SHARDED TABLES").fetchall()})
            self.refused("SET kintsugi.shard_new_tables = 'tenants'", "22023", "names no map and column", orm)
            # A misspelt setting of ours would be kept, and guard nothing.
            said = self.refused("SET kintsugi.tennant = 'tenants(1)'", "42602", 'invalid configuration parameter name "kintsugi.tennant"', orm)
            self.assertIn("kintsugi.tenant", said.message_hint)
            orm.execute("SET kintsugi.shard_new_tables = 'nowhere(tenant_id)'")
            self.refused("CREATE TABLE more (tenant_id bigint)", "42704", 'shard map "nowhere" does not exist', orm)
            orm.execute("RESET kintsugi.shard_new_tables")
            orm.execute("DROP TABLE plain, django_migrations")
            orm.execute("DROP TABLE invoices")

    def test_05_jobs(self):
        for k in (1, 600, 1500):
            admin.execute(f"INSERT INTO orders SELECT {k}, g, 'x' FROM generate_series(1, 50) g")
        cursor = admin.execute("SPLIT SHARDLET a AT (500)")
        row = dict(zip(names(cursor), cursor.fetchone()))
        self.assertEqual((row["type"], row["target"]), ("split", "a"))
        self.assertEqual(names(admin.execute("SHOW JOBS")), ["id", "type", "target", "state", "progress", "error"])
        wait_until("the split", lambda: admin.execute(f"SHOW JOB {row['id']}").fetchone()[3] == "done")
        left, right = [name for name, s in self.shardlets().items() if s[2] == "s1"]
        self.job(f"MERGE SHARDLETS {left}, {right} INTO a WITH (wait = true)")
        self.job("SPLIT SHARDLET a INTO (l, r) WITH (wait = true)")  # in the middle of the data
        self.assertEqual(admin.execute("SELECT count(*) FROM orders WHERE tenant_id < %s", [self.shardlets()["r"][0]]).fetchone(), (50,))
        self.job("MERGE SHARDLETS l, r INTO a WITH (wait = true)")
        self.job("SPLIT SHARDLET a AT (500) INTO (l, r) MOVE r TO SHARD s2 WITH (wait = true)")
        self.assertEqual(self.shardlets()["l"], ("MINVALUE", "500", "s1", "online"))
        self.assertEqual(self.shardlets()["r"], ("500", "1000", "s2", "online"))
        self.job("MERGE SHARDLETS l, r INTO a ON SHARD s1 WITH (wait = true)")
        self.assertEqual(self.shardlets()["a"], ("MINVALUE", "1000", "s1", "online"))
        self.job("SPLIT SHARDLET a AT (500) INTO (l, r) MOVE l TO SHARD s3 WITH (wait = true)")
        self.job("MOVE SHARDLET l TO SHARD s2 WITH (wait = true, mode = online, max_rate = '50MB/s')")
        self.job("MOVE SHARDLET l TO SHARD s1 WITH (wait = true, mode = offline)")
        self.job("MERGE SHARDLETS l, r INTO a WITH (wait = true)")
        self.assertEqual(set(self.shardlets()), {"a", "z"})
        # Rows are counted right at a rate at which each of them is waited for.
        admin.execute("CREATE SHARDLET tiny OF tenants FOR VALUES FROM (5000) TO (6000) ON SHARD s1")
        admin.execute("INSERT INTO orders VALUES (5000, 1, 'x')")
        self.assertRegex(self.job("MOVE SHARDLET tiny TO SHARD s2 WITH (wait = true, max_rate = 100)")["progress"], "^1 of 1 rows, ")
        admin.execute("DELETE FROM orders WHERE tenant_id = 5000")
        admin.execute("DROP SHARDLET tiny")
        self.assertEqual(admin.execute("SELECT count(*), count(DISTINCT tenant_id) FROM orders").fetchone(), (150, 3))
        for n, rows in ((1, 100), (2, 50), (3, 0)):
            with house.shard(n) as shard:
                self.assertEqual(shard.execute("SELECT count(*) FROM orders").fetchone(), (rows,), n)

    def test_06_rebalance_drain_cancel_resume(self):
        for sql in ("REBALANCE WITH (dry_run = true)", "REBALANCE SHARD MAP tenants WITH (dry_run = true)", "DRAIN SHARD s1 WITH (dry_run = true)"):
            cursor = admin.execute(sql)
            self.assertEqual(names(cursor), ["map", "shardlet", "from", "to", "rows", "bytes"])
        before = self.shardlets()
        self.job("DRAIN SHARD s1 WITH (wait = true)")
        self.assertNotIn("s1", {s[2] for s in self.shardlets().values()})
        self.assertEqual(house.cli("shard", "set", "s1", "--state", "online")[0], 0)
        self.job("REBALANCE SHARD MAP tenants WITH (wait = true)")
        self.job("REBALANCE WITH (wait = true)")
        self.assertEqual(set(self.shardlets()), set(before))
        name, place = next(iter(self.shardlets().items()))
        to = next(s for s in ("s1", "s2", "s3") if s != place[2])
        with house.shard(int(place[2][1])) as holder:
            holder.autocommit = False
            holder.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
            job = admin.execute(f"MOVE SHARDLET {name} TO SHARD {to}").fetchone()[0]
            self.assertEqual(admin.execute(f"CANCEL JOB {job}").statusmessage, "CANCEL JOB")
            wait_until("its end", lambda: admin.execute(f"SHOW JOB {job}").fetchone()[3] == "canceled", 40)
            holder.rollback()
        self.assertEqual(self.shardlets()[name][2], place[2])
        self.assertEqual(admin.execute(f"RESUME JOB {job}").statusmessage, "RESUME JOB")
        wait_until("its end", lambda: admin.execute(f"SHOW JOB {job}").fetchone()[3] == "done", 40)
        self.assertEqual(self.shardlets()[name][2], to)
        self.refused("SHOW JOB 4711", "42704")
        self.refused("SHOW JOB '1 or so'", "42704", 'job "1 or so" does not exist')
        self.refused("CANCEL JOB 4711", "42704")
        self.refused(f"CANCEL JOB {job}", "55000")

    def test_07_show_and_explain(self):
        for sql, columns in (("SHOW SHARDS", ["name", "dsn", "state"]), ("SHOW SHARD MAPS", ["name", "kind", "key"]),
                             ("SHOW SHARDLETS", ["name", "map", "low", "high", "values", "shard", "state"]),
                             ("SHOW SHARDLETS OF regions", ["name", "map", "values", "shard", "state"]),
                             ("SHOW SHARDED TABLES", ["name", "map", "key"]),
                             ("SHOW JOBS", ["id", "type", "target", "state", "progress", "error"]),
                             ("SHOW JOB 1", ["id", "type", "target", "state", "progress", "error"]),
                             ("SHOW ROUTERS", ["name", "epoch"]), ("SHOW POOLS", ["shard"]), ("SHOW STATS", ["name", "value"])):
            with self.subTest(sql):
                cursor = admin.execute(sql)
                self.assertEqual(set(columns) - set(names(cursor)), set())
                self.assertTrue(cursor.fetchall())
                # And for a client that describes before it executes, with binary results.
                self.assertTrue(admin.execute(sql, binary=True, prepare=True).fetchall())
        plan = "\n".join(row[0] for row in admin.execute("EXPLAIN (ROUTE) SELECT tenant_id, count(*) FROM orders GROUP BY 1 ORDER BY 2").fetchall())
        self.assertRegex(plan, "tier [23]")
        self.assertIn("tier 1", admin.execute("EXPLAIN (ROUTE) SELECT * FROM orders WHERE tenant_id = 1").fetchone()[0])
        # As drivers send what stands in the query for a value.
        shards = {1: self.shardlets()[next(n for n, s in self.shardlets().items() if s[0] == "MINVALUE")][2], 1500: self.shardlets()["z"][2]}
        for tenant, shard in shards.items():
            for how in ({}, {"prepare": True}, {"binary": True}):
                cursor = admin.execute("EXPLAIN (ROUTE) SELECT * FROM orders WHERE tenant_id = %s AND note = %s", (tenant, "x"), **how)
                self.assertRegex(cursor.fetchone()[0], f"^tier 1: route to {shard}, ")
        self.refused("EXPLAIN (ROUTE) SELECT nothing FROM orders WHERE tenant_id = %s", "42703", parameters=(1,))
        before = admin.execute("SELECT count(*) FROM orders").fetchone()
        admin.execute("EXPLAIN (ROUTE) DELETE FROM orders")
        self.assertEqual(admin.execute("SELECT count(*) FROM orders").fetchone(), before, "runs nothing")
        with house.sql(READER, READER_PASSWORD) as reader:
            self.assertTrue(reader.execute("SHOW SHARDLETS").fetchall())
            self.assertTrue(reader.execute("EXPLAIN (ROUTE) SELECT * FROM orders").fetchall())
            self.refused("MERGE SHARDLETS a, z", "42501", connection=reader)
            # Nor does what it makes change the map; a table of the home shard does not.
            for sql in ("CREATE TABLE mine (tenant_id bigint) SHARD BY tenants (tenant_id)", "CREATE TABLE mine (id int) REPLICATED"):
                self.assertIn("reader", self.refused(sql, "42501", connection=reader).message_hint)
            reader.execute("SET kintsugi.shard_new_tables = 'tenants(tenant_id)'")
            self.refused("CREATE TABLE mine (tenant_id bigint)", "42501", connection=reader)
            self.assertEqual(admin.execute("SELECT to_regclass('mine')").fetchone(), (None,))
            reader.execute("PREPARE one AS SELECT * FROM orders WHERE tenant_id = 1")
            self.assertIn("query itself", self.refused("EXPLAIN (ROUTE) EXECUTE one", "0A000", connection=reader).message_hint)

    def test_07b_what_is_nearly_a_statement_of_ours_is_told_its_form(self):
        for sql, form in (("SPLIT SHARDLET a AT (500) INTO (l)", "SPLIT SHARDLET name [AT (key)]"), ("MOVE SHARDLET a TO s2", "MOVE SHARDLET name TO SHARD shard"),
                          ("ALTER SHARDLET a SET SLEEPING", "ONLINE | READ ONLY"), ("CREATE SHARD s9", "CREATE SHARD name DSN"),
                          ("create  shard /* ! */ map x by ring (int)", "BY RANGE | LIST"), ("SHOW SHARDLET a", "SHOW SHARDLETS [OF map]"),
                          ("CANCEL 5", "CANCEL JOB number"), ("CREATE TABLE t (tenant_id bigint) SHARD BY tenants", "SHARD BY map (column, ...)"),
                          ("CREATE TABLE t SHARD BY tenants (x) AS SELECT 1 AS x", "SHARD BY map (column, ...)"), ("ALTER TABLE t SHARD BY (x)", "SHARD BY map (column, ...)"), ("DRAIN s1", "DRAIN SHARD name"), ("SHOW JOB", "")):
            for prepared in (False, True):
                with self.subTest(sql, prepared=prepared), self.assertRaises(psycopg.Error) as caught:
                    admin.execute(sql, prepare=prepared)
                if form:
                    self.assertEqual(caught.exception.sqlstate, "42601")
                    self.assertIn(form, caught.exception.diag.message_hint)
        self.assertIsNone(self.refused("SELEC 1", "42601").message_hint)

    def test_07c_settings_of_its_own_are_shown_before_and_after_they_are_set(self):
        with house.sql() as session:
            for name, value in (("kintsugi.tenant", "tenants(7)"), ("kintsugi.shard_new_tables", "tenants(tenant_id)")):
                for prepared in (False, True):
                    with self.subTest(name, prepared=prepared):
                        def shown():
                            cursor = session.execute(f"SHOW {name}", prepare=prepared)
                            return names(cursor), cursor.fetchall(), cursor.statusmessage
                        self.assertEqual(shown(), ([name], [("",)], "SHOW"))
                        session.execute(f"SET {name} = '{value}'")
                        self.assertEqual(shown(), ([name], [(value,)], "SHOW"))
                        session.execute(f"RESET {name}")
                        self.assertEqual(shown(), ([name], [("",)], "SHOW"))
            with session.transaction(force_rollback=True):
                session.execute("SET LOCAL kintsugi.shard_new_tables = 'regions(code)'")
                self.assertEqual(session.execute("SHOW kintsugi.shard_new_tables").fetchone(), ("regions(code)",))
            self.assertEqual(session.execute("SHOW kintsugi.shard_new_tables").fetchone(), ("",))
            # regions has no table: a key alone is one of tenants.
            for value in ("7", "tenants(7)", "tenants (7)", '"tenants"(7)'):
                session.execute(f"SET kintsugi.tenant = '{value}'")
                self.assertEqual(session.execute("SHOW kintsugi.tenant").fetchone(), ("tenants(7)",))
            session.execute("RESET kintsugi.tenant")
            self.refused("SET kintsugi.tenant = 'tennants(7)'", "42704", 'shard map "tennants" does not exist', connection=session)

    def test_07d_analyze_of_everything_does_not_wait_for_itself(self):
        """The shards are databases of one server, which share some of the catalogues that it locks."""
        with house.sql() as session:
            session.execute("SET statement_timeout = '60s'")
            self.assertEqual(session.execute("ANALYZE").statusmessage, "ANALYZE")
            self.assertEqual(session.execute("VACUUM (ANALYZE) orders").statusmessage, "VACUUM")
            with session.transaction():
                self.assertEqual(session.execute("ANALYZE orders").statusmessage, "ANALYZE")
            with self.assertRaises(psycopg.Error) as caught, session.transaction():
                session.execute("ANALYZE")
            self.assertEqual(caught.exception.sqlstate, "25001")

    def test_07e_what_databases_of_one_server_share_is_not_waited_for_without_end(self):
        """A role is all databases' of a server: made on one shard in a transaction that is open, it is in the way on the next."""
        self.refused("CREATE ROLE somebody", "40P01")
        self.refused(f"ALTER ROLE {READER} SET work_mem = '5MB'", "40P01")
        self.assertEqual(admin.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'somebody'").fetchone(), (0,))

    def test_08_clients_that_look_around(self):
        run = subprocess.run(["psql", "-XAt", "-c", r"\d orders", "-c", r"\dt", "-c", r"\d+ plans", "-c", r"\l", "-c", r"\conninfo"],
                             capture_output=True, text=True, env={**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(house.port),
                                                                  "PGDATABASE": "app", "PGUSER": USER, "PGPASSWORD": PASSWORD})
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("tenant_id|bigint||not null|", run.stdout)
        self.assertEqual(run.stdout.count("|plans|table|"), 1)
        self.assertEqual(admin.execute("SELECT count(*) FROM information_schema.tables WHERE table_name = 'orders'").fetchone(), (1,))

    def test_09_errors_of_its_own(self):
        said = self.refused("INSERT INTO orders VALUES (7000, 1, 'x')", "KG001", "7000")
        self.assertTrue(said.message_hint)
        self.refused("SELECT * FROM orders WHERE tenant_id = 7000", "KG001", "7000")
        self.refused("INSERT INTO orders (id) VALUES (1)", "KG003", "tenant_id")
        self.refused("INSERT INTO orders (tenant_id, id) VALUES (NULL, 1)", "KG003", "tenant_id")
        admin.execute("ALTER SHARDLET a SET READ ONLY")
        self.assertEqual(admin.execute("SELECT count(*) FROM orders WHERE tenant_id = 1").fetchone(), (50,))
        self.refused("UPDATE orders SET note = 'y' WHERE tenant_id = 1", "KG002", "shardlet a is read only")
        admin.execute("ALTER SHARDLET a SET OFFLINE")
        self.refused("SELECT * FROM orders WHERE tenant_id = 1", "KG002", "shardlet a is offline")
        self.refused("SELECT count(*) FROM orders", "KG002")
        admin.execute("ALTER SHARDLET a SET ONLINE")
        said = self.refused("CREATE UNIQUE INDEX ON orders (id)", "0A000")
        self.assertIn("tenant_id, id", said.message_hint)
        with house.sql() as tenant:
            tenant.execute("SET kintsugi.tenant = 'tenants(1)'")
            self.assertEqual(tenant.execute("SELECT count(*) FROM orders WHERE tenant_id = 1").fetchone(), (50,))
            said = self.refused("SELECT count(*) FROM orders WHERE tenant_id = 1500", "KG004", connection=tenant)
            self.assertTrue(said.message_detail)
        self.refused("CREATE SHARD s9 DSN 'host=127.0.0.1 port=1 dbname=x'", "KG005", "s9")
        self.refused("SET statement_timeout = '50ms'; SELECT pg_sleep(5) FROM orders WHERE tenant_id = 1", "57014")
        admin.execute("SET statement_timeout = 0")

    def test_10_the_context_of_postgresqls_own_errors_names_the_shard(self):
        shard = self.shardlets()["a"][2]
        for statement in ("SELECT 1 / (id - id) FROM orders WHERE tenant_id = 1", "INSERT INTO orders VALUES (1, 1, 'twice')",
                          "SELECT sum(1 / (id - id)) FROM orders", "SELECT nothing FROM orders WHERE tenant_id = 1"):
            for prepared in (False, True):
                with self.subTest(statement, prepared=prepared), self.assertRaises(psycopg.Error) as caught:
                    admin.execute(statement, prepare=prepared)
                self.assertRegex(caught.exception.diag.context or "", 'shard "?s[123]"?', statement)
                if "tenant_id = 1" in statement or "INSERT" in statement:
                    self.assertIn(shard, caught.exception.diag.context)

    def test_11_a_limit_and_the_move_under_a_transaction(self):
        with house.sql() as mover, house.sql() as held:
            place = self.shardlets()["a"][2]
            to = next(s for s in ("s1", "s2", "s3") if s != place)
            held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            held.execute("SELECT count(*) FROM orders WHERE tenant_id = 1")
            mover.execute(f"MOVE SHARDLET a TO SHARD {to}")
            wait_until("the move", lambda: self.shardlets()["a"][2] == to, 40)
            said = self.refused("UPDATE orders SET note = 'late' WHERE tenant_id = 1", "40001", connection=held)
            self.assertTrue(said.message_primary)
            held.execute("ROLLBACK")
            held.execute("UPDATE orders SET note = 'again' WHERE tenant_id = 1")
            wait_until("its end", lambda: all(r[3] in ("done", "canceled") for r in admin.execute("SHOW JOBS").fetchall()), 40)

    def test_12_a_shard_that_is_away(self):
        with house.cluster.admin("postgres") as root:
            root.execute("ALTER DATABASE d3 ALLOW_CONNECTIONS false")
            root.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'd3'")
        try:
            admin.execute("CREATE SHARDLET far OF tenants FOR VALUES FROM (9000) TO (9100) ON SHARD s3")
            said = self.refused("SELECT * FROM orders WHERE tenant_id = 9001", "KG005", "s3")
            self.assertIn("s3", said.message_primary)
        finally:
            with house.cluster.admin("postgres") as root:
                root.execute("ALTER DATABASE d3 ALLOW_CONNECTIONS true")


if __name__ == "__main__":
    unittest.main(verbosity=1)
