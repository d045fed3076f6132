"""pg_dump of a sharded database through the router, and its dump into a plain PostgreSQL and through another router.

    KINTSUGI_PROGRAM   the program to test
"""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

import psycopg  # noqa: E402
from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

SCHEMA = """
CREATE TABLE orders (tenant int NOT NULL, id bigserial, amount numeric(10,2), note text, PRIMARY KEY (tenant, id)) SHARD BY tenants (tenant);
CREATE TABLE lines (tenant int NOT NULL, order_id bigint NOT NULL, line int NOT NULL, item text DEFAULT 'nut', PRIMARY KEY (tenant, order_id, line),
  FOREIGN KEY (tenant, order_id) REFERENCES orders (tenant, id)) SHARD BY tenants (tenant);
CREATE INDEX orders_note ON orders (note);
CREATE VIEW big AS SELECT * FROM orders WHERE amount > 30;
CREATE TABLE settings (name text PRIMARY KEY, value int);
INSERT INTO orders (tenant, amount, note) SELECT g % 10, g, CASE WHEN g % 3 > 0 THEN 'tab' || chr(9) || g || E'\\\\' END FROM generate_series(1, 60) g;
INSERT INTO lines (tenant, order_id, line) SELECT tenant, id, 1 FROM orders;
INSERT INTO settings VALUES ('a', 1), ('b', NULL);
"""
TABLES = "orders", "lines", "settings", "big"


def router(program, cluster, root, name, shards):
    with cluster.admin("postgres") as admin:
        for i in range(shards):
            admin.execute(f"CREATE DATABASE {name}_s{i + 1} OWNER {USER}")
    made = Kintsugi(program, cluster, root, name, sections={"map": {"store": f"sqlite:{name}.db"}},
                    users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True)
    with connect(made.port, "app") as c:
        for i in range(shards):
            c.execute(f"CREATE SHARD {name}{i + 1} DSN 'host=127.0.0.1 port={cluster.port} dbname={name}_s{i + 1} user={USER} password={PASSWORD}'")
        c.execute("CREATE SHARD MAP tenants BY RANGE (int)")
        cuts = ["MINVALUE", *(str(10 * (i + 1) // shards) for i in range(shards - 1)), "MAXVALUE"]
        for i in range(shards):
            c.execute(f"CREATE SHARDLET {name}_t{i} OF tenants FOR VALUES FROM ({cuts[i]}) TO ({cuts[i + 1]}) ON SHARD {name}{i + 1}")
    return made


def connect(port, database):
    return psycopg.connect(host="127.0.0.1", port=port, dbname=database, user=USER, password=PASSWORD, autocommit=True)


def dump(port, *options):
    return subprocess.run(["pg_dump", "-h", "127.0.0.1", "-p", str(port), "-U", USER, "-d", "app", "-N", "kintsugi", *options],
                          env={**os.environ, "PGPASSWORD": PASSWORD}, capture_output=True, text=True, timeout=300)


def restore(port, database, text):
    done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", USER, "-d", database],
                          env={**os.environ, "PGPASSWORD": PASSWORD}, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def contents(connection):
    return {table: sorted(map(str, connection.execute(f"SELECT * FROM {table}").fetchall())) for table in TABLES}


def main():
    root = scratch_directory("kintsugi-dump-")
    cluster = Cluster(root, settings={"max_prepared_transactions": 20, "wal_level": "logical"})
    program = os.environ["KINTSUGI_PROGRAM"]
    running = []
    try:
        running.append(router(program, cluster, root, "a", 3))
        with connect(running[0].port, "app") as a:
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    a.execute(statement)
            # The highest number is not the home shard's.
            a.execute("SELECT setval('orders_id_seq', 100000)")
            highest = a.execute("INSERT INTO orders (tenant, note) VALUES (9, 'last') RETURNING id").fetchone()[0]
            expected = contents(a)
        text = dump(running[0].port)
        assert text.returncode == 0, text.stderr
        assert "kintsugi" not in text.stdout

        with cluster.admin("postgres") as admin:
            admin.execute(f"CREATE DATABASE plain OWNER {USER}")
        restore(cluster.port, "plain", text.stdout)
        with connect(cluster.port, "plain") as plain:
            assert contents(plain) == expected
            assert plain.execute("INSERT INTO orders (tenant) VALUES (1) RETURNING id").fetchone()[0] > highest

        running.append(router(program, cluster, root, "b", 2))
        restore(running[1].port, "app", "SET kintsugi.shard_new_tables = 'tenants(tenant)';\n" + text.stdout)
        with connect(running[1].port, "app") as b:
            assert contents(b) == expected
            made = [row[:3] for row in b.execute("SHOW SHARDED TABLES").fetchall()]
            assert [row[0] for row in made] == ["public.lines", "public.orders"], made
            ids = [row[0] for row in b.execute("INSERT INTO orders (tenant) SELECT g % 10 FROM generate_series(1, 40) g RETURNING id").fetchall()]
            assert len(set(ids)) == 40 and min(ids) > highest, (highest, sorted(ids))
            for statement in ("ALTER TABLE orders ALTER COLUMN id SET INCREMENT BY 1", "ALTER TABLE orders ALTER COLUMN id RESTART WITH 7"):
                try:
                    b.execute(statement)
                    raise AssertionError(f"{statement} is taken")
                except psycopg.errors.FeatureNotSupported:
                    pass

        # What a router cannot give says so, and what to do instead.
        for options, why in ((["-j", "2", "-Fd", "-f", os.path.join(root, "d")], "Leave out --jobs"), (["--inserts"], "Leave READ ONLY out")):
            refused = dump(running[0].port, *options)
            assert refused.returncode != 0 and why in refused.stderr, (options, refused.stderr)
        for options in (["-Fc", "-f", os.path.join(root, "c")], ["--data-only"], ["-t", "orders"], ["--serializable-deferrable"]):
            done = dump(running[0].port, *options)
            assert done.returncode == 0, (options, done.stderr)
    finally:
        for each in running:
            each.stop()
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
