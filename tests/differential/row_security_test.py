"""Roles, row-level security and views over several shards: the rows that one PostgreSQL would show and change, or refused
(0A000, or 42501 where a view has to be opened whose tables the role may not read), never other rows.
"""

import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, psycopg  # noqa: E402

PROGRAM = os.environ["KINTSUGI_PROGRAM"]
BOUNDS = (("a", "MINVALUE", 1000), ("b", 1000, 2000), ("c", 2000, "MAXVALUE"))
PLACED = re.compile(r"\s+(SHARD BY \w+ \(\w+\)|REPLICATED)")

SCHEMA = """
CREATE TABLE acc (tenant bigint, id int, who text, n int, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant)
CREATE TABLE oth (place bigint, id int, who text, n int) SHARD BY places (place)
INSERT INTO acc SELECT t, i, (ARRAY['low', 'high'])[1 + i % 2], i FROM unnest('{100,1500,2500}'::bigint[]) t, generate_series(1, 4) i
INSERT INTO oth SELECT t, i, (ARRAY['low', 'high'])[1 + i % 2], i * 10 FROM unnest('{100,1500,2500}'::bigint[]) t, generate_series(1, 4) i
ALTER TABLE acc ENABLE ROW LEVEL SECURITY
ALTER TABLE oth ENABLE ROW LEVEL SECURITY
CREATE POLICY own ON acc USING (who = current_user)
CREATE POLICY own ON oth USING (who = current_user)
CREATE VIEW all_acc AS SELECT tenant, id, who, n FROM acc
CREATE VIEW all_oth AS SELECT place, id, who, n FROM oth
CREATE VIEW own_oth WITH (security_invoker = true) AS SELECT place, id, who, n FROM oth
CREATE VIEW big_oth WITH (security_barrier) AS SELECT place, id, who, n FROM oth WHERE n > 10
CREATE VIEW timed AS SELECT tenant, id, who, n FROM acc WHERE now() > '2000-01-01'
GRANT SELECT, INSERT, UPDATE, DELETE ON acc, oth, all_acc, all_oth, own_oth, big_oth, timed TO low
GRANT SELECT ON all_acc, all_oth, timed TO viewer
"""

# The same, and what may be refused.
SAME = """
SELECT count(*), sum(n) FROM acc
SELECT count(*) FROM oth
SELECT count(*) FROM all_oth
SELECT count(*) FROM own_oth
SELECT count(*), max(n) FROM big_oth
SELECT a.id, o.n FROM acc a JOIN oth o ON a.id = o.id
SELECT who, count(*) FROM acc GROUP BY who HAVING count(*) > 1
UPDATE acc SET n = n + (SELECT max(n) FROM oth)
UPDATE acc SET n = n + (SELECT max(n) FROM all_oth)
UPDATE acc SET n = o.n FROM oth o WHERE o.id = acc.id AND o.place = 100
UPDATE acc SET n = o.n FROM all_oth o WHERE o.id = acc.id + 1 AND o.place = 100
DELETE FROM acc WHERE id IN (SELECT id FROM big_oth WHERE n > 30)
INSERT INTO acc SELECT place, id + 10, who, n FROM oth
"""
OPENED = """
SELECT a.id, o.n FROM acc a JOIN all_oth o ON a.id = o.id
SELECT a.id, o.n FROM acc a JOIN own_oth o ON a.id = o.id
SELECT a.id, o.n FROM acc a JOIN big_oth o ON a.id = o.id
SELECT count(*) FROM all_acc a JOIN all_acc b ON a.id = b.n
SELECT count(*) FROM timed
"""


class RowSecurity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(PROGRAM, shards=3)
        with cls.house.cluster.admin("postgres") as admin:
            admin.execute("CREATE DATABASE plain")
            for role in ("low", "viewer"):
                admin.execute(f"CREATE ROLE {role} NOLOGIN")
        cls.plain = psycopg.connect(cls.house.dsn(1).replace("dbname=d1", "dbname=plain"), autocommit=True)
        cls.routed = cls.house.sql()
        for i in (1, 2, 3):
            cls.routed.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
        for name, shards in (("tenants", (1, 2, 3)), ("places", (2, 3, 1))):
            cls.routed.execute(f"CREATE SHARD MAP {name} BY RANGE (bigint)")
            for (part, low, high), shard in zip(BOUNDS, shards):
                cls.routed.execute(f"CREATE SHARDLET {name}_{part} OF {name} FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")
        for statement in SCHEMA.strip().splitlines():
            cls.routed.execute(statement)
            cls.plain.execute(PLACED.sub("", statement))

    @classmethod
    def tearDownClass(cls):
        cls.plain.close()
        cls.routed.close()
        cls.house.close()

    @staticmethod
    def answer(connection, statement):
        try:
            cursor = connection.execute(statement)
            return cursor.statusmessage, sorted(cursor.fetchall()) if cursor.description else None
        except psycopg.Error as error:
            return error.sqlstate, None

    def compare(self, statements, *refused):
        for statement in statements.strip().splitlines():
            with self.subTest(statement):
                plain, routed = self.answer(self.plain, statement), self.answer(self.routed, statement)
                if routed[0] in refused:
                    continue
                self.assertEqual(plain, routed)

    def both(self, statement):
        self.plain.execute(statement)
        self.routed.execute(statement)

    def test_a_role_sees_and_changes_its_own_rows(self):
        self.both("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.both("SET LOCAL ROLE low")
        self.compare(SAME)
        self.both("RESET ROLE")
        self.compare("SELECT * FROM acc")
        self.both("ROLLBACK")

    def test_a_role_that_set_config_is_given_as_a_parameter(self):
        given = "SELECT set_config('search_path', %s, true), set_config('request.jwt.claims', %s, true), set_config('role', %s, true)"
        for begin in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"):
            for prepare in (False, True):
                self.both(begin)
                for connection in (self.plain, self.routed):
                    connection.execute(given, ("public, pg_temp", '{"role": "low"}', "low"), prepare=prepare)
                self.compare("SELECT count(*), sum(n) FROM acc WHERE tenant = 1500\nSELECT count(*), sum(n) FROM acc\n"
                             "SELECT DISTINCT current_user::text, current_setting('request.jwt.claims') FROM oth\nUPDATE acc SET n = n + 1")
                self.both("ROLLBACK")
                self.compare("SELECT count(*) FROM acc\nSELECT DISTINCT current_user::text FROM oth WHERE current_user = 'low'")

    def test_a_view_shows_its_owners_rows(self):
        for role in ("low", "viewer"):
            self.both(f"SET ROLE {role}")
            self.compare("SELECT count(*) FROM all_acc\nSELECT count(DISTINCT who) FROM all_acc\nSELECT who, sum(n) FROM all_oth GROUP BY who")
            self.compare(OPENED, "0A000", "42501")
            self.both("RESET ROLE")

    def test_a_role_that_has_no_rights_has_none(self):
        self.both("SET ROLE viewer")
        self.compare("SELECT count(*) FROM acc\nUPDATE acc SET n = 1\nDELETE FROM acc WHERE id IN (SELECT id FROM all_oth)")
        self.both("RESET ROLE")


if __name__ == "__main__":
    unittest.main()
