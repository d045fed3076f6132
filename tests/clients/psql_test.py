"""psql: scripts as people and deployment tools run them; its whole output, standard error included, is compared."""

import os
import re
import subprocess

from harness import PATIENCE, main, scaled, scenario
from postgres import BIN


def psql(run, script, *arguments, stdin=None, **environment):
    """Runs a script from standard input, or -c commands, and notes everything psql wrote."""
    done = subprocess.run(
        [f"{BIN}/psql", "-X", *arguments],
        input=script if stdin is None else stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=50 * PATIENCE,
        env=run.environment(**environment),
    )
    text = re.sub(r'server at "127.0.0.1", port \d+', 'server at "127.0.0.1", port PORT', done.stdout)
    text = re.sub(r'at port "\d+"', 'at port "PORT"', text)
    text = re.sub(r"with PID \d+", "with PID ...", text)
    text = re.sub(r"\n(CONTEXT:  )?shard s1(?=\n|$)", "", text)
    text = text.replace('\nHINT:  This router serves the database "app".', "")
    text = text.replace(f"psql-{run.system.name}", "psql")
    run.note(f"status {done.returncode}")
    for line in text.splitlines():
        run.note(line)


SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE people (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, m mood DEFAULT 'ok',
                     born date, CONSTRAINT grown CHECK (born < '2030-01-01'));
