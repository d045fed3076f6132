"""What the tests of moves through real routers have in common: shards, a map store, several `kintsugi serve` on it."""

import os
import shutil
import socket
import sys
import threading
import time

import psycopg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, free_port, scratch_directory  # noqa: E402
from shift import Shift  # noqa: E402, F401 (for those who import it from here)
from systems import Kintsugi  # noqa: E402

SETTINGS = {"wal_level": "logical", "max_prepared_transactions": 50, "max_replication_slots": 30, "max_wal_senders": 30,
            "max_worker_processes": 30, "max_logical_replication_workers": 16, "wal_retrieve_retry_interval": "200ms",
            "max_connections": 300}


class World:
    """`shards` databases and the store. `apart`: each in a PostgreSQL of its own, so that it can be restarted."""

    def __init__(self, shards, routers, apart=False, sections=None, proxied=()):
        self.root = scratch_directory("kintsugi-storm-")
        self.clusters, self.routers, self.proxies = [], [], []
        for i in range(shards + 1 if apart else 1):
            directory = os.path.join(self.root, f"pg{i}")
            os.mkdir(directory)
            os.chmod(directory, 0o755)
            self.clusters.append(Cluster(directory, settings=SETTINGS))
            with self.clusters[i].admin("postgres") as admin:
                admin.execute(f"ALTER ROLE {USER} SUPERUSER")  # subscriptions need it in PostgreSQL 15
        self.store = self.clusters[0]
        self.places = []  # of each shard: cluster, database
        for i in range(shards):
            cluster = self.clusters[i + 1 if apart else 0]
            with cluster.admin("postgres") as admin:
                admin.execute(f"CREATE DATABASE shard{i + 1} OWNER {USER}")
            self.places.append((cluster, f"shard{i + 1}"))
        with self.store.admin("postgres") as admin:
            admin.execute(f"CREATE DATABASE store OWNER {USER}")
        for i in range(routers):
            port = self.store.port
            if i in proxied:
                self.proxies.append(Proxy(port))
                port = self.proxies[-1].port
            store = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/store"
            everything = {"pool": {"size": 20}, "limits": {"hold_timeout": "20s"}, "map": {"store": store},
                          **(sections or {})}
            self.routers.append(
                Kintsugi(os.environ["KINTSUGI_PROGRAM"], self.clusters[0], self.root, name=f"router{i + 1}",
                         sections=everything, users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True,
                         environment={"KINTSUGI_STORM": "1"}))
        with self.connect() as admin:
            for i in range(shards):
                admin.execute(f"CREATE SHARD s{i + 1} DSN '{self.dsn(i)}'")

    def dsn(self, shard):
        cluster, database = self.places[shard]
        return f"host=127.0.0.1 port={cluster.port} dbname={database} user={USER} password={PASSWORD}"

    def connect(self, router=0, autocommit=True, **more):
        return psycopg.connect(
            f"host=127.0.0.1 port={self.routers[router].port} dbname={DATABASE} user={USER} password={PASSWORD}",
            autocommit=autocommit, **more)

    def at_shard(self, shard):
        cluster, database = self.places[shard]
        return cluster.admin(database)

    def stop(self):
        for router in self.routers:
            router.kill()
        for proxy in self.proxies:
            proxy.close()
        for cluster in self.clusters:
            cluster.stop()
        shutil.rmtree(self.root, ignore_errors=True)


class Proxy:
    """A wire to the map store that can be cut."""

    def __init__(self, target):
        self.target, self.port, self.open = target, free_port(), True
        self.lock, self.sockets = threading.Lock(), set()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.target))
            with self.lock:
                self.sockets |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.open = False
        with self.lock:
            for each in self.sockets:
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sockets.clear()

    def mend(self):
        self.open = True

    def close(self):
        self.cut()
        self.listener.close()


def rows_where_the_map_says(world, table, key, keys, under_load=False):
    """Every row is on the shard that SHOW SHARDLETS names, once, and nothing is left of any move (nor, but under load, of
    any commit in two phases; triggers that transactions keep are disabled then, and go when those have ended)."""
    kept = "tgname LIKE 'kintsugi%'" + (" AND tgenabled <> 'D'" if under_load else "")
    with world.connect() as admin:
        shardlets = [row for row in admin.execute("SHOW SHARDLETS").fetchall() if row[2] is not None]  # of LIST maps: none
    for i in range(len(world.places)):
        with world.at_shard(i) as shard:
            found = sorted(row[0] for row in shard.execute(f"SELECT {key} FROM {table}").fetchall())
            due = sorted(
                k for _, _, low, high, _, place, _ in shardlets if place == f"s{i + 1}" for k in keys
                if (low == "MINVALUE" or k >= int(low)) and (high == "MAXVALUE" or k < int(high)))
            assert found == due, f"shard s{i + 1} has {sorted(set(found) ^ set(due))} too many or too few"
            deadline = time.monotonic() + (0 if under_load else 20)
            while (shard.execute(f"SELECT count(*) FROM pg_trigger WHERE {kept}").fetchone() != (0,)
                   and time.monotonic() < deadline):
                time.sleep(0.05)
            left = shard.execute(
                "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_subscription WHERE subdbid = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())), (SELECT count(*) FROM "
                "pg_prepared_xacts WHERE database = current_database()), (SELECT count(*) FROM pg_replication_slots "
                f"WHERE database = current_database()), (SELECT count(*) FROM pg_trigger WHERE {kept}), "
                "(SELECT count(*) FROM kintsugi.fence), (SELECT count(*) FROM kintsugi.marker), "
                "(SELECT count(*) FROM kintsugi.arrival)").fetchone()
            if under_load:
                left = left[:2] + (0,) + left[3:]
            assert left == (0, 0, 0, 0, 0, 0, 0, 0), f"shard s{i + 1} keeps {left}"
