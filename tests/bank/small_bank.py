"""Forty accounts of 500 on two shards behind one router: 0 to 19 on the first, 20 to 39 on the second."""

import contextlib
import os
import shutil
import sys

import psycopg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from shift import Shift  # noqa: E402, F401 (for those who import it from here)
from systems import Kintsugi  # noqa: E402

ACCOUNTS, START = 40, 500
SUM = ACCOUNTS * START


def connect(router, **more):
    return psycopg.connect(host="127.0.0.1", port=router.port, dbname=DATABASE, user=USER, password=PASSWORD, sslmode="disable",
                           autocommit=True, **more)


@contextlib.contextmanager
def small_bank(*settings, routers=1):
    """Gives the clusters and the routers. `settings`: of each cluster's server, beside what transfers need."""
    root = scratch_directory("kintsugi-bank-")
    clusters = [Cluster(root, name, settings={"max_prepared_transactions": 10} | own) for name, own in zip(("one", "two"), settings)]
    running = []
    try:
        store = "sqlite:map.db"
        if routers > 1:
            with clusters[0].admin() as admin:
                admin.execute(f"CREATE DATABASE store OWNER {USER}")
            store = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{clusters[0].port}/store"
        for i in range(routers):
            running.append(Kintsugi(os.environ["KINTSUGI_PROGRAM"], clusters[0], root, name=f"router{i + 1}",
                                    sections={"pool": {"size": 10, "wait_timeout": "1s"}, "map": {"store": store}},
                                    users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True))
        with connect(running[0]) as admin:
            for name, cluster in zip(("s1", "s2"), clusters):
                admin.execute(f"CREATE SHARD {name} DSN '{cluster.shard_dsn()}'")
            admin.execute("CREATE SHARD MAP bank BY RANGE (int)")
            admin.execute("CREATE SHARDLET low OF bank FOR VALUES FROM (MINVALUE) TO (20) ON SHARD s1")
            admin.execute("CREATE SHARDLET high OF bank FOR VALUES FROM (20) TO (MAXVALUE) ON SHARD s2")
            admin.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) SHARD BY bank (id)")
            admin.execute("INSERT INTO accounts SELECT i, %s FROM generate_series(0, %s) i", (START, ACCOUNTS - 1))
        yield clusters, *running
        while running:
            running.pop().stop()
    finally:
        for router in running:
            print(router.log_tail(20))
            router.kill()
        for cluster in clusters:
            cluster.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)
