"""The copies of a replicated table stay the same, to the last digit, whatever is written into it, or the statement is
refused: its rows lie in another order on each shard here, as they do after a while of updates and vacuums.
"""

import os
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, psycopg  # noqa: E402

PROGRAM = os.environ["KINTSUGI_PROGRAM"]
SHARDS = (1, 2, 3)
SEEN = "SELECT coalesce(string_agg(x::text, ';' ORDER BY x::text), '') FROM {} x"

# Answered, or refused with 0A000.
WRITTEN = """
UPDATE plans SET name = (SELECT name FROM words LIMIT 1)
UPDATE plans SET name = (SELECT name FROM words ORDER BY place LIMIT 1)
UPDATE plans SET name = (SELECT string_agg(name, ',') FROM words)
UPDATE plans SET name = (SELECT array_agg(name ORDER BY place)::text FROM words)
UPDATE plans SET name = (SELECT sum(weight)::text FROM words)
UPDATE plans SET name = (SELECT json_agg(w)::text FROM words w)
WITH w AS (SELECT * FROM words LIMIT 1) UPDATE plans SET name = (SELECT name FROM w), n = (SELECT place FROM w)
UPDATE plans SET name = (SELECT name FROM words ORDER BY name LIMIT 1) WHERE id = 3
UPDATE plans SET name = (SELECT max(name) FROM words w WHERE w.place = plans.id)
UPDATE plans SET name = s.name FROM (SELECT DISTINCT ON (place) place, name FROM words ORDER BY place, name) s WHERE s.place = plans.id
UPDATE plans SET name = s.name FROM (VALUES (1, 'one'), (2, 'two')) s (id, name) WHERE s.id = plans.id
UPDATE plans SET name = p.name || '!' FROM plans p WHERE p.id = plans.id
UPDATE seen_plans SET name = s.name FROM (SELECT place, min(name) AS name FROM words GROUP BY place) s WHERE s.place = seen_plans.id
UPDATE plans SET n = n + 1 WHERE id IN (SELECT place FROM words)
UPDATE plans SET n = 1 WHERE id = (SELECT place FROM words LIMIT 1)
DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE id > 100 LIMIT 1)
INSERT INTO plans SELECT 20 + place, name FROM words ON CONFLICT (id) DO NOTHING
INSERT INTO plans SELECT 20 + place, name || '?' FROM words ON CONFLICT (id) DO NOTHING
INSERT INTO plans SELECT DISTINCT ON (place) 30 + place, name FROM words
INSERT INTO plans SELECT 40 + row_number() OVER (), name FROM words
INSERT INTO plans SELECT 50 + row_number() OVER (ORDER BY place), name FROM words
INSERT INTO plans VALUES (60, (SELECT name FROM words LIMIT 1))
INSERT INTO plans SELECT 61, string_agg(name, '') FROM words
INSERT INTO plans SELECT 62, ctid::text FROM words WHERE name = 'c'
INSERT INTO made (id) VALUES (1), (2)
INSERT INTO made (id, own) VALUES (3, DEFAULT)
INSERT INTO made (id) SELECT id + 10 FROM plans
MERGE INTO plans p USING (SELECT place, max(name) AS name FROM words GROUP BY place) s ON p.id = s.place WHEN MATCHED THEN UPDATE SET name = s.name
"""

REFUSED = """
UPDATE plans SET name = s.name FROM words s WHERE s.place = plans.id
UPDATE seen_plans SET name = s.name FROM words s WHERE s.place = seen_plans.id
UPDATE plans SET name = s.name FROM (VALUES (1, 'one'), (1, 'two')) s (id, name) WHERE s.id = plans.id
UPDATE plans SET name = s.name FROM (SELECT DISTINCT ON (place) place, name FROM words) s WHERE s.place = plans.id
UPDATE plans SET name = (SELECT name FROM words WHERE place = plans.id LIMIT 1)
UPDATE plans SET name = (SELECT string_agg(name, ',') FROM words WHERE place = plans.id)
UPDATE plans SET n = 1 WHERE ctid = '(0,1)'
UPDATE plans SET name = xmin::text
UPDATE made SET at = DEFAULT
UPDATE made SET (own, at) = (DEFAULT, '2020-01-01')
INSERT INTO made (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET own = DEFAULT
INSERT INTO plans VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = (SELECT name FROM words LIMIT 1)
MERGE INTO plans p USING (SELECT DISTINCT ON (place) * FROM words) s ON p.id = s.place WHEN MATCHED THEN UPDATE SET name = s.name
MERGE INTO made m USING plans p ON p.id = m.id WHEN MATCHED THEN UPDATE SET own = DEFAULT
ALTER TABLE made ADD COLUMN more own_uuid
"""


