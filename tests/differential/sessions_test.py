"""A session's things over several shards, beside one PostgreSQL: what ends for the whole session ends on each connection
that is kept, prepared statements notice what their transaction has changed, EXECUTE casts, currval reads its own draw.
"""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, psycopg  # noqa: E402

PROGRAM = os.environ["KINTSUGI_PROGRAM"]
KEYS = (1, 1500, 2500)  # one a shard
LOCKS = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = 'advisory' AND d.datname = current_database() AND objid < 5000"


def outcome(connection, sql, *args, **more):
    """Rows, a tag, or how it is refused."""
    try:
        done = connection.execute(sql, *args, **more)
        return done.fetchall() if done.description else done.statusmessage
    except psycopg.Error as error:
        return error.sqlstate


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(PROGRAM, shards=3)
        cls.db = cls.house.sql()
        for i in (1, 2, 3):
            cls.db.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
        cls.db.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        for name, low, high, shard in (("a", "MINVALUE", 1000, 1), ("b", 1000, 2000, 2), ("c", 2000, "MAXVALUE", 3)):
            cls.db.execute(f"CREATE SHARDLET {name} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")
        with cls.house.shard(1) as shard:
            shard.execute("CREATE DATABASE plain")
        cls.plain = cls.oracle()

    @classmethod
    def tearDownClass(cls):
        cls.plain.close()
        cls.db.close()
        cls.house.close()

    @classmethod
    def oracle(cls):
        return psycopg.connect(cls.house.dsn(1).replace("dbname=d1", "dbname=plain"), autocommit=True)

    def table(self, name, columns, how="SHARD BY tenants (tenant_id)"):
        self.plain.execute(f"CREATE TABLE {name} ({columns})")
        self.db.execute(f"CREATE TABLE {name} ({columns}) {how}")

    def on_each(self, sql):
        answers = []
        for i in (1, 2, 3):
            with self.house.shard(i) as shard:
                answers.append(shard.execute(sql).fetchone()[0])
        return answers

    def same(self, statements, plain=None, routed=None):
        plain, routed = plain or self.plain, routed or self.db
        for sql in statements:
            self.assertEqual(outcome(routed, sql), outcome(plain, sql), sql)

    # ---- what ends for the whole session

    def keep(self, c):
        for key in KEYS:
            c.execute(f"SELECT pg_advisory_lock({key}) FROM kept WHERE tenant_id = {key}")
            c.execute(f"DECLARE c{key} CURSOR WITH HOLD FOR SELECT n FROM kept WHERE tenant_id = {key}")

    def kept(self, c):
        return [outcome(c, f"FETCH c{key}") for key in KEYS], self.on_each(LOCKS)

    def test_what_ends_for_a_session_ends_on_each_connection_that_is_kept(self):
        self.table("kept", "tenant_id bigint NOT NULL, n int")
        self.db.execute("INSERT INTO kept VALUES (1, 1), (1500, 2), (2500, 3)")
        held, gone = [[(1,)], [(2,)], [(3,)]], ["34000"] * 3
        for statements, cursors, locks in (
            (["CLOSE ALL"], gone, [1, 1, 1]),
            (["SELECT pg_advisory_unlock_all()"], held, [0, 0, 0]),
            (["EXPLAIN SELECT pg_advisory_unlock_all()"], held, [1, 1, 1]),
            (["SELECT pg_advisory_unlock_all() WHERE false"], held, [1, 1, 1]),
            (["DISCARD ALL"], gone, [0, 0, 0]),
            (["CLOSE ALL; SELECT pg_advisory_unlock_all()"], gone, [0, 0, 0]),
            (["SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;"], gone, [0, 0, 0]),
            (["BEGIN", "CLOSE ALL", "SELECT pg_advisory_unlock_all()", "ROLLBACK"], gone, [0, 0, 0]),
        ):
            for prepare in (False, True):
                if prepare and ";" in statements[0]:
                    continue
                with self.subTest(statements, prepare=prepare), self.house.sql() as c:
                    self.keep(c)
                    self.assertEqual(self.on_each(LOCKS), [1, 1, 1])
                    for sql in statements:
                        # Parameters make psycopg speak the extended protocol.
                        c.execute(sql, [] if prepare else None, prepare=prepare)
                    self.assertEqual(self.kept(c), (cursors, locks))
                    c.execute("SELECT pg_advisory_unlock_all()")

    def test_a_connection_is_let_go_when_what_tied_it_has_ended(self):
        self.table("freed", "tenant_id bigint NOT NULL, n int")
        self.db.execute("INSERT INTO freed VALUES (1, 1), (1500, 2), (2500, 3)")

        def connections():
            return sum(row[2] for row in self.db.execute("SHOW POOLS").fetchall())

        before = connections()
        clients = [self.house.sql() for _ in range(8)]
        for c in clients:
            for key in KEYS:
                c.execute(f"DECLARE c{key} CURSOR WITH HOLD FOR SELECT n FROM freed WHERE tenant_id = {key}")
            c.execute("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;")
            self.assertEqual(c.execute("SELECT sum(n) FROM freed").fetchone(), (6,))
        # One for each of the router's two threads on each shard, and not one for each client.
        self.assertLessEqual(connections(), before + 6)
        for c in clients:
            c.close()

    def test_what_ends_for_a_session_that_keeps_all_its_connections(self):
        self.table("pooled", "tenant_id bigint NOT NULL, n int")
        self.db.execute("INSERT INTO pooled VALUES (1, 1), (1500, 2), (2500, 3)")
        config = pathlib.Path(self.house.data, "kintsugi.toml")
        written = config.read_text()
        self.db.close()
        self.house.stop()
        config.write_text(written + '[pool]\nmode = "session"\n')
        self.house.start()
        with self.house.sql() as c:
            for sql, locks in (("DISCARD ALL", [0, 0, 0]), ("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;", [0, 0, 0])):
                for key in KEYS:
                    c.execute(f"SELECT pg_advisory_lock({key}) FROM pooled WHERE tenant_id = {key}")
                    c.execute("SET work_mem = '5MB'")
                self.assertEqual(self.on_each(LOCKS), [1, 1, 1])
                c.execute(sql)
                self.assertEqual(self.on_each(LOCKS), locks)
                told = [c.execute(f"SELECT current_setting('work_mem') FROM pooled WHERE tenant_id = {key}").fetchone() for key in KEYS]
                self.assertNotIn(("5MB",), told)
        self.house.stop()
        config.write_text(written)
        self.house.start()
        type(self).db = self.house.sql()

    def test_discard_all_leaves_the_others_settings_as_they_were_at_the_login(self):
        self.table("settled", "tenant_id bigint NOT NULL, n int")
        self.db.execute("INSERT INTO settled VALUES (1, 1), (1500, 2), (2500, 3)")
        with self.house.sql() as c:
            c.execute("SET application_name = 'other'")
            for key in KEYS:
                c.execute(f"DECLARE c{key} CURSOR WITH HOLD FOR SELECT n FROM settled WHERE tenant_id = {key}")
            c.execute("DISCARD ALL")
            told = {c.execute(f"SELECT current_setting('application_name') FROM settled WHERE tenant_id = {key}").fetchone() for key in KEYS}
            self.assertEqual(len(told), 1)
            self.assertNotIn(("other",), told)

    # ---- sequences of the session

    def test_currval_of_what_the_statement_has_drawn(self):
        for c in (self.plain, self.db):
            c.execute("CREATE SEQUENCE drawn")
            c.execute("CREATE SEQUENCE undrawn")
        for statements in (["SELECT nextval('drawn'), currval('drawn')", "SELECT currval('drawn')"], ["SELECT nextval('drawn'), 1 + lastval()"],
                           ["SELECT nextval('drawn'::regclass) AS a, currval('drawn'::regclass) AS b"]):
            with self.house.sql() as c, self.oracle() as plain:
                self.same(statements, plain, c)
        for sql in ("SELECT currval('drawn'), nextval('drawn')", "SELECT nextval('drawn'), currval('undrawn')", "SELECT nextval('drawn') WHERE currval('drawn') > 0",
                    "SELECT CASE WHEN false THEN nextval('drawn') END, currval('drawn')", "SELECT lastval(), nextval('drawn')"):
            with self.subTest(sql), self.house.sql() as c:
                self.assertEqual(outcome(c, sql), "0A000")

    # ---- prepared statements

    def test_a_prepared_statement_in_the_transaction_that_changes_its_columns(self):
        self.table("shaped", "tenant_id bigint NOT NULL, n int")
        self.same(["INSERT INTO shaped VALUES (1, 1), (1500, 2), (2500, 9)"])
        add = "ALTER TABLE shaped ADD COLUMN m int DEFAULT 5"
        for where in ("", " WHERE tenant_id = 1500"):
            sql = f"SELECT * FROM shaped{where} ORDER BY 1"
            for extended in (False, True):
                run = sql if extended else "EXECUTE shape"
                with self.subTest(where=where, extended=extended), self.house.sql() as c, self.oracle() as plain:
                    both = (c, plain)
                    if not extended:
                        for each in both:
                            each.execute("PREPARE shape AS " + sql)
                    for step in (run, "BEGIN", run, "SAVEPOINT s", add, run, "ROLLBACK TO s", run, "COMMIT", run, "BEGIN", add, run, "SELECT 1", "ROLLBACK", run,
                                 "BEGIN", add, "COMMIT", run, "BEGIN", "ALTER TABLE shaped DROP COLUMN m", run, "COMMIT", run):
                        prepare = extended and step == run
                        told = [outcome(each, step, prepare=prepare) for each in both]
                        self.assertEqual(told[0], told[1], step)

    def test_execute_takes_its_arguments_as_postgresql_does(self):
        self.table("given", "tenant_id bigint NOT NULL, n int, v varchar(3), at timestamptz")
        with self.house.sql() as c, self.oracle() as plain:
            self.same(["INSERT INTO given VALUES (1, 1, 'a'), (1500, 2, 'b'), (2500, 9, 'c')",
                       "PREPARE p(int) AS SELECT tenant_id FROM given WHERE n >= $1 ORDER BY 1",
                       "PREPARE b(boolean) AS SELECT count(*) FROM given WHERE $1",
                       "PREPARE i(bigint, int, varchar(2)) AS INSERT INTO given VALUES ($1, $2, $3)",
                       "PREPARE t(text) AS SELECT count(*) FROM given WHERE v = $1"], plain, c)
            for arguments in ("9.0", "1.5", "2.5", "'2'", "2", "-1", "'x'", "NULL", "true", "1::bigint", "'2'::text", "(SELECT 2)", "now()", "99999999999", "n",
                              "count(*)", "(1) + (1)", "1 -- one\n", "((2))", "$1"):
                self.same([f"EXECUTE p({arguments})", f"BEGIN; EXECUTE p({arguments}); COMMIT", "ROLLBACK"], plain, c)
            self.same(["EXECUTE b(1)", "EXECUTE b('t')", "EXECUTE b('t'::text)", "EXECUTE b(true)", "EXECUTE i(3.4, 2.6, 'abcdef')", "EXECUTE i(1501.4, 2.6, 5)",
                       "EXECUTE t('a')", "EXECUTE t(7)", "SELECT tenant_id, n, v FROM given ORDER BY 1"], plain, c)
            self.assertEqual(c.execute("SELECT count(*) FROM pg_prepared_statements WHERE name = 'kg_arguments'").fetchone(), (0,))


if __name__ == "__main__":
    unittest.main(verbosity=2)
