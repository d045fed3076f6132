"""Clients update, transfer across shards and count while shardlets are moved, split and merged without pause.

No client may see an error but 40001, no count may be wrong at any moment, and at the end the sum is what it was and every
row is where the map says. 40001 is for transactions that were open when their shardlet moved; a lone update may still
meet the fence a few milliseconds before its router hears of it, and the router does not repeat it yet.
"""

import os
import random
import shutil
import sys
import threading
import time

import psycopg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from shift import Shift  # noqa: E402
from systems import Kintsugi  # noqa: E402

ROWS = 100
JOBS = (
    "MOVE SHARDLET a TO SHARD s3",
    "SPLIT SHARDLET b AT (75) INTO (b1, b2) MOVE b2 TO SHARD s1",
    "MOVE SHARDLET a TO SHARD s2",
    "MERGE SHARDLETS b1, b2 INTO b ON SHARD s2",
    "MOVE SHARDLET b TO SHARD s1",
    "SPLIT SHARDLET a AT (25) INTO (a1, a2)",
    "MERGE SHARDLETS a1, a2 INTO a",
)


class Storm:
    def __init__(self, router):
        self.router = router
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.done = {"updates": 0, "transfers": 0, "counts": 0, "met the fence": 0}
        self.errors, self.wrong = [], []
        self.longest_ms = 0.0
        self.threads = [
            threading.Thread(target=self.guarded, args=(f,), daemon=True)
            for f in (self.update, self.update, self.transfer, self.transfer, self.count)
        ]

    def connect(self, autocommit=True):
        return psycopg.connect(
            f"host=127.0.0.1 port={self.router.port} dbname={DATABASE} user={USER} password={PASSWORD}",
            autocommit=autocommit,
        )

    def guarded(self, work):
        try:
            work()
        except Exception as error:  # reported at the end
            self.errors.append(f"{work.__name__}: {error}")

    def note(self, what):
        with self.lock:
            self.done[what] += 1

    def update(self):
        chooser = random.Random()
        with self.connect() as connection:
            while not self.stop.is_set():
                began = time.monotonic()
                try:
                    done = connection.execute(
                        "UPDATE accounts SET seen = seen + 1 WHERE id = %s", [chooser.randrange(ROWS)]
                    )
                except psycopg.errors.SerializationFailure:
                    self.note("met the fence")
                    continue
                self.longest_ms = max(self.longest_ms, 1000 * (time.monotonic() - began))
                assert done.rowcount == 1, f"an update found {done.rowcount} rows"
                self.note("updates")

    def transfer(self):
        chooser = random.Random()
        with self.connect(autocommit=False) as connection:
            while not self.stop.is_set():
                first, second = sorted(chooser.sample(range(ROWS), 2))
                try:
                    connection.execute("UPDATE accounts SET balance = balance - 1 WHERE id = %s", [first])
                    connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", [second])
                    connection.commit()
                    self.note("transfers")
                except psycopg.Error as error:
                    if error.sqlstate != "40001":
                        raise
                    connection.rollback()

    def count(self):
        with self.connect() as connection:
            while not self.stop.is_set():
                rows = connection.execute("SELECT count(*) FROM accounts").fetchone()[0]
                if rows != ROWS:
                    self.wrong.append(rows)
                self.note("counts")

    def run(self):
        with self.connect() as admin:
            for thread in self.threads:
                thread.start()
            time.sleep(0.5)
            for job in JOBS:
                began = time.monotonic()
                row = admin.execute(f"{job} WITH (wait = true)").fetchone()
                print(f"{job}: {row[3]} in {time.monotonic() - began:.2f} s")
                assert row[3] == "done", row
            shift = Shift(0.5, lambda: min(self.done[what] for what in ("updates", "transfers", "counts")) > 20)
            while shift.goes_on():
                time.sleep(0.1)
            self.stop.set()
            for thread in self.threads:
                thread.join(30)
                assert not thread.is_alive(), "a client hangs"
            print(self.done, f"longest update {self.longest_ms:.0f} ms")
            assert not self.errors, self.errors
            assert not self.wrong, f"counts that were wrong: {self.wrong[:10]}"
            met = self.done.pop("met the fence")
            assert min(self.done.values()) > 20, "too little was going on to show anything"
            assert met <= 2 * len(JOBS), f"{met} updates met a fence"
            total = admin.execute("SELECT count(*), sum(balance)::bigint, sum(seen)::bigint FROM accounts").fetchone()
            assert total == (ROWS, 100 * ROWS, self.done["updates"]), (total, self.done)
            return admin.execute("SHOW SHARDLETS").fetchall()


def main():
    root = scratch_directory("kintsugi-storm-")
    settings = {"wal_level": "logical", "max_prepared_transactions": 50, "max_replication_slots": 20,
                "max_wal_senders": 20, "max_worker_processes": 20}
    clusters = []
    try:
        for i in range(3):
            os.mkdir(os.path.join(root, str(i)))
            os.chmod(os.path.join(root, str(i)), 0o755)
            cluster = Cluster(os.path.join(root, str(i)), settings=settings)
            clusters.append(cluster)
            with cluster.admin("postgres") as admin:
                admin.execute(f"ALTER ROLE {USER} SUPERUSER")  # subscriptions need it in PostgreSQL 15
        router = Kintsugi(
            os.environ["KINTSUGI_PROGRAM"],
            clusters[0],
            root,
            sections={"pool": {"size": 10}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
            store=True,
        )
        storm = Storm(router)
        with storm.connect() as admin:
            for i, cluster in enumerate(clusters):
                admin.execute(f"CREATE SHARD s{i + 1} DSN 'host=127.0.0.1 port={cluster.port} dbname={DATABASE} "
                              f"user={USER} password={PASSWORD}'")
            admin.execute("CREATE SHARD MAP keys BY RANGE (bigint)")
            admin.execute("CREATE SHARDLET a OF keys FOR VALUES FROM (MINVALUE) TO (50) ON SHARD s1")
            admin.execute("CREATE SHARDLET b OF keys FOR VALUES FROM (50) TO (MAXVALUE) ON SHARD s2")
            admin.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, "
                          "seen bigint NOT NULL DEFAULT 0) SHARD BY keys (id)")
            for i in range(ROWS):
                admin.execute("INSERT INTO accounts (id, balance) VALUES (%s, 100)", [i])
        shardlets = storm.run()
        router.stop()
        # Every row is where the map says, and nowhere else.
        places = {name: (shard, low, high) for name, _, low, high, _, shard, _ in shardlets}
        for i, cluster in enumerate(clusters):
            with cluster.admin(DATABASE) as admin:
                ids = {row[0] for row in admin.execute("SELECT id FROM accounts").fetchall()}
                due = set()
                for shard, low, high in places.values():
                    if shard == f"s{i + 1}":
                        due |= {k for k in range(ROWS) if (low == "MINVALUE" or k >= int(low))
                                and (high == "MAXVALUE" or k < int(high))}
                assert ids == due, f"shard s{i + 1} has {sorted(ids ^ due)} too many or too few"
                left = admin.execute("SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM "
                                     "pg_publication), (SELECT count(*) FROM pg_subscription), "
                                     "(SELECT count(*) FROM pg_prepared_xacts)").fetchone()
                assert left == (0, 0, 0, 0), f"shard s{i + 1} keeps slots, publications, subscriptions: {left}"
    finally:
        for cluster in clusters:
            cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
