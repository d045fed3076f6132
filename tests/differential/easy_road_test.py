"""One existing database with data becomes shard s1 of a one-shardlet map while its application goes on, and is then split.

The application writes directly to PostgreSQL at first and through the router later, and never gets an error; the rows are
those of the database, none copied; afterwards half of the keys move to an empty second server.
"""

import os
import shutil
import sys
import threading
import time

import psycopg

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402


class Application:
    """Counts up a row of its own, on and on, wherever it is told to connect."""

    def __init__(self, port, database):
        self.where, self.counted, self.trouble, self.ended = (port, database), {}, [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        connected, connection, key = None, None, 0
        try:
            while not self.ended:
                if connected != self.where:
                    connected = self.where
                    connection = connect(*connected)
                key = (key + 7) % 100
                connection.execute("UPDATE orders SET seen = seen + 1 WHERE tenant = %s AND id = 1", [key])
                self.counted[key] = self.counted.get(key, 0) + 1
                time.sleep(0.002)
        except Exception as error:  # told at the end
            self.trouble.append(error)

    def end(self):
        self.ended = True
        self.thread.join(30)
        assert not self.trouble, self.trouble
        return self.counted


def connect(port, database):
    return psycopg.connect(host="127.0.0.1", port=port, dbname=database, user=USER, password=PASSWORD, autocommit=True)


def main():
    root = scratch_directory("kintsugi-easy-road-")
    cluster = Cluster(root, settings={"max_prepared_transactions": 100, "wal_level": "logical",
                                      "wal_retrieve_retry_interval": "200ms"})
    try:
        with cluster.admin("postgres") as admin:
            for database in ("grown", "fresh"):
                admin.execute(f"CREATE DATABASE {database} OWNER {USER}")
            admin.execute(f"ALTER ROLE {USER} SUPERUSER")
        with connect(cluster.port, "grown") as plain:
            plain.execute("CREATE TABLE orders (tenant bigint NOT NULL, id int NOT NULL, note text, number serial, "
                          "seen bigint NOT NULL DEFAULT 0, PRIMARY KEY (tenant, id))")
            plain.execute("CREATE TABLE rates (code text PRIMARY KEY, rate numeric)")
            plain.execute("INSERT INTO rates VALUES ('eur', 1), ('usd', 1.1)")
            plain.execute("INSERT INTO orders (tenant, id, note) SELECT t, i, 'order ' || i FROM generate_series(0, 99) t, "
                          "generate_series(1, 20) i")
            where_it_was = plain.execute("SELECT pg_relation_filenode('orders')").fetchone()
        application = Application(cluster.port, "grown")
        router = Kintsugi(os.environ["KINTSUGI_PROGRAM"], cluster, root, "router",
                          sections={"map": {"store": "sqlite:map.db"}},
                          users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True)
        dsn = "host=127.0.0.1 port={} dbname={} user={} password={}"
        admin = connect(router.port, "app")
        admin.execute(f"CREATE SHARD s1 DSN '{dsn.format(cluster.port, 'grown', USER, PASSWORD)}'")
        admin.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
        admin.execute("CREATE SHARDLET everything OF tenants FOR VALUES FROM (MINVALUE) TO (MAXVALUE) ON SHARD s1")
        admin.execute("ALTER TABLE orders SHARD BY tenants (tenant)")
        admin.execute("ALTER TABLE rates REPLICATED")
        application.where = (router.port, "app")
        time.sleep(0.5)
        assert admin.execute("SELECT count(*), max(note) FROM orders").fetchone() == (2000, "order 9")
        assert admin.execute("SELECT pg_relation_filenode('orders')").fetchone() == where_it_was, "it was copied"

        admin.execute(f"CREATE SHARD s2 DSN '{dsn.format(cluster.port, 'fresh', USER, PASSWORD)}'")
        deadline = time.monotonic() + 60
        while {row[0]: row[2] for row in admin.execute("SHOW SHARDS").fetchall()}["s2"] != "online":
            assert time.monotonic() < deadline, admin.execute("SHOW JOBS").fetchall()
            time.sleep(0.2)
        admin.execute("SPLIT SHARDLET everything AT (50) INTO (low, high) MOVE high TO SHARD s2 WITH (wait = true)")
        time.sleep(0.3)
        counted = application.end()
        assert len(counted) == 100, len(counted)
        seen = dict(admin.execute("SELECT tenant, seen FROM orders WHERE id = 1 ORDER BY tenant").fetchall())
        assert seen == {key: counted.get(key, 0) for key in seen}, "an update is lost or doubled"
        with connect(cluster.port, "fresh") as fresh:
            assert fresh.execute("SELECT count(*), min(tenant) FROM orders").fetchone() == (1000, 50)
            assert fresh.execute("SELECT count(*) FROM rates").fetchone() == (2,)
        numbers = [row[0] for row in admin.execute(
            "INSERT INTO orders (tenant, id) SELECT t, 100 FROM generate_series(0, 99) t RETURNING number").fetchall()]
        assert len(set(numbers)) == 100 and min(numbers) > 2000, "serial values that are not new"
        print(f"passed: {sum(counted.values())} updates, none lost")
        router.stop()
        return 0
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
