"""The first hour with an application's schema: what its deployment script says of triggers, policies, sequences,
foreign keys, partitions and schemas holds on every shard, or is refused; nothing is left to the home shard alone.
"""

import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "admin"))
from house import House, psycopg  # noqa: E402

PROGRAM = os.environ["KINTSUGI_PROGRAM"]
KEYS = (100, 1500, 2500)  # one a shard


class FirstHour(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(PROGRAM, shards=3)
        cls.db = cls.house.sql()
        for i in (1, 2, 3):
            cls.db.execute(f"CREATE SHARD s{i} DSN '{cls.house.dsn(i)}'")
        cls.db.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        for name, low, high, shard in (("a", "MINVALUE", 1000, 1), ("b", 1000, 2000, 2), ("c", 2000, "MAXVALUE", 3)):
            cls.db.execute(f"CREATE SHARDLET {name} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{shard}")

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        cls.house.close()

    def rows(self, sql, *args):
        return self.db.execute(sql, *args).fetchall()

    def one(self, sql, *args):
        return self.rows(sql, *args)[0][0]

    def refuses(self, sql, state, *words):
        with self.assertRaises(psycopg.Error) as caught:
            self.db.execute(sql)
        self.assertEqual(caught.exception.sqlstate, state, caught.exception)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def on_each(self, sql):
        answers = []
        for i in (1, 2, 3):
            with self.house.shard(i) as shard:
                answers.append(shard.execute(sql).fetchone()[0])
        return answers

    def table(self, name, more="", columns="id bigserial, note text"):
        self.db.execute(f"CREATE TABLE {name} (tenant_id bigint NOT NULL, {columns}{more}) SHARD BY tenants (tenant_id)")

    def test_a_setting_of_ours_that_is_misspelt_is_refused(self):
        for statement in ("SET kintsugi.tennant = '1'", "SET LOCAL kintsugi.shard_new_table = 'x'", "SELECT set_config('kintsugi.typo', '1', false)"):
            self.refuses(statement, "42602", "invalid configuration parameter name", "kintsugi.shard_new_tables")

    def test_what_is_prepared_has_the_columns_that_it_was_described_with(self):
        self.table("shape", columns="id int")
        self.db.execute("INSERT INTO shape VALUES (1, 1), (1500, 2), (2500, 3)")
        self.db.execute("CREATE VIEW shape_view AS SELECT tenant_id, id FROM shape")
        with self.house.sql() as c:
            for name in ("shape", "shape_view"):
                self.assertEqual(c.execute(f"SELECT * FROM {name} ORDER BY id", prepare=True).fetchall(), [(1, 1), (1500, 2), (2500, 3)])
            c.execute("CREATE OR REPLACE VIEW shape_view AS SELECT tenant_id, id, 'x' AS more FROM shape")
            c.execute("ALTER TABLE shape ADD COLUMN more text DEFAULT 'x'")
            for name in ("shape", "shape_view"):
                for _ in range(2):
                    with self.assertRaises(psycopg.errors.FeatureNotSupported) as caught:
                        c.execute(f"SELECT * FROM {name} ORDER BY id", prepare=True)
                    self.assertEqual(caught.exception.diag.message_primary, "cached plan must not change result type")
                self.assertEqual(c.execute(f"SELECT * FROM {name} ORDER BY id", prepare=False).fetchall(), [(1, 1, "x"), (1500, 2, "x"), (2500, 3, "x")])
        self.db.execute("DROP VIEW shape_view")
        self.db.execute("DROP TABLE shape")

    def test_what_a_session_has_defined_hides_other_tables_at_once(self):
        self.table("seen", columns="id int")
        self.db.execute("INSERT INTO seen VALUES (1, 1), (1500, 2), (2500, 3)")
        self.db.execute("CREATE SCHEMA nearer")
        self.db.execute("SET search_path = nearer, public")
        self.assertEqual(self.one("SELECT count(*) FROM seen"), 3)
        self.db.execute("CREATE TABLE nearer.seen (what text)")
        self.db.execute("INSERT INTO seen VALUES ('mine')")
        self.assertEqual(self.rows("SELECT * FROM seen"), [("mine",)])
        self.db.execute("DROP TABLE seen")
        self.assertEqual(self.one("SELECT count(*) FROM seen"), 3)
        self.db.execute("RESET search_path")
        self.db.execute("DROP SCHEMA nearer")

    def test_what_set_config_makes_in_a_transaction_holds_on_every_shard_of_it(self):
        self.table("told", columns="id int")
        self.db.execute("INSERT INTO told VALUES (1, 1), (1500, 2), (2500, 3)")
        self.db.execute("CREATE SCHEMA farther")
        self.table("farther.told", columns="id int")
        self.db.execute("INSERT INTO farther.told VALUES (1, 1), (2500, 2)")
        for begin in ("SELECT set_config('search_path', 'farther', true)", "SELECT pg_catalog.set_config('search_path', 'farther', true), set_config('my.own', 'it''s', true)"):
            with self.house.sql() as c:
                c.execute("BEGIN")
                c.execute(begin)
                self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (2,))
                self.assertEqual(c.execute("SELECT count(*) FROM told WHERE tenant_id = 2500").fetchone(), (1,))
                if "own" in begin:
                    seen = c.execute("SELECT DISTINCT current_setting('my.own', true) FROM told WHERE tenant_id > 0").fetchall()
                    self.assertEqual(seen, [("it's",)])
                c.execute("ROLLBACK")
                self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (3,))
        # What only PostgreSQL knows stays on the shard that was told, and who would lack it is not asked.
        with self.house.sql() as c:
            for arguments in ("lower('FARTHER'), true", "(SELECT 'farther'), true", "%s, %s"):
                c.execute("BEGIN")
                c.execute(f"SELECT set_config('search_path', {arguments})", ("farther", False) if "%s" in arguments else None)
                with self.assertRaises(psycopg.errors.FeatureNotSupported) as caught:
                    c.execute("SELECT count(*) FROM told")
                self.assertIn("SET LOCAL", caught.exception.diag.message_hint)
                c.execute("ROLLBACK")
            # Where several take part all are told, of what is the same on each.
            for begin in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"):
                for parameters in (None, ("farther",)):
                    c.execute(begin)
                    self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (3,))
                    value = "'farther'" if parameters is None else "%s"
                    self.assertEqual(c.execute(f"SELECT set_config('search_path', {value}, true)", parameters).fetchall(), [("farther",)])
                    self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (2,))
                    c.execute("SELECT set_config(name, 'off', true) FROM pg_settings WHERE name = 'enable_seqscan'")
                    self.assertEqual(c.execute("SELECT DISTINCT current_setting('enable_seqscan') FROM told").fetchall(), [("off",)])
                    c.execute("SAVEPOINT a")
                    with self.assertRaises(psycopg.errors.FeatureNotSupported):
                        c.execute("SELECT set_config('my.own', now()::text, true)")
                    c.execute("ROLLBACK")
                    self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (3,))
            # In one message, too.
            c.pgconn.exec_(b"BEGIN; SELECT set_config('search_path', 'farther', true); SAVEPOINT a")
            self.assertEqual(c.execute("SELECT count(*) FROM told").fetchone(), (2,))
            c.execute("ROLLBACK")
        self.db.execute("DROP TABLE told, farther.told")
        self.db.execute("DROP SCHEMA farther")

    def test_what_set_config_is_given_as_parameters_holds_on_shards_that_join_later(self):
        self.table("asked", columns="id int")
        self.db.execute("INSERT INTO asked VALUES (1, 1), (1500, 2), (2500, 3)")
        self.db.execute("CREATE SCHEMA api")
        self.table("api.asked", columns="id int")
        self.db.execute("INSERT INTO api.asked VALUES (1, 1), (2500, 2)")
        claims = '{"sub": "o\'Neil \\\\ \\"x\\" $1", "n": "\u00fc"}'
        seen = "SELECT DISTINCT nullif(current_setting('request.jwt.claims', true), ''), nullif(current_setting('my.none', true), '') FROM asked"
        ask = "SELECT set_config('search_path', %s, true), set_config('request.jwt.claims', %s, true), set_config(%s, %s, true)"
        values = ("api", claims, "my.none", None)
        typed = ask.replace("%s, true)", "%s::text, true) AS \"a b\"").replace("%s, %s,", "%s::varchar, %s::text,")
        for prepare in (False, True):
            for binary in (False, True):
                for said in (ask, typed):
                    with self.subTest(prepare=prepare, binary=binary, said=said), self.house.sql() as c, c.cursor(binary=binary) as cursor:
                        given = said.replace("%s", "%b") if binary else said
                        for begin in ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
                            c.execute(begin)
                            cursor.execute(given, values, prepare=prepare)
                            self.assertEqual(c.execute("SELECT count(*) FROM asked WHERE tenant_id = 2500").fetchone(), (1,))
                            self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (2,))
                            self.assertEqual(c.execute(seen).fetchall(), [(claims, None)])
                            c.execute("ROLLBACK")
                        # Several take part already; a savepoint takes back what came behind it.
                        c.execute("BEGIN")
                        self.assertEqual(c.execute("SELECT count(*) FROM asked WHERE tenant_id > 1000").fetchone(), (2,))
                        c.execute("SAVEPOINT a")
                        cursor.execute(given, values, prepare=prepare)
                        self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (2,))
                        c.execute("ROLLBACK TO a")
                        self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (3,))
                        self.assertEqual(c.execute(seen).fetchall(), [(None, None)])
                        c.execute("ROLLBACK")
                        self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (3,))
        with self.house.sql() as c, c.pipeline():
            c.execute("BEGIN")
            c.execute(ask, values)
            count = c.execute("SELECT count(*) FROM asked")
            c.execute("ROLLBACK")
            self.assertEqual(count.fetchone(), (2,))
        for local in ("%s", "%s::boolean"):
            with self.house.sql() as c:
                c.execute("BEGIN")
                c.execute(f"SELECT set_config('search_path', %s, {local})", ("api", True))
                self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (2,))
                c.execute("ROLLBACK")
        with self.house.sql() as c:  # by name
            c.execute("PREPARE said AS SELECT set_config('search_path', $1, true)")
            for first in ("SELECT 1", "SELECT count(*) FROM asked WHERE tenant_id = 1500", "SELECT count(*) FROM asked"):
                c.execute("BEGIN")
                c.execute(first)
                self.assertEqual(c.execute("EXECUTE said ('api')").fetchall(), [("api",)])
                self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (2,))
                c.execute("ROLLBACK")
                self.assertEqual(c.execute("SELECT count(*) FROM asked").fetchone(), (3,))
            c.execute("SET client_encoding = 'SJIS'")
            c.execute("BEGIN")
            c.execute("SELECT set_config('my.own', %s, true)", ("\u8868",))  # its second byte is that of a backslash
            with self.assertRaises(psycopg.errors.FeatureNotSupported):
                c.execute("SELECT count(*) FROM asked")
            c.execute("ROLLBACK")
        self.db.execute("DROP TABLE asked, api.asked")
        self.db.execute("DROP SCHEMA api")

    def test_names_that_search_path_finds_before_postgresqls_own(self):
        self.table("meant", columns="id int")
        self.db.execute("INSERT INTO meant VALUES (1, 1), (1500, 2), (2500, 3)")
        self.db.execute("CREATE SCHEMA odd")
        self.db.execute("CREATE FUNCTION odd.alike(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'")
        self.db.execute("CREATE OPERATOR odd.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = odd.alike)")
        self.db.execute("CREATE SCHEMA frozen")
        self.db.execute("CREATE VIEW seen_now AS SELECT tenant_id, now() AS at FROM meant")
        self.db.execute("CREATE FUNCTION frozen.now() RETURNS timestamptz IMMUTABLE LANGUAGE sql AS $$ SELECT '2000-01-01'::timestamptz $$")
        with self.house.sql() as c:
            for path in ("odd, pg_catalog, public", "public, odd, frozen, pg_catalog"):
                c.execute(f"SET search_path = {path}")
                for statement in ("SELECT count(*) FROM public.meant WHERE tenant_id = 1500::bigint", "SELECT count(*) FROM public.meant",
                                  "SELECT 1 FROM public.meant a JOIN public.meant b USING (tenant_id)", "UPDATE public.meant SET id = 9 WHERE tenant_id IN (1500)",
                                  "DELETE FROM public.meant WHERE tenant_id = 1500", "INSERT INTO public.meant SELECT 1, id FROM public.meant WHERE tenant_id = 1500"):
                    with self.subTest(path=path, statement=statement), self.assertRaises(psycopg.errors.FeatureNotSupported) as caught:
                        c.execute(statement)
                    self.assertIn("the operator = of schema odd", str(caught.exception))
                c.execute("INSERT INTO public.meant VALUES (1600, 4), (2600, 5)")
                self.assertEqual(c.execute("SELECT 1::bigint = 2::bigint").fetchone(), (True,))
            # Where PostgreSQL looks at its own first, nothing is hidden.
            for path in ("pg_catalog, odd, frozen, public", "odd, frozen, public"):
                c.execute(f"SET search_path = {path}")
                self.assertEqual(c.execute("SELECT count(*), bool_and(now() > '2020-01-01') FROM meant WHERE tenant_id = 1500").fetchone(), (1, True))
                self.assertEqual(c.execute("SELECT count(*) FROM meant").fetchone()[0], 7)
                self.assertEqual(c.execute("SELECT count(*) FROM meant WHERE tenant_id OPERATOR(odd.=) 1").fetchone()[0], 7)
            # A function is what the path says; over several shards that is not looked into.
            c.execute("SET search_path = frozen, pg_catalog, public")
            self.assertEqual(c.execute("SELECT count(*), min(now())::date::text FROM meant WHERE tenant_id = 1500").fetchone(), (1, "2000-01-01"))
            self.assertEqual(c.execute("SELECT count(*) FROM meant").fetchone(), (7,))
            for statement in ("SELECT min(now()) FROM meant", "SELECT count(*) FROM meant WHERE now() > '2001-01-01'", "SELECT count(*) FROM seen_now"):
                with self.subTest(statement), self.assertRaises(psycopg.errors.FeatureNotSupported) as caught:
                    c.execute(statement)
                self.assertIn("the function now of schema frozen", str(caught.exception))
            c.execute("SET search_path = public, pg_catalog")
            self.assertEqual(c.execute("SELECT count(*), bool_and(now() > '2020-01-01') FROM meant").fetchone(), (7, True))
        self.db.execute("DROP SCHEMA odd CASCADE; DROP SCHEMA frozen CASCADE; DROP VIEW seen_now")
        with self.house.sql() as c:
            c.execute("CREATE SCHEMA odd; CREATE DOMAIN odd.int8 AS bigint; CREATE DOMAIN odd.text AS text; SET search_path = odd, pg_catalog, public")
            self.assertEqual(c.execute("SELECT count(*), min(tenant_id::text) FROM meant WHERE tenant_id = 1500").fetchone(), (1, "1500"))
            for statement in ("SELECT tenant_id::text FROM meant ORDER BY 1", "SELECT count(*) FROM meant WHERE tenant_id = '1500'::int8"):
                with self.subTest(statement), self.assertRaises(psycopg.errors.FeatureNotSupported):
                    c.execute(statement)
            c.execute("DROP SCHEMA odd CASCADE")

    def test_definitions_behind_the_routers_back_are_noticed(self):
        self.table("backed", columns="id int, what text")
        self.db.execute("INSERT INTO backed VALUES (1, 3, 'x'), (1500, 2, 'y'), (2500, 1, 'z')")
        self.db.execute("CREATE VIEW back AS SELECT tenant_id, id FROM backed WHERE tenant_id < 1000")
        self.assertEqual(self.rows("SELECT * FROM back"), [(1, 3)])
        for i in (1, 2, 3):
            with self.house.shard(i) as shard:
                shard.execute("CREATE OR REPLACE VIEW back AS SELECT tenant_id, id FROM backed WHERE tenant_id >= 1000")
                shard.execute("ALTER TABLE backed DROP COLUMN what")
                shard.execute("ALTER TABLE backed ADD COLUMN what int DEFAULT 7")
        deadline = time.monotonic() + 20
        while self.one("SELECT count(*) FROM back") != 2:
            self.assertLess(time.monotonic(), deadline, "not noticed")
        self.assertEqual(self.rows("SELECT * FROM back ORDER BY id"), [(2500, 1), (1500, 2)])
        with self.house.sql() as fresh:  # plans of its own
            self.assertEqual(fresh.execute("SELECT * FROM backed ORDER BY id").fetchall(), [(2500, 1, 7), (1500, 2, 7), (1, 3, 7)])

    def test_inheritance_is_refused_and_adoption_of_it(self):
        self.table("parent", columns="id int")
        self.refuses("CREATE TABLE child (x int) INHERITS (parent)", "0A000", "PARTITION")
        self.db.execute("CREATE TABLE home_parent (tenant_id bigint)")
        self.refuses("CREATE TABLE child (x int) INHERITS (home_parent) SHARD BY tenants (tenant_id)", "0A000", "PARTITION")
        self.db.execute("CREATE TABLE home_child (x int) INHERITS (home_parent)")
        self.refuses("ALTER TABLE home_child INHERIT parent", "0A000", "PARTITION")
        self.refuses("ALTER TABLE home_parent SHARD BY tenants (tenant_id)", "0A000", "inherits")

    def test_triggers_that_write_elsewhere_are_refused(self):
        self.table("watched", columns="id int")
        self.table("beside", columns="id int")
        self.db.execute("CREATE TABLE everywhere (n int) REPLICATED")
        self.db.execute("CREATE TABLE lonely (n int)")
        for name, body in (("beside_it", "INSERT INTO beside VALUES (NEW.tenant_id, NEW.id)"), ("at_home_it", "INSERT INTO lonely VALUES (1)"),
                           ("everywhere_it", "UPDATE ONLY public.everywhere SET n = n + 1"), ("reads_it", "PERFORM count(*) FROM everywhere")):
            self.db.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {body}; RETURN NEW; END'")
        for name in ("beside_it", "reads_it"):
            self.db.execute(f"CREATE TRIGGER {name} AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION {name}()")
        self.refuses("CREATE TRIGGER t AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION at_home_it()", "0A000", "lonely")
        self.refuses("CREATE TRIGGER t AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION everywhere_it()", "0A000", "everywhere")
        self.db.execute("INSERT INTO watched VALUES (5, 1), (1500, 2), (2500, 3)")
        self.assertEqual(self.rows("SELECT tenant_id, id FROM beside WHERE tenant_id = 1500"), [(1500, 2)])
        # A function that becomes so later, of a trigger of TRUNCATE.
        for body in ("NULL", "INSERT INTO lonely VALUES (1)"):
            self.db.execute(f"CREATE OR REPLACE FUNCTION empties_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {body}; RETURN NULL; END'")
            if body == "NULL":
                self.db.execute("CREATE TRIGGER t AFTER TRUNCATE ON beside FOR EACH STATEMENT EXECUTE FUNCTION empties_it()")
                self.db.execute("TRUNCATE beside")
        self.refuses("TRUNCATE beside", "0A000", "empties_it", "lonely")
        self.db.execute("DROP TRIGGER t ON beside")
        self.db.execute("TRUNCATE beside")

    def test_triggers_that_execute_what_they_put_together(self):
        self.table("spied", ", PRIMARY KEY (tenant_id, id)", columns="id int, note text")
        self.table("spy_log", columns="what text")
        self.db.execute("CREATE TABLE spied_copies (id int PRIMARY KEY, note text) REPLICATED")
        self.db.execute("CREATE FUNCTION logs_to(name text, key bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('INSERT INTO %I VALUES ($1)', name) USING key; END $$")
        bodies = {"names_it": "EXECUTE format('INSERT INTO %I SELECT ($1).tenant_id, to_jsonb($1)::text', TG_ARGV[0]) USING NEW",
                  "joins_it": "EXECUTE 'INSERT INTO ' || TG_ARGV[0] || ' VALUES ($1.tenant_id)' USING NEW",
                  "splits_it": "EXECUTE 'INSERT INTO spy' || '_log VALUES ($1.tenant_id)' USING NEW",
                  "calls_it": "PERFORM logs_to(TG_ARGV[0], NEW.tenant_id)"}
        harmless = {"column_it": "EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO NEW.note USING NEW",
                    "columns_it": "EXECUTE 'SELECT ($1).' || quote_ident(TG_ARGV[1]) || ' || ' || quote_literal(TG_OP) INTO NEW.note USING NEW",
                    "audits_it": "INSERT INTO spy_log VALUES (NEW.tenant_id, format('%s %I', to_jsonb(NEW), TG_OP))",
                    "writes_it": "EXECUTE 'INSERT INTO spy_log VALUES ($1.tenant_id, ' || quote_literal(TG_OP) || ')' USING NEW",
                    "plain_it": "EXECUTE format('INSERT INTO spy_log VALUES ($1.tenant_id, %L)', TG_OP) USING NEW"}
        for name, body in {**bodies, **harmless}.items():
            self.db.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {body}; RETURN NEW; END $f$")
        several = ("INSERT INTO spied VALUES (5, 90, 'x'), (1500, 90, 'x')", "UPDATE spied SET note = 'y'", "UPDATE spied SET note = 'y' WHERE tenant_id > 10",
                   "INSERT INTO spied SELECT tenant_id, id + 100, note FROM spied", "INSERT INTO spied SELECT 7, id + 200, note FROM spied WHERE tenant_id = 1500",
                   "DELETE FROM spied WHERE id = 91")
        for name in bodies:
            with self.subTest(name):
                self.db.execute("TRUNCATE spied, spy_log")
                self.db.execute(f"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON spied FOR EACH ROW EXECUTE FUNCTION {name}('spy_log')")
                for key in KEYS:
                    self.db.execute("INSERT INTO spied VALUES (%s, 1, 'x')", (key,))
                self.db.execute("INSERT INTO spied VALUES (1500, 2, 'x'), (1600, 2, 'x') ON CONFLICT (tenant_id, id) DO UPDATE SET note = 'z'")
                self.db.execute("UPDATE spied SET note = 'y' WHERE tenant_id IN (1500, 1600)")
                self.assertEqual(self.one("SELECT count(*) FROM spy_log"), 8)
                for statement in several:
                    self.refuses(statement, "0A000", name, "EXECUTE")
                with self.assertRaises(psycopg.errors.FeatureNotSupported), self.db.cursor().copy("COPY spied FROM STDIN") as copy:
                    copy.write("5\t92\tx\n")
                self.assertEqual(self.one("SELECT count(*) FROM spied"), 5)
                self.db.execute("DROP TRIGGER t ON spied")
                self.refuses(f"CREATE TRIGGER t BEFORE INSERT ON spied_copies FOR EACH ROW EXECUTE FUNCTION {name}('spy_log')", "0A000", name, "EXECUTE")
        self.db.execute("DELETE FROM spied")
        for name in harmless:
            with self.subTest(name):
                self.db.execute(f"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON spied FOR EACH ROW EXECUTE FUNCTION {name}('spy_log', 'id')")
                for statement in several:
                    self.db.execute(statement)
                self.db.execute("DROP TRIGGER t ON spied")
                self.db.execute("DELETE FROM spied")
        # A function that becomes so later, on a table of which every shard has a copy.
        self.db.execute("CREATE TRIGGER t BEFORE INSERT ON spied_copies FOR EACH ROW EXECUTE FUNCTION column_it('spy_log', 'id')")
        self.db.execute("INSERT INTO spied_copies VALUES (1, 'x'), (2, 'y')")
        self.assertEqual(self.on_each("SELECT string_agg(note, ',' ORDER BY id) FROM spied_copies"), ["1,2"] * 3)
        self.db.execute(f"CREATE OR REPLACE FUNCTION column_it() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {bodies['names_it']}; RETURN NEW; END $f$")
        self.refuses("INSERT INTO spied_copies VALUES (3, 'x')", "0A000", "column_it", "EXECUTE")
        self.refuses("UPDATE spied_copies SET note = 'x'", "0A000", "column_it", "EXECUTE")
        for what in ("POLICY p ON spied USING (logs_to(note, tenant_id) IS NOT NULL)", "RULE p AS ON UPDATE TO spied DO ALSO SELECT logs_to('x', 1)"):
            self.refuses(f"CREATE {what}", "0A000", "EXECUTE")
        self.db.execute("DROP TABLE spied, spy_log, spied_copies")

    def test_a_snapshot_of_one_shard_is_none_of_all(self):
        self.db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.refuses("SET TRANSACTION SNAPSHOT '00000003-0000001B-1'", "0A000", "--jobs")
        self.db.execute("ROLLBACK")
    def test_what_cannot_be_in_a_transaction_says_how_far_it_came_and_can_be_repeated(self):
        self.table("looked_up")
        self.db.execute("INSERT INTO looked_up (tenant_id, note) VALUES (100, 'a'), (1500, 'b'), (1500, 'b'), (2500, 'c')")
        said = []
        self.db.add_notice_handler(lambda notice: said.append(notice.message_primary))
        self.refuses("CREATE UNIQUE INDEX CONCURRENTLY looked_up_note ON looked_up (tenant_id, note)", "23505")
        self.assertEqual(said, ["the statement has been executed on s1 and has failed on s2"])
        valid = "SELECT coalesce(bool_and(indisvalid)::text, 'none') FROM pg_index WHERE indexrelid = to_regclass('looked_up_note')"
        self.assertEqual(self.on_each(valid), ["true", "false", "none"])
        self.db.execute("DELETE FROM looked_up WHERE tenant_id = 1500")
        self.db.execute("DROP INDEX CONCURRENTLY IF EXISTS looked_up_note")
        self.assertEqual(self.on_each(valid), ["none", "none", "none"])
        self.db.execute("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS looked_up_note ON looked_up (tenant_id, note)")
        self.assertEqual(self.on_each(valid), ["true", "true", "true"])
        with self.assertRaises(psycopg.errors.ActiveSqlTransaction), self.db.transaction():
            self.db.execute("SELECT count(*) FROM looked_up")
            self.db.execute("CREATE INDEX CONCURRENTLY looked_up_other ON looked_up (note)")

    def test_one_statement_has_one_now_however_many_rows_it_has(self):
        self.table("dated", columns="id bigserial, at timestamptz")
        rows = ", ".join(f"({KEYS[i % 3]}, now())" for i in range(1300))
        self.db.execute("INSERT INTO dated (tenant_id, at) VALUES " + rows)
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT at) FROM dated"), [(1300, 1)])

    def test_triggers_rules_policies_and_statistics_are_on_every_shard(self):
        self.table("people")
        self.table("log", columns="what text")
        self.db.execute("CREATE FUNCTION note_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log "
                        "VALUES (NEW.tenant_id, NEW.note); RETURN NEW; END $$")
        self.db.execute("CREATE TRIGGER noted AFTER INSERT OR UPDATE OF note ON people FOR EACH ROW EXECUTE FUNCTION note_it()")
        for key in KEYS:
            self.db.execute("INSERT INTO people (tenant_id, note) VALUES (%s, 'x')", [key])
        self.assertEqual(self.one("SELECT count(*) FROM log"), 3)
        self.db.execute("ALTER TRIGGER noted ON people RENAME TO noted2")
        self.db.execute("ALTER TABLE people DISABLE TRIGGER noted2")
        self.db.execute("INSERT INTO people (tenant_id, note) SELECT tenant_id, 'y' FROM people")
        self.assertEqual(self.one("SELECT count(*) FROM log"), 3)
        self.db.execute("DROP TRIGGER noted2 ON people")

        self.db.execute("CREATE RULE kept AS ON DELETE TO log DO INSTEAD NOTHING")
        self.db.execute("DELETE FROM log")
        self.assertEqual(self.one("SELECT count(*) FROM log"), 3)
        self.db.execute("DROP RULE kept ON log")
        self.assertEqual(self.db.execute("DELETE FROM log").rowcount, 3)

        self.db.execute("CREATE POLICY hidden ON people USING (false)")
        self.assertEqual(self.on_each("SELECT count(*) FROM pg_policy WHERE polname = 'hidden'"), [1, 1, 1])
        self.db.execute("DROP POLICY hidden ON people")
        self.db.execute("CREATE STATISTICS st ON tenant_id, id FROM people")
        self.assertEqual(self.on_each("SELECT count(*) FROM pg_statistic_ext"), [1, 1, 1])
        self.db.execute("DROP STATISTICS st")
        self.db.execute("CREATE TABLE at_home (a int, b int)")
        self.db.execute("CREATE STATISTICS st2 ON a, b FROM at_home")
        self.db.execute("DROP STATISTICS st2")
        self.db.execute("CREATE PUBLICATION pub FOR TABLE at_home")
        self.db.execute("DROP PUBLICATION pub")

    def test_sequences_of_sharded_tables_stay_apart(self):
        self.table("things")
        insert = "INSERT INTO things (tenant_id) VALUES (%s) RETURNING id"
        self.assertEqual(self.one("SELECT setval('things_id_seq', 10000)"), 10000)
        first = [self.one(insert, [key]) for key in KEYS]
        self.assertTrue(all(number > 10000 for number in first), first)
        self.db.execute("ALTER SEQUENCE things_id_seq RESTART WITH 50000")
        second = [self.one(insert, [key]) for key in KEYS + KEYS]
        self.assertTrue(all(number >= 50000 for number in second), second)
        self.assertEqual(len(set(first + second)), 9)
        with self.db.cursor() as cursor:
            cursor.execute("SELECT pg_catalog.setval(pg_get_serial_sequence('public.things', 'id'), %s, %s) AS s",
                           [100000, True])
            self.assertEqual((cursor.description[0].name, cursor.fetchone()[0]), ("s", 100000))
        third = [self.one(insert, [key]) for key in KEYS]
        self.assertTrue(all(number > 100000 for number in third), third)
        highest = self.one("SELECT max(id) FROM things")
        self.assertEqual(self.one("SELECT setval('things_id_seq', (SELECT max(id) + 5000 FROM things))"), highest + 5000)
        self.assertTrue(all(self.one(insert, [key]) > highest + 5000 for key in KEYS))
        # As Django's sqlsequencereset has it.
        highest = self.one("SELECT max(id) FROM things")
        self.assertEqual(self.one("SELECT setval(pg_get_serial_sequence('\"things\"','id'), coalesce(max(\"id\"), 1), "
                                  "max(\"id\") IS NOT null) FROM \"things\""), highest)
        self.assertTrue(all(self.one(insert, [key]) > highest for key in KEYS))
        self.refuses("SELECT setval('things_id_seq', 1) FROM things", "0A000")
        self.refuses("ALTER SEQUENCE things_id_seq INCREMENT BY 1", "0A000", "RESTART")
        self.db.execute("TRUNCATE things RESTART IDENTITY")
        self.assertEqual(len({self.one(insert, [key]) for key in KEYS}), 3)
        # One of the home shard is PostgreSQL's own.
        self.db.execute("CREATE SEQUENCE plain")
        self.assertEqual(self.one("SELECT setval('plain', 7)"), 7)
        self.assertEqual(self.one("SELECT nextval('plain')"), 8)
        self.db.execute("ALTER SEQUENCE plain RESTART WITH 3")
        self.assertEqual(self.one("SELECT nextval('plain')"), 3)

    def test_what_pg_dump_writes_of_a_serial_column(self):
        self.db.execute("CREATE TABLE dumped (tenant_id bigint NOT NULL, id integer NOT NULL) SHARD BY tenants (tenant_id)")
        self.db.execute("CREATE SEQUENCE public.dumped_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1")
        self.db.execute("ALTER SEQUENCE public.dumped_id_seq OWNED BY public.dumped.id")
        self.db.execute("ALTER TABLE ONLY public.dumped ALTER COLUMN id SET DEFAULT nextval('public.dumped_id_seq'::regclass)")
        with self.db.cursor() as cursor, cursor.copy("COPY public.dumped (tenant_id, id) FROM stdin") as copy:
            for number, key in enumerate(KEYS, 1):
                copy.write_row((key, number))
        self.db.execute("SELECT pg_catalog.setval('public.dumped_id_seq', 3, true)")
        for key in KEYS + KEYS:
            self.db.execute("INSERT INTO dumped (tenant_id) VALUES (%s)", [key])
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT id) FROM dumped"), [(9, 9)])

    def test_foreign_keys_that_no_shard_can_check_are_refused_later_as_well(self):
        self.db.execute("CREATE TABLE owners (tenant_id bigint, id bigserial PRIMARY KEY) SHARD BY tenants (tenant_id)")
        self.table("pets", columns="owner bigint")
        self.refuses("ALTER TABLE pets ADD FOREIGN KEY (owner) REFERENCES owners (id)", "0A000", "sharding key")
        self.refuses("ALTER TABLE pets ADD COLUMN other bigint REFERENCES owners (id)", "0A000", "sharding key")
        self.db.execute("CREATE TABLE loose (owner bigint)")
        self.refuses("ALTER TABLE loose ADD FOREIGN KEY (owner) REFERENCES owners (id)", "0A000", "home shard")
        self.refuses("CREATE TABLE tree (tenant_id bigint, id bigserial PRIMARY KEY, parent bigint REFERENCES tree) "
                     "SHARD BY tenants (tenant_id)", "0A000", "sharding key")
        self.db.execute("CREATE TABLE tree (tenant_id bigint, id bigserial, parent bigint, PRIMARY KEY (tenant_id, id), "
                        "FOREIGN KEY (tenant_id, parent) REFERENCES tree) SHARD BY tenants (tenant_id)")

    def test_the_map_follows_schemas_and_partitions(self):
        self.db.execute("CREATE SCHEMA shop")
        self.table("shop.parts")
        for key in KEYS:
            self.db.execute("INSERT INTO shop.parts (tenant_id) VALUES (%s)", [key])
        self.db.execute("ALTER SCHEMA shop RENAME TO store")
        self.assertEqual(self.one("SELECT count(*) FROM store.parts"), 3)
        self.db.execute("DROP SCHEMA store CASCADE")
        self.assertNotIn("store.parts", [row[0] for row in self.rows("SHOW SHARDED TABLES")])

        self.table("events", " , day date NOT NULL, PRIMARY KEY (tenant_id, day)) PARTITION BY RANGE (day", columns="n int")
        self.db.execute("CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')")
        for key in KEYS:
            self.db.execute("INSERT INTO events VALUES (%s, 1, '2024-05-05')", [key])
        self.assertEqual(self.one("SELECT count(*) FROM events_1"), 3)
        self.db.execute("CREATE INDEX events_1_n ON events_1 (n)")
        self.db.execute("DROP INDEX events_1_n")
        self.assertEqual(self.on_each("SELECT count(*) FROM pg_class WHERE relname = 'events_1_n'"), [0, 0, 0])
        self.db.execute("ALTER TABLE events DETACH PARTITION events_1")
        self.assertEqual(self.one("SELECT count(*) FROM events"), 0)
        self.assertEqual(self.one("SELECT count(*) FROM events_1"), 3)
        self.db.execute("ALTER TABLE events ATTACH PARTITION events_1 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')")
        self.assertEqual(self.one("SELECT count(*) FROM events"), 3)
        self.assertNotIn("public.events_1", [row[0] for row in self.rows("SHOW SHARDED TABLES")])
        self.db.execute("CREATE TABLE at_home_2 (tenant_id bigint NOT NULL, n int, day date NOT NULL)")
        self.refuses("ALTER TABLE events ATTACH PARTITION at_home_2 FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')", "0A000")

    def test_a_table_becomes_replicated_only_where_all_shards_have_its_rows(self):
        self.table("apart")
        for key in KEYS:
            self.db.execute("INSERT INTO apart (tenant_id) VALUES (%s)", [key])
        self.refuses("ALTER TABLE apart REPLICATED", "55000", "rows")
        self.db.execute("CREATE TABLE only_home (id int)")
        self.refuses("ALTER TABLE only_home REPLICATED", "55000", "s2")
        self.refuses("ALTER TABLE nowhere REPLICATED", "42P01", "nowhere")
        for i in (1, 2, 3):
            with self.house.shard(i) as shard:
                shard.execute("CREATE TABLE alike (id int, at timestamptz)")
                shard.execute("INSERT INTO alike VALUES (1, '2024-01-01 00:00Z'), (2, NULL)")
        self.db.execute("ALTER TABLE alike REPLICATED")
        self.assertEqual(self.one("SELECT count(*) FROM alike"), 2)
        self.assertEqual(self.house.cli("table", "replicate", "alike")[0], 0)  # it is so already
        for i in (1, 2, 3):
            with self.house.shard(i) as shard:
                shard.execute(f"CREATE TABLE unlike AS SELECT * FROM alike WHERE id < {4 - i}")
        code, _, error = self.house.cli("table", "replicate", "unlike")
        self.assertEqual(code, 3, error)

    def test_own_statements_by_the_extended_protocol_and_in_transactions(self):
        wanted = self.rows("SHOW SHARDS")
        with self.db.cursor() as cursor:
            for _ in range(2):
                cursor.execute("SHOW SHARDS", prepare=True)
                self.assertEqual([column.name for column in cursor.description][:3], ["name", "dsn", "state"])
                self.assertEqual(cursor.fetchall(), wanted)
            cursor.execute("SHOW SHARDLETS OF tenants", prepare=True)
            self.assertEqual(len(cursor.fetchall()), 3)
        for prepare in (None, True):
            with self.db.transaction(force_rollback=True):
                self.assertEqual(self.db.execute("SHOW SHARDS", prepare=prepare).fetchall(), wanted)
                with self.assertRaises(psycopg.Error) as caught:
                    self.db.execute("CREATE SHARD MAP other BY LIST (int)", prepare=prepare)
                self.assertEqual(caught.exception.sqlstate, "25001")
        self.assertNotIn("other", [row[0] for row in self.rows("SHOW SHARD MAPS")])
        self.refuses("SET kintsugi.shard_new_tables = 'tenants'", "22023", "map(column)")

    def test_a_migration_in_one_transaction(self):
        with self.db.transaction():
            self.db.execute("CREATE TABLE bills (tenant_id bigint NOT NULL, id bigserial, note varchar(20), PRIMARY KEY (tenant_id, id)) "
                            "SHARD BY tenants (tenant_id)")
            self.db.execute("CREATE TABLE rates (code text PRIMARY KEY, rate numeric) REPLICATED")
            self.db.execute("CREATE INDEX ON bills (note)")
            self.db.execute("ALTER TABLE bills ADD COLUMN paid boolean DEFAULT false")
            self.db.execute("CREATE TABLE bill_lines (tenant_id bigint NOT NULL, bill bigint, text text, "
                            "FOREIGN KEY (tenant_id, bill) REFERENCES bills) SHARD BY tenants (tenant_id)")
            self.db.execute("INSERT INTO rates VALUES ('eur', 1), ('usd', 1.1)")
            for key in KEYS:
                self.db.execute("INSERT INTO bills (tenant_id, note) VALUES (%s, 'n')", [key])
            self.db.execute("INSERT INTO bills VALUES (100, 7, 'whole'), (1500, 7, 'rows')")
            self.db.execute("INSERT INTO bill_lines SELECT tenant_id, id, note FROM bills")
            self.assertEqual(self.db.execute("UPDATE bills SET paid = true WHERE note = 'n'").rowcount, 3)
            self.assertEqual(self.rows("SELECT count(*), count(*) FILTER (WHERE paid), avg(id) > 0 FROM bills"), [(5, 3, True)])
            self.assertEqual(self.one("SELECT count(*) FROM bills b JOIN bill_lines l ON l.tenant_id = b.tenant_id AND l.bill = b.id"), 5)
            self.assertEqual(self.one("SELECT count(*) FROM rates"), 2)
            with self.db.cursor() as cursor, cursor.copy("COPY bills (tenant_id, id, note) FROM stdin") as copy:
                for key in KEYS:
                    copy.write_row((key, 77, "copied"))
        self.assertEqual(self.one("SELECT count(*) FROM bills"), 8)
        self.assertEqual(self.on_each("SELECT count(*) FROM rates"), [2, 2, 2])

        # A column of a table that is there, used at once; and a rename.
        with self.db.transaction():
            self.db.execute("ALTER TABLE bills ADD COLUMN kind text")
            self.assertEqual(self.db.execute("UPDATE bills SET kind = 'x' || note").rowcount, 8)
            self.assertEqual(self.one("SELECT count(DISTINCT kind) FROM bills"), 4)
            self.db.execute("INSERT INTO bills (tenant_id, kind) VALUES (100, 'late'), (2500, 'late')")
            self.db.execute("ALTER TABLE bills RENAME TO invoices")
            self.assertEqual(self.one("SELECT count(*) FROM invoices WHERE kind = 'late'"), 2)
            self.db.execute("CREATE VIEW late AS SELECT * FROM invoices WHERE kind = 'late'")
            with self.assertRaises(psycopg.Error) as caught, self.db.transaction():
                self.db.execute("SELECT count(*) FROM late")
            self.assertEqual(caught.exception.sqlstate, "0A000")
            with self.assertRaises(psycopg.Error) as caught, self.db.transaction():
                self.db.execute("SELECT count(*) FROM bills")
            self.assertEqual(caught.exception.sqlstate, "42P01")
        self.assertEqual(self.one("SELECT count(*) FROM late"), 2)
        self.assertEqual(self.one("SELECT count(*) FROM invoices"), 10)

        # What ORMs do: the placement is a setting, here of the transaction.
        with self.db.transaction():
            self.db.execute("SET LOCAL kintsugi.shard_new_tables = 'tenants(tenant_id)'")
            self.db.execute("CREATE TABLE plain_1 (tenant_id bigint, id int, PRIMARY KEY (tenant_id, id))")
            self.db.execute("CREATE TABLE plain_2 (tenant_id bigint, id int, FOREIGN KEY (tenant_id, id) REFERENCES plain_1)")
            self.db.execute("CREATE TABLE django_migrations (id serial PRIMARY KEY, app text)")
            self.db.execute("INSERT INTO plain_1 VALUES (100, 1), (2500, 2)")
            self.db.execute("INSERT INTO django_migrations (app) VALUES ('shop')")
        tables = [row[0] for row in self.rows("SHOW SHARDED TABLES")]
        self.assertTrue({"public.plain_1", "public.plain_2"} <= set(tables), tables)
        self.assertNotIn("public.django_migrations", tables)
        self.assertEqual(self.on_each("SELECT count(*) FROM plain_1"), [1, 0, 1])

        # What is undone has never been.
        with self.db.transaction(force_rollback=True):
            self.db.execute("CREATE TABLE never (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
            self.db.execute("INSERT INTO never VALUES (100), (1500)")
        with self.db.transaction():
            with self.db.transaction(force_rollback=True):
                self.db.execute("CREATE TABLE never (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
                self.db.execute("DROP TABLE bill_lines")
            self.assertEqual(self.one("SELECT count(*) FROM bill_lines"), 5)
        self.refuses("SELECT * FROM never", "42P01")
        tables = [row[0] for row in self.rows("SHOW SHARDED TABLES")]
        self.assertNotIn("public.never", tables)
        self.assertIn("public.bill_lines", tables)
        with self.db.transaction():
            self.db.execute("DROP TABLE bill_lines")
            self.db.execute("CREATE TABLE bill_lines (tenant_id bigint, again text) SHARD BY tenants (tenant_id)")
            self.db.execute("INSERT INTO bill_lines (tenant_id, again) VALUES (1500, 'x')", prepare=True)
        self.assertEqual(self.rows("SELECT * FROM bill_lines"), [(1500, "x")])

    def test_a_pipeline_over_several_shards_is_all_or_nothing(self):
        self.table("lined_up")
        for key in KEYS:
            self.db.execute("INSERT INTO lined_up (tenant_id, note) VALUES (%s, 'old')", (key,))
        self.db.prepare_threshold = None  # psycopg uses names whose Parse a failed pipeline has skipped, with plain PostgreSQL too
        first = "UPDATE lined_up SET note = 'new' WHERE tenant_id = 100"
        second = "UPDATE lined_up SET note = 'new' WHERE tenant_id = 1500"
        every = "UPDATE lined_up SET note = 'new' WHERE id > 0"
        for wrong in ("SELECT 1 / 0", "SELECT 1 / (tenant_id - 1500) FROM lined_up", "UPDATE lined_up SET note = 1 / 0 WHERE tenant_id = 2500"):
            for statements in ((first, second, wrong), (first, every, wrong), (every, wrong), (first, wrong, second)):
                with self.assertRaises(psycopg.errors.DivisionByZero), self.db.pipeline():
                    for statement in statements:
                        self.db.execute(statement)
                self.assertEqual(self.db.info.transaction_status, psycopg.pq.TransactionStatus.IDLE, statements)
                self.assertEqual(self.rows("SELECT DISTINCT note FROM lined_up"), [("old",)], statements)
        with self.db.pipeline():
            for statement in (first, second, every):
                self.db.execute(statement)
        self.assertEqual(self.rows("SELECT note, count(*) FROM lined_up GROUP BY 1"), [("new", 3)])
        self.db.prepare_threshold = 5

    def test_what_the_router_cannot_read_no_shard_answers_alone(self):
        """PostgreSQL says what is wrong with a statement; what it finds nothing wrong with it may not run for all others."""
        self.db.execute("CREATE TABLE unread (id int PRIMARY KEY) SHARD BY tenants (id)")
        # The router takes it for a call of between().
        strange = "SELECT id FROM unread WHERE id BETWEEN ((SELECT 1) UNION (SELECT 1)) AND 2"
        for send in (lambda text: self.db.execute(text), lambda text: self.db.execute(text, prepare=True), lambda text: self.db.execute("SELECT 1; " + text)):
            with self.assertRaisesRegex(psycopg.errors.FeatureNotSupported, "cannot read this statement"):
                send(strange)
            with self.assertRaisesRegex(psycopg.errors.SyntaxError, 'at or near "SELEC"') as caught:
                send("SELEC 1")
            self.assertIn("SELEC 1", str(caught.exception))
        self.db.execute("BEGIN")
        with self.assertRaises(psycopg.errors.FeatureNotSupported):
            self.db.execute(strange)
        with self.assertRaises(psycopg.errors.InFailedSqlTransaction):
            self.db.execute("SELECT 1")
        self.db.execute("ROLLBACK")
        self.db.execute("DROP TABLE unread")

    def test_limits_that_are_parameters(self):
        self.table("paged")
        self.db.execute("INSERT INTO paged (tenant_id, note) SELECT (g % 3) * 1000 + 100, 'n' || g FROM generate_series(1, 30) g")
        page = "SELECT note FROM paged ORDER BY substr(note, 2)::int LIMIT %s OFFSET %s"
        for prepare in (False, True):
            self.assertEqual(self.db.execute(page, (3, 10), prepare=prepare).fetchall(), [("n11",), ("n12",), ("n13",)])
            self.assertEqual(len(self.db.execute("SELECT 1 FROM paged LIMIT %s", (4,), prepare=prepare).fetchall()), 4)
            self.assertEqual(len(self.db.execute("SELECT 1 FROM paged OFFSET %b", (26,), prepare=prepare).fetchall()), 4)
            self.assertEqual(len(self.db.execute("SELECT 1 FROM paged LIMIT %s", (None,), prepare=prepare).fetchall()), 30)

    def test_parameters_after_literals(self):
        """A form of INSERT that was learnt with literals is a statement with parameters as well."""
        self.table("paid", columns="id int, at timestamp")
        self.db.execute("INSERT INTO paid VALUES (100, 1, CURRENT_TIMESTAMP)")
        parse = self.db.pgconn.prepare(b"paid", b"INSERT INTO paid VALUES ($1, $2, CURRENT_TIMESTAMP)")
        self.assertEqual(parse.error_message, b"")
        for key in KEYS:
            done = self.db.pgconn.exec_prepared(b"paid", [str(key).encode(), b"2"])
            self.assertEqual(done.error_message, b"")
        self.assertEqual(self.one("SELECT count(*) FROM paid"), 4)


class OneShard(unittest.TestCase):
    def test_definitions_in_a_transaction_that_one_shard_has_all_of(self):
        house = House(PROGRAM, shards=1)
        try:
            with house.sql() as db:
                db.execute(f"CREATE SHARD s1 DSN '{house.dsn(1)}'")
                db.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
                db.execute("CREATE SHARDLET a OF tenants FOR VALUES FROM (MINVALUE) TO (MAXVALUE) ON SHARD s1")
                for name, kept in (("kept", True), ("undone", False)):
                    with db.transaction(force_rollback=not kept):
                        db.execute(f"CREATE TABLE {name} (tenant_id bigint PRIMARY KEY) SHARD BY tenants (tenant_id)")
                        db.execute(f"INSERT INTO {name} VALUES (1), (2)")
                        with db.transaction(force_rollback=True):
                            db.execute(f"CREATE TABLE {name}2 (tenant_id bigint) SHARD BY tenants (tenant_id)")
                        self.assertEqual(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0], 2)
                self.assertEqual([row[0] for row in db.execute("SHOW SHARDED TABLES").fetchall()], ["public.kept"])
                self.assertEqual(db.execute("SELECT count(*) FROM kept").fetchone()[0], 2)
        finally:
            house.close()


class NewPassword(unittest.TestCase):
    def test_a_shard_whose_role_has_another_password(self):
        house = House(PROGRAM, shards=1)
        try:
            with house.cluster.admin("postgres") as admin:
                admin.execute("CREATE ROLE svc SUPERUSER LOGIN PASSWORD 'one'")
                dsn = f"host=127.0.0.1 port={house.cluster.port} dbname=d1 user=svc password="
                with house.sql() as db:
                    db.execute(f"CREATE SHARD s1 DSN '{dsn}one'")
                    self.assertEqual(db.execute("SELECT current_user").fetchone()[0], "svc")
                    admin.execute("ALTER ROLE svc PASSWORD 'two'")
                    db.execute(f"ALTER SHARD s1 SET DSN '{dsn}two'")
                    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'svc'")
                with house.sql() as db:
                    self.assertEqual(db.execute("SELECT current_user").fetchone()[0], "svc")
        finally:
            house.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
