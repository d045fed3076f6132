"""Writes over several shards of which a part is read first, beside other transactions: part and write see one moment, as
one PostgreSQL would have it, or the statement is refused; bounded in memory, and stopped by a cancel.
"""

import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, psycopg, wait_until  # noqa: E402

PROGRAM = os.environ["KINTSUGI_PROGRAM"]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Later(threading.Thread):
    """A statement that has to wait for somebody."""

    def __init__(self, connection, sql):
        super().__init__(daemon=True)
        self.connection, self.sql, self.result, self.error = connection, sql, None, None
        self.start()

    def run(self):
        try:
            self.result = self.connection.execute(self.sql)
        except psycopg.Error as error:
            self.error = error


class ReadFirst(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(PROGRAM, shards=3)
        cls.db = cls.house.sql()
        for i in (1, 2, 3):
            cls.db.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
        for name in ("tenants", "places"):
            cls.db.execute(f"CREATE SHARD MAP {name} BY RANGE (bigint)")
            for part, low, high, shard in (("a", "MINVALUE", 1000, 1), ("b", 1000, 2000, 2), ("c", 2000, "MAXVALUE", 3)):
                cls.db.execute(f"CREATE SHARDLET {name}_{part} OF {name} FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")
        cls.db.execute("CREATE TABLE goods (tenant bigint, id int, v int DEFAULT 0, word text) SHARD BY tenants (tenant)")
        cls.db.execute("CREATE TABLE known (place bigint, id int) SHARD BY places (place)")

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        cls.house.close()

    def setUp(self):
        self.db.execute("TRUNCATE goods")
        self.db.execute("TRUNCATE known")
        self.db.execute("INSERT INTO goods VALUES (100, 1), (1500, 2), (2500, 3)")
        self.db.execute("INSERT INTO known VALUES (100, 1), (1500, 2), (2500, 3)")

    def goods(self):
        return self.db.execute("SELECT id, v FROM goods ORDER BY id").fetchall()

    def until_it_waits(self, shard):
        with self.house.shard(shard) as watch:
            watch.autocommit = True
            wait_until("a lock that is waited for", lambda: watch.execute(WAITING).fetchone()[0] > 0)

    def beside(self, sql, first, then, **settings):
        """`sql` meets a transaction on shard 2 that has done `first` when it comes, and does `then`."""
        with self.house.shard(2) as other, self.house.sql() as client:
            other.autocommit = True
            for name, value in settings.items():
                client.execute(f"SET {name} = '{value}'")
            other.execute("BEGIN")
            for statement in first:
                other.execute(statement)
            later = Later(client, sql)
            self.until_it_waits(2)
            for statement in then:
                other.execute(statement)
            later.join(60)
            self.assertFalse(later.is_alive())
            return later

    def test_what_comes_between_part_and_write_is_not_seen_by_halves(self):
        # Both rows come after the part was read and before the write can begin: of one moment, it knows neither.
        later = self.beside("DELETE FROM goods WHERE id NOT IN (SELECT id FROM known)",
                            ["LOCK TABLE goods IN SHARE ROW EXCLUSIVE MODE", "INSERT INTO goods VALUES (1501, 7)", "INSERT INTO known VALUES (1501, 7)"],
                            ["COMMIT"])
        self.assertIsNone(later.error)
        self.assertEqual(later.result.rowcount, 0)
        self.assertEqual(self.goods(), [(1, 0), (2, 0), (3, 0), (7, 0)])

    def test_a_conflict_is_no_error_where_read_committed_would_have_none(self):
        sql = "UPDATE goods SET v = v + (SELECT count(*) FROM known)"
        later = self.beside(sql, ["UPDATE goods SET v = 100 WHERE id = 2", "INSERT INTO known VALUES (1501, 8)"], ["COMMIT"])
        self.assertIsNone(later.error)
        self.assertEqual(later.result.rowcount, 3)
        # Run again, it has seen all of the other.
        self.assertEqual(self.goods(), [(1, 4), (2, 104), (3, 4)])
        for level in ("serializable",):
            later = self.beside(sql, ["UPDATE goods SET v = 0 WHERE id = 2"], ["COMMIT"], default_transaction_isolation=level)
            self.assertEqual(later.error.sqlstate, "40001")
        with self.house.sql() as client:
            client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            client.execute("SELECT count(*) FROM goods")
            self.db.execute("UPDATE goods SET v = 0")
            with self.assertRaises(psycopg.errors.SerializationFailure):
                client.execute(sql)
        self.assertEqual(self.goods(), [(1, 0), (2, 0), (3, 0)])

    def test_in_blocks(self):
        two = ("UPDATE goods SET v = (SELECT max(id) FROM known)", "DELETE FROM goods WHERE id IN (SELECT id FROM known)",
               "DELETE FROM goods USING known WHERE known.id = goods.id",
               "INSERT INTO goods VALUES (1, (SELECT max(id) FROM known), (SELECT min(id) FROM known))")
        one = ("INSERT INTO goods VALUES (1, (SELECT max(id) + 10 FROM known)), (2600, 9)",
               "WITH d AS (DELETE FROM goods RETURNING id) INSERT INTO known SELECT id, id FROM d",
               "WITH d AS (DELETE FROM goods RETURNING id) SELECT count(*) FROM d")
        for level in ("REPEATABLE READ", "SERIALIZABLE", "READ COMMITTED"):
            for sql in two + one:
                with self.db.transaction(force_rollback=True):
                    self.db.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                    if level == "READ COMMITTED" and sql in two:
                        with self.assertRaises(psycopg.Error) as caught, self.db.transaction():
                            self.db.execute(sql)
                        self.assertEqual(caught.exception.sqlstate, "0A000", sql)
                        self.assertIn("READ COMMITTED", str(caught.exception))
                    else:
                        self.db.execute(sql)
                    # Its own writes are seen, and the transaction goes on.
                    self.db.execute("UPDATE goods SET v = 5 WHERE tenant = 100")
        # A role's own level counts as well.
        with self.house.sql() as admin:
            admin.execute("SET default_transaction_isolation = 'repeatable read'")
            with admin.transaction(force_rollback=True):
                for sql in two:
                    admin.execute(sql)
        with self.db.pipeline():
            self.db.execute(two[0])
            self.db.execute("UPDATE goods SET v = v + 1")
        self.assertEqual(self.goods(), [(1, 4), (2, 4), (3, 4)])

    def test_a_part_has_a_bound(self):
        self.db.execute("UPDATE goods SET word = repeat('x', 6000000)")
        big = "SELECT repeat('x', 1000) AS word FROM known CROSS JOIN generate_series(1, 10000)"
        for sql in (f"UPDATE goods SET v = 1 WHERE v::text IN ({big})",
                    "WITH w AS (UPDATE goods SET v = 1 RETURNING word) SELECT count(*) FROM w"):
            with self.assertRaises(psycopg.Error) as caught:
                self.db.execute(sql)
            self.assertEqual(caught.exception.sqlstate, "53400", caught.exception)
            self.assertIn("read first", str(caught.exception))
            self.assertEqual(self.goods(), [(1, 0), (2, 0), (3, 0)])

    def test_it_can_be_cancelled(self):
        sql = "UPDATE goods SET v = (SELECT count(*) FROM known WHERE pg_sleep(100) IS NOT NULL)"
        with self.house.sql() as client:
            later = Later(client, sql)
            with self.house.shard(2) as watch:
                sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                wait_until("the part to run", lambda: watch.execute(sleeping).fetchone()[0] > 0)
            client.cancel()
            later.join(60)
            self.assertFalse(later.is_alive())
            self.assertEqual(later.error.sqlstate, "57014")
            self.assertEqual(client.execute("UPDATE goods SET v = 2 WHERE id IN (SELECT id FROM known)").rowcount, 3)


if __name__ == "__main__":
    unittest.main()