CREATE TABLE pets (id serial, owner int REFERENCES people ON DELETE CASCADE, name varchar(20));
CREATE INDEX pets_owner ON pets (owner) WHERE name <> '';
CREATE VIEW owners AS SELECT p.name, count(*) FROM people p JOIN pets ON owner = p.id GROUP BY 1;
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE TABLE parts (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
INSERT INTO people (name, born) VALUES ('Ann', '1990-02-03'), ('Bob', NULL);
INSERT INTO pets (owner, name) VALUES (1, 'Rex'), (1, 'Tom'), (2, 'Kit');
COMMENT ON TABLE people IS 'people, mostly';
"""


@scenario(wire=False)
def describe_commands(run):
    psql(run, SCHEMA, "-q")
    psql(
        run,
        "\\d\n\\d+ people\n\\d pets\n\\d owners\n\\di\n\\dt+ pe*\n\\df\n\\dT+\n\\dv\n\\ds\n\\dn+\n\\d parts\n\\d+ parts_1\n"
        "\\dp people\n\\sf twice\n\\sv owners\n\\dC int4range\n\\dx\n\\du app\n\\dd\n\\d nowhere\n\\dRp\n\\des\n\\dE\n\\l app\n\\z",
    )


@scenario
def everyday_script(run):
    psql(
        run,
        SCHEMA + r"""
\pset null '(none)'
SELECT * FROM people ORDER BY id;
\x on
SELECT * FROM people ORDER BY id;
\x off
\t on
SELECT name FROM pets ORDER BY 1 \g (format=csv)
\t off
SELECT count(*) AS n, max(name) AS top FROM pets \gset
\echo :n :top
SELECT :n * 2 AS doubled, :'top' AS quoted, :"n" FROM (SELECT 1 AS "3") s;
SELECT 'SELECT ' || i || ' AS generated' FROM generate_series(1, 3) i \gexec
SELECT * FROM people JOIN pets ON owner = people.id \gdesc
SELECT a, b, a * b FROM generate_series(1, 3) a, generate_series(1, 3) b \crosstabview
\if :n
  SELECT 'taken';
\else
  SELECT 'not taken';
\endif
\conninfo
\encoding
\echo :SERVER_VERSION_NUM :ENCODING :USER :DBNAME
SELECT 1 AS one \; SELECT 2 AS two \; SELECT 3 / 0;
SELECT 1 \; SELECT 2 AS last;
\errverbose
SELECT oops;
\errverbose
\echo :ERROR :SQLSTATE :LAST_ERROR_MESSAGE :ROW_COUNT
UPDATE pets SET name = upper(name) RETURNING *;
EXPLAIN (COSTS OFF) SELECT * FROM people WHERE id = 1;
VALUES (1, 'x'), (2, NULL);
\timing off
DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'careful'; END $$;
DROP TABLE IF EXISTS nowhere;
SHOW search_path;
SELECT current_user, current_database(), current_schema();
""",
    )


@scenario
def errors_and_transactions(run):
    script = """
CREATE TABLE t (i int PRIMARY KEY);
BEGIN;
INSERT INTO t VALUES (1);
SAVEPOINT a;
INSERT INTO t VALUES (1);
SELECT 1;
ROLLBACK TO a;
INSERT INTO t VALUES (2);
COMMIT;
SELECT * FROM t ORDER BY i;
BEGIN;
SELECT syntax error here;
INSERT INTO t VALUES (3);
COMMIT;
SELECT * FROM t ORDER BY i;
COMMIT;
"""
    psql(run, script)
    psql(run, script, "-v", "ON_ERROR_STOP=1")
    psql(run, script, "-v", "ON_ERROR_ROLLBACK=on", "-a")
    psql(run, "DROP TABLE t;" + script, "-1", "-v", "ON_ERROR_STOP=1", "-f", "-")
    psql(run, script, "-v", "AUTOCOMMIT=off", "-e")
    psql(
        run,
        "",
        "-c",
        "SELECT 1 AS a; SELECT 2 AS b",
        "-c",
        "CREATE TABLE q (i int); SELECT 1/0",
        "-c",
        "TABLE q",
    )
    psql(run, "", "-At", "-c", "SELECT 'a', NULL, 3", "-c", "SELECT '1 day'::interval")
    psql(run, "SELECT 1;\nSELECT 2;\n", "-S", "--csv")


@scenario
def copy_commands(run):
    directory = os.path.join(run.stage.root, f"psql-{run.system.name}")
    os.makedirs(directory, exist_ok=True)
    rows = scaled(20000)
    with open(os.path.join(directory, "in.csv"), "w") as file:
        file.write("i,t\n" + "".join(f'{i},"row ""{i}"""\n' for i in range(rows)))
    psql(
        run,
        rf"""
CREATE TABLE c (i int, t text);
\copy c FROM '{directory}/in.csv' CSV HEADER
SELECT count(*), sum(i), max(length(t)) FROM c;
\copy (SELECT * FROM c WHERE i < 5 ORDER BY i) TO STDOUT
\copy c TO '{directory}/out.bin' BINARY
TRUNCATE c;
\copy c FROM '{directory}/out.bin' BINARY
SELECT count(*), sum(i) FROM c;
COPY c FROM STDIN;
1	one
2	two\nlines
\.
COPY c FROM STDIN;
1	one	too many
\.
COPY c FROM STDIN;
not a number	x
\.
SELECT count(*) FROM c;
BEGIN;
COPY c FROM STDIN;
bad
\.
SELECT 1;
ROLLBACK;
COPY (SELECT i FROM c ORDER BY i DESC LIMIT 3) TO STDOUT;
COPY nowhere TO STDOUT;
\copy nowhere FROM '{directory}/in.csv'
\copy c FROM '{directory}/absent'
COPY c TO '/root/not-allowed';
SELECT 1 AS a \; COPY c TO STDOUT (FORMAT csv, HEADER) \; SELECT 2 AS b;
""".replace("COPY c TO STDOUT (FORMAT csv, HEADER)", "COPY (SELECT 7 AS x) TO STDOUT (FORMAT csv, HEADER)"),
    )
    with open(os.path.join(directory, "out.bin"), "rb") as file:
        run.note("binary file", len(file.read()))


@scenario
def listen_and_notify(run):
    psql(
        run,
        """
LISTEN a;
NOTIFY a, 'hello';
SELECT 1;
BEGIN;
NOTIFY a, 'in transaction';
SELECT 2;
COMMIT;
SELECT pg_notify('a', 'by function');
UNLISTEN a;
NOTIFY a, 'nobody';
SELECT * FROM pg_listening_channels();
""",
    )


@scenario
def settings_and_variables(run):
    psql(
        run,
        """
SET application_name = 'my psql';
SHOW application_name;
SET search_path = nowhere, public;
SHOW search_path;
SET TIME ZONE 'Asia/Tokyo';
SELECT '2024-01-01 00:00+00'::timestamptz;
\\encoding LATIN1
SHOW client_encoding;
SELECT 'é';
\\encoding UTF8
RESET ALL;
SHOW search_path;
SHOW client_encoding;
SET SESSION AUTHORIZATION DEFAULT;
SET ROLE other;
SELECT current_user;
RESET ROLE;
SELECT current_user;
PREPARE q (int) AS SELECT $1 + 1;
EXECUTE q (1);
EXECUTE q (2);
DEALLOCATE q;
EXECUTE q (3);
DISCARD ALL;
""",
        PGOPTIONS="-c work_mem=3MB",
        PGAPPNAME="from the environment",
        PGTZ="Europe/Paris",
        PGDATESTYLE="German",
    )


@scenario(wire=False)
def fetch_count_uses_a_cursor(run):
    psql(
        run,
        f"\\set FETCH_COUNT 100\nSELECT i, repeat('x', 20) FROM generate_series(1, {scaled(3000)}) i;\n"
        "SELECT i, 10 / (150 - i) FROM generate_series(1, 200) i;\nSELECT 'after';\n",
        "-At",
    )


@scenario(wire=False)  # transaction ids are among the rows
def dump_and_restore(run):
    psql(run, SCHEMA, "-q")
    done = subprocess.run(
        [f"{BIN}/pg_dump", "--no-sync", "--schema=public"],
        capture_output=True,
        text=True,
        timeout=50 * PATIENCE,
        env=run.environment(),
    )
    run.note(done.returncode, done.stderr)
    text = re.sub(r"\\(un)?restrict \S+", "", done.stdout)
    for line in text.splitlines():
        run.note(line)
    psql(run, "DROP SCHEMA public CASCADE;\n" + text, "-q", "-v", "ON_ERROR_STOP=1")
    psql(run, "SELECT * FROM owners ORDER BY 1", "-v", "ON_ERROR_STOP=1")


@scenario
def wide_and_long_output(run):
    psql(
        run,
        f"SELECT i, repeat('y', 80) FROM generate_series(1, {scaled(20000)}) i;\n"
        f"SELECT repeat('z', {scaled(3000000)});\nSELECT length(repeat('z', 3000000));\n",
        "-Atq",
    )


@scenario(noise=False)
def refused_logins(run):
    psql(run, "SELECT 1", PGPASSWORD="wrong")
    psql(run, "SELECT 1", PGUSER="nobody", PGPASSWORD="wrong")
    psql(run, "SELECT 1", PGDATABASE="nowhere")
    psql(run, "SELECT 1", "-w", PGPASSWORD="")


if __name__ == "__main__":
    main()
