"""A router of a check's own, which it may starve, stop and cut off from its shard."""

import threading

import psycopg

from harness import Run
from postgres import DATABASE, SECOND, USER, wait_until

UNREACHABLE = {"KG005", "08006", "08001", "08003", "57P01", "57P03", "08004"}


class Router:
    """A router of this check alone, stopped at its end."""

    def __init__(self, stage, name, **options):
        self.stage, self.name, self.options = stage, name, options

    def __enter__(self):
        stage_fresh(self.stage)
        self.system = self.stage.router(f"extra-{self.name}", **self.options)
        return self.system

    def __exit__(self, kind, *_):
        if kind:
            print(f"---- the router's log\n{self.system.log_tail(30)}")
            self.system.kill() if hasattr(self.system, "kill") else self.system.stop()
        else:
            self.system.stop()


def stage_fresh(stage):
    if not stage.cluster.process:
        stage.cluster.start()
    stage.cluster.fresh_schema()


def connect(stage, system, **options):
    return Run(stage, system, None).connect(**options)


def two_shards(stage, admin, cut):
    """Shards a and b of two databases of the cluster, and a map m of integers that is cut there."""
    with stage.cluster.admin("postgres") as c:
        c.execute(f"DROP DATABASE IF EXISTS {SECOND}")
        c.execute(f"CREATE DATABASE {SECOND} OWNER {USER}")
    for name, database in (("a", DATABASE), ("b", SECOND)):
        admin.execute(f"CREATE SHARD {name} DSN '{stage.cluster.shard_dsn(dbname=database)}'")
    wait_until("both shards", lambda: all("preparing" not in row for row in admin.execute("SHOW SHARDS").fetchall()))
    admin.execute("CREATE SHARD MAP m BY RANGE (int)")
    admin.execute(f"CREATE SHARDLET low OF m FOR VALUES FROM (MINVALUE) TO ({cut}) ON SHARD a")
    admin.execute(f"CREATE SHARDLET high OF m FOR VALUES FROM ({cut}) TO (MAXVALUE) ON SHARD b")


def state_of(action):
    try:
        action()
        return None
    except psycopg.Error as error:
        return error.sqlstate or f"closed: {error}"


def active(stage, mark):
    with stage.cluster.admin() as admin:
        return admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s AND pid <> pg_backend_pid()",
            [f"%{mark}%"],
        ).fetchall()


def in_background(action):
    result = []
    thread = threading.Thread(target=lambda: result.append(state_of(action)), daemon=True)
    thread.start()

    def finish(seconds=30):
        thread.join(seconds)
        assert not thread.is_alive(), "the statement hangs"
        return result[0]

    return finish