class Copies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(PROGRAM, shards=3)
        cls.db = cls.house.sql()
        for i in SHARDS:
            cls.db.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
        cls.db.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        for name, low, high, shard in (("a", "MINVALUE", 1000, 1), ("b", 1000, 2000, 2), ("c", 2000, "MAXVALUE", 3)):
            cls.db.execute(f"CREATE SHARDLET {name} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")
        for statement in (
                "CREATE TABLE goods (tenant bigint, id int, word text, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant)",
                "CREATE TABLE plans (id int PRIMARY KEY, name text, n int DEFAULT 0) REPLICATED",
                "CREATE TABLE words (place int, name text, weight float8) REPLICATED",
                "CREATE DOMAIN own_uuid AS uuid DEFAULT gen_random_uuid()",
                "CREATE TABLE made (id int PRIMARY KEY, at timestamptz DEFAULT CURRENT_TIMESTAMP, own own_uuid) REPLICATED",
                "CREATE VIEW seen_plans AS SELECT id, name, n FROM plans"):
            cls.db.execute(statement)
        cls.db.execute("INSERT INTO goods SELECT t, i, 'w' FROM unnest('{100,1500,2500}'::int[]) t, generate_series(1, 4) i")

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        cls.house.close()

    def setUp(self):
        self.db.execute("TRUNCATE plans, words, made")
        rows = [(1, "a", .1), (1, "b", 1e20), (2, "c", .3), (2, "d", -1e20), (3, "e", .7), (3, "f", .9)]
        for i in SHARDS:
            with self.house.shard(i) as shard:
                shard.autocommit = True
                for row in rows[i:] + rows[:i]:
                    shard.execute("INSERT INTO words VALUES (%s, %s, %s)", row)
                for k in range(6):
                    shard.execute("INSERT INTO plans VALUES (%s, %s)", ((k * (1, 5, 5)[i - 1] + i) % 6 + 1, "p"))

    def copies(self, table):
        seen = []
        for i in SHARDS:
            with self.house.shard(i) as shard:
                seen.append(shard.execute(SEEN.format(table)).fetchone()[0])
        return seen

    def alike(self, statement):
        for table in ("plans", "words", "made"):
            seen = self.copies(table)
            self.assertEqual(len(set(seen)), 1, (statement, seen))

    def refuses(self, statement):
        with self.assertRaises(psycopg.Error) as caught:
            self.db.execute(statement)
        self.assertEqual(caught.exception.sqlstate, "0A000", (statement, caught.exception))
        self.alike(statement)

    def test_what_is_written_is_written_alike(self):
        for statement in WRITTEN.strip().splitlines():
            with self.subTest(statement):
                try:
                    self.db.execute(statement)
                except psycopg.Error as error:
                    self.assertEqual(error.sqlstate, "0A000", error)
                self.alike(statement)

    def test_what_each_shard_would_choose_for_itself_is_refused(self):
        for statement in REFUSED.strip().splitlines():
            with self.subTest(statement):
                self.refuses(statement)

    def test_parameters(self):
        update = "UPDATE plans SET name = v.name FROM (VALUES (%s::int, %s), (%s, %s)) v (id, name) WHERE v.id = plans.id"
        with self.assertRaises(psycopg.Error) as caught:
            self.db.execute(update, (1, "x", 1, "y"))
        self.assertEqual(caught.exception.sqlstate, "0A000")
        literal = "UPDATE plans SET name = v.name FROM (VALUES ({}, 'x'), ({}, 'y')) v (id, name) WHERE v.id = plans.id"
        self.db.execute(literal.format(1, 2))
        # The same normal form.
        self.refuses(literal.format(1, 1))
        self.db.execute(literal.format(2, 1))
        self.alike(literal)

    def test_rows_of_a_shard_are_not_named_by_ctid(self):
        count = "SELECT count(*) FROM goods"
        for statement in ("DELETE FROM goods WHERE ctid = '(0,1)'",
                          "DELETE FROM goods WHERE ctid IN (SELECT ctid FROM goods WHERE id = 2 LIMIT 1)",
                          "DELETE FROM goods WHERE ctid = ANY (ARRAY(SELECT ctid FROM goods WHERE id = 2 LIMIT 1))",
                          "DELETE FROM goods g WHERE g.ctid NOT IN (SELECT min(i.ctid::text)::tid FROM goods i GROUP BY i.word)",
                          "UPDATE goods SET word = 'x' WHERE ctid <> ALL (ARRAY(SELECT ctid FROM goods LIMIT 1))"):
            with self.subTest(statement):
                with self.assertRaises(psycopg.Error) as caught:
                    self.db.execute(statement)
                self.assertEqual(caught.exception.sqlstate, "0A000", caught.exception)
                self.assertEqual(self.db.execute(count).fetchone()[0], 12)
        doubles = "DELETE FROM goods a USING goods b WHERE a.tenant = b.tenant AND a.word = b.word AND a.ctid > b.ctid"
        self.db.execute("BEGIN")
        self.assertEqual(self.db.execute(doubles).rowcount, 9)
        self.db.execute("ROLLBACK")
        self.assertEqual(self.db.execute("DELETE FROM goods WHERE tenant = 100 AND ctid IN (SELECT ctid FROM goods WHERE tenant = 100 LIMIT 1)").rowcount, 1)
        self.db.execute("INSERT INTO goods SELECT 100, i, 'w' FROM generate_series(1, 4) i ON CONFLICT DO NOTHING")

    def test_writers_of_one_row_do_not_wait_for_each_other_in_a_circle(self):
        def write(connection, left):
            for _ in range(25):
                connection.execute("UPDATE plans SET n = n + 1 WHERE id = 1")
                connection.execute("INSERT INTO plans VALUES (2, 'x') ON CONFLICT (id) DO UPDATE SET n = plans.n + 1 RETURNING n").fetchall()
            left.append(connection)

        connections, done = [self.house.sql() for _ in range(4)], []
        for connection in connections:
            connection.execute("SET lock_timeout = '60s'")
        writers = [threading.Thread(target=write, args=(connection, done), daemon=True) for connection in connections]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(120)
        self.assertEqual(len(done), 4)
        self.assertEqual(self.db.execute("SELECT n FROM plans WHERE id IN (1, 2)").fetchall(), [(100,), (100,)])
        self.alike("UPDATE plans SET n = n + 1")
        for connection in connections:
            connection.close()

    def test_functions_that_write_copies_are_refused(self):
        self.db.execute("CREATE FUNCTION bump() RETURNS void LANGUAGE sql AS 'UPDATE plans SET n = n + 1'")
        self.db.execute("CREATE PROCEDURE bump_all() LANGUAGE plpgsql AS 'BEGIN PERFORM bump(); END'")
        for statement in ("SELECT bump()", "SELECT bump() FROM goods WHERE tenant = 1500 AND id = 1", "CALL bump_all()",
                          "DO $$ BEGIN UPDATE plans SET n = n + 1; END $$"):
            with self.subTest(statement):
                self.refuses(statement)
        self.db.execute("DROP PROCEDURE bump_all; DROP FUNCTION bump")

    def test_triggers_that_each_shard_would_answer_for_itself(self):
        stamp = "CREATE {} FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := {}; RETURN NEW; END'"
        trigger = "CREATE TRIGGER stamp BEFORE UPDATE ON plans FOR EACH ROW EXECUTE FUNCTION stamp()"
        own = "extract(epoch FROM clock_timestamp())::int + pg_backend_pid() % 1000"
        self.db.execute(stamp.format("", own))
        self.refuses(trigger)
        # What it was when the trigger was made does not count, but what it is.
        self.db.execute(stamp.format("OR REPLACE", "7"))
        self.db.execute(trigger)
        self.db.execute("UPDATE plans SET name = 'seven'")
        self.alike("UPDATE plans SET name = 'seven'")
        self.assertEqual(self.db.execute("SELECT min(n), max(n) FROM plans").fetchone(), (7, 7))
        self.db.execute(stamp.format("OR REPLACE", own))
        self.refuses("UPDATE plans SET name = 'now'")
        self.refuses("INSERT INTO plans VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'now'")
        self.refuses("MERGE INTO plans p USING (VALUES (1)) v (id) ON p.id = v.id WHEN MATCHED THEN UPDATE SET name = 'now'")
        self.refuses("UPDATE seen_plans SET name = 'now'")
        self.db.execute("DROP TRIGGER stamp ON plans; DROP FUNCTION stamp")
        self.db.execute("UPDATE plans SET name = 'later'")

    def test_triggers_of_partitions_count(self):
        stamp = "CREATE OR REPLACE FUNCTION of_part() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := {}; RETURN NEW; END'"
        self.db.execute("CREATE TABLE parts (id int, n int) PARTITION BY RANGE (id) REPLICATED")
        self.db.execute("CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (100)")
        self.db.execute(stamp.format("1"))
        self.db.execute("CREATE TRIGGER of_part BEFORE INSERT ON parts1 FOR EACH ROW EXECUTE FUNCTION of_part()")
        self.db.execute("INSERT INTO parts VALUES (1, 2)")
        self.db.execute(stamp.format("pg_backend_pid()"))
        self.refuses("INSERT INTO parts VALUES (1, 2)")
        self.db.execute("DROP TABLE parts; DROP FUNCTION of_part")

    def test_rules_policies_and_defaults_that_reach_elsewhere(self):
        self.db.execute("CREATE FUNCTION goods_now() RETURNS int STABLE LANGUAGE sql AS 'SELECT count(*)::int FROM goods'")
        self.db.execute("CREATE SHARD MAP places BY RANGE (bigint)")
        self.db.execute("CREATE SHARDLET everywhere OF places FOR VALUES FROM (MINVALUE) TO (MAXVALUE) ON SHARD s2")
        self.db.execute("CREATE TABLE known (place bigint, id int) SHARD BY places (place)")
        for statement in ("CREATE RULE also AS ON INSERT TO goods DO ALSO INSERT INTO words VALUES (9, 'rule', 1)",
                          "CREATE RULE also AS ON UPDATE TO plans DO ALSO INSERT INTO words VALUES (9, 'rule', random())",
                          "CREATE RULE also AS ON UPDATE TO plans DO ALSO DELETE FROM goods",
                          "CREATE POLICY beside ON goods USING (EXISTS (SELECT FROM known WHERE known.id = goods.id))",
                          "CREATE POLICY beside ON plans USING (id IN (SELECT id FROM goods))",
                          "ALTER TABLE goods ALTER COLUMN word SET DEFAULT goods_now()::text",
                          "ALTER TABLE plans ADD COLUMN more int DEFAULT goods_now()",
                          "CREATE TABLE counted (tenant bigint, n int DEFAULT goods_now()) SHARD BY tenants (tenant)",
                          "CREATE TABLE counted (n int CHECK (n < goods_now()))"):
            with self.subTest(statement):
                self.refuses(statement)
        for table, statement in (("plans", "CREATE RULE also AS ON UPDATE TO plans DO ALSO INSERT INTO words VALUES (OLD.id, OLD.name, 1)"),
                                 ("goods", "CREATE RULE also AS ON INSERT TO goods WHERE NEW.id > 1000 DO INSTEAD NOTHING")):
            self.db.execute(statement)
            self.db.execute("UPDATE plans SET n = 1")
            self.alike(statement)
            self.db.execute(f"DROP RULE also ON {table}")
        self.db.execute("CREATE POLICY beside ON goods USING (EXISTS (SELECT FROM plans WHERE plans.id = goods.id))")
        self.db.execute("DROP POLICY beside ON goods; DROP FUNCTION goods_now; DROP TABLE known")
        self.db.execute("DROP SHARD MAP places")

    def test_columns_that_are_added(self):
        self.db.execute("CREATE FUNCTION this_moment() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT now()'")
        self.db.execute("CREATE FUNCTION some_id() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN md5(random()::text); END'")
        self.db.execute("CREATE DOMAIN stamp AS timestamptz DEFAULT now()")
        self.db.execute("CREATE DOMAIN nap AS timestamptz")
        for statement in ("ALTER TABLE plans ADD COLUMN u uuid DEFAULT gen_random_uuid()", "ALTER TABLE plans ADD COLUMN u int DEFAULT (random() * 9)::int",
                          "ALTER TABLE plans ADD COLUMN u bigint DEFAULT nextval('any')", "ALTER TABLE plans ADD COLUMN u text DEFAULT some_id()",
                          "ALTER TABLE plans ADD COLUMN u serial", "ALTER TABLE plans ADD COLUMN u smallserial",
                          "ALTER TABLE plans ADD COLUMN u int GENERATED ALWAYS AS IDENTITY",
                          "ALTER TABLE words ALTER COLUMN weight TYPE float8 USING random()",
                          "ALTER TABLE words ALTER COLUMN weight TYPE tid USING ctid"):
            with self.subTest(statement):
                self.refuses(statement)
        for table in ("plans", "goods"):
            for what in ("u timestamptz DEFAULT this_moment()", "u stamp", "u interval DEFAULT age(timestamp '2020-01-01')", "u text DEFAULT current_database()",
                         "u int DEFAULT inet_server_port()", "u timestamptz DEFAULT 'now'", "u nap DEFAULT 'today'", "u text DEFAULT (' NOW '::timestamp)::text",
                         "u date DEFAULT date 'tomorrow'", "u timestamptz DEFAULT 'now'::text::timestamptz", "u date DEFAULT cast('today 00:00' AS timestamp)"):
                with self.subTest(table=table, what=what):
                    self.refuses(f"ALTER TABLE {table} ADD COLUMN {what}")
            self.refuses(f"ALTER TABLE {table} ADD COLUMN a int, ADD COLUMN u timestamptz DEFAULT this_moment(), ADD COLUMN b int")
            self.refuses(f"ALTER TABLE {table} ALTER COLUMN id TYPE text USING this_moment()::text || id")
        self.refuses("CREATE TABLE moments (tenant bigint, at timestamptz DEFAULT 'now') SHARD BY tenants (tenant)")
        self.refuses("CREATE TABLE moments (id int, at date DEFAULT 'today'::date) REPLICATED")
        self.refuses("ALTER TABLE made ALTER COLUMN at SET DEFAULT 'now'")
        self.db.execute("CREATE TABLE moments (tenant bigint, day text DEFAULT 'today', at date DEFAULT ('now'::text)::date) SHARD BY tenants (tenant)")
        self.db.execute("DROP TABLE moments")
        self.db.execute("ALTER TABLE goods ADD COLUMN u text DEFAULT some_id()")
        self.db.execute("ALTER TABLE goods DROP COLUMN u; DROP FUNCTION this_moment; DROP FUNCTION some_id; DROP DOMAIN stamp, nap")
        self.db.execute("ALTER TABLE words ADD COLUMN at timestamptz NOT NULL DEFAULT now(), ADD COLUMN on_day date DEFAULT CURRENT_DATE - 1, ADD COLUMN n int DEFAULT 7")
        self.alike("at")
        self.assertEqual(self.db.execute("SELECT count(DISTINCT at) FROM words").fetchone(), (1,))
        self.db.execute("INSERT INTO words (place) VALUES (900)")
        self.alike("at by default")
        self.assertEqual(self.db.execute("SELECT count(DISTINCT at) FROM words").fetchone(), (2,))
        self.db.execute("ALTER TABLE words ALTER COLUMN on_day TYPE timestamptz USING now() + (n || ' hours')::interval")
        self.alike("USING")
        self.db.execute("DELETE FROM words WHERE place = 900")
        self.db.execute("ALTER TABLE words DROP COLUMN at, DROP COLUMN on_day, DROP COLUMN n")

    def test_copy(self):
        with self.assertRaises(psycopg.Error) as caught:
            with self.db.cursor().copy("COPY words FROM STDIN WHERE random() < 0.5") as copy:
                copy.write("".join(f"{i}\tx\t1\n" for i in range(50)))
        self.assertEqual(caught.exception.sqlstate, "0A000")
        with self.db.cursor().copy("COPY made (id) FROM STDIN") as copy:
            copy.write("5\n6\n")
        self.alike("COPY")

    def test_one_row_for_all_is_one_row(self):
        for query in ("SELECT DISTINCT w.name FROM goods g, (SELECT name FROM words LIMIT 1) w",
                      "SELECT DISTINCT (SELECT name FROM words LIMIT 1) FROM goods g",
                      "WITH w AS (SELECT name FROM words LIMIT 1) SELECT DISTINCT w.name FROM goods, w",
                      "SELECT DISTINCT w.all_of::text FROM goods g, (SELECT array_agg(name) AS all_of FROM words) w",
                      "SELECT DISTINCT w.name FROM goods g, (SELECT DISTINCT ON (place) * FROM words) w WHERE w.place = 2",
                      "SELECT DISTINCT w.name FROM goods g JOIN (SELECT name, row_number() OVER () AS n FROM words) w ON w.n = 1"):
            with self.subTest(query):
                self.assertEqual(len(self.db.execute(query).fetchall()), 1)
        self.db.execute("UPDATE goods SET word = (SELECT name FROM words LIMIT 1)")
        self.assertEqual(len(self.db.execute("SELECT DISTINCT word FROM goods").fetchall()), 1)
        self.db.execute("UPDATE goods SET word = 'w'")


if __name__ == "__main__":
    unittest.main()
