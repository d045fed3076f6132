"""A bank whose transfers cross shards, and whose sum is right whoever is killed at whichever step of the commit.

Each round kills the router at one of its failpoints, or a shard's PostgreSQL at some moment, by SIGKILL under load; then all
are started again. Whoever adds the accounts up meanwhile gets the sum or an error. When the prepared transactions have been settled, the sum is what it was, every account has what its
transfers say, and every transfer that was acknowledged is there.

    bank_test.py [--rounds N] [--seed S]        KINTSUGI_PROGRAM: the program to test
"""

import argparse
import os
import random
import shutil
import signal
import sys
import threading
import time

import psycopg

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory, wait_until  # noqa: E402
from shift import Shift  # noqa: E402
from systems import Kintsugi  # noqa: E402

ACCOUNTS, START = 40, 1000
STEPS = "txn.announced", "txn.prepared", "txn.decided", "txn.followed"


class Bank:
    def __init__(self, router, seed):
        self.router, self.random = router, random.Random(seed)
        self.lock = threading.Lock()
        self.number, self.acknowledged, self.errors = 0, set(), 0
        self.sums, self.wrong = 0, []
        self.stop = threading.Event()

    def connect(self, **more):
        return psycopg.connect(host="127.0.0.1", port=self.router.port, dbname=DATABASE, user=USER, password=PASSWORD,
                               sslmode="disable", connect_timeout=5, **more)

    def make(self, shards):
        with self.connect(autocommit=True) as admin:
            for name, cluster in shards.items():
                admin.execute(f"CREATE SHARD {name} DSN '{cluster.shard_dsn()}'")
            admin.execute("CREATE SHARD MAP bank BY RANGE (int)")
            for i, name in enumerate(shards):
                low = "MINVALUE" if i == 0 else str(ACCOUNTS * i // len(shards))
                high = "MAXVALUE" if i == len(shards) - 1 else str(ACCOUNTS * (i + 1) // len(shards))
                admin.execute(f"CREATE SHARDLET b{i} OF bank FOR VALUES FROM ({low}) TO ({high}) ON SHARD {name}")
            admin.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) SHARD BY bank (id)")
            # A transfer is written down on both sides.
            admin.execute("CREATE TABLE entries (account int, transfer int, amount bigint NOT NULL, "
                          "PRIMARY KEY (account, transfer)) SHARD BY bank (account)")
            for account in range(ACCOUNTS):
                admin.execute("INSERT INTO accounts VALUES (%s, %s)", (account, START))

    def client(self, number):
        chooser = random.Random(number)
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None:
                    connection = self.connect()
                    connection.execute("SET lock_timeout = '2s'")
                    connection.commit()
                with self.lock:
                    self.number += 1
                    transfer = self.number
                source = chooser.randrange(ACCOUNTS)
                target = (source + ACCOUNTS // 2 + chooser.randrange(5)) % ACCOUNTS  # on the other shard, as a rule
                amount = chooser.randint(1, 20)
                for account, change in sorted(((source, -amount), (target, amount))):
                    connection.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))
                    connection.execute("INSERT INTO entries VALUES (%s, %s, %s)", (account, transfer, change))
                connection.commit()
                with self.lock:
                    self.acknowledged.add(transfer)
            except psycopg.Error:
                self.errors += 1
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.05)
        if connection is not None:
            connection.close()

    def add_up(self):
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None:
                    connection = self.connect(autocommit=True)
                found = connection.execute("SELECT sum(balance) FROM accounts").fetchone()[0]
                self.sums += 1
                if found != ACCOUNTS * START:
                    self.wrong.append(found)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
                time.sleep(0.02)
        if connection is not None:
            connection.close()

    def run(self, seconds, trouble):
        """Clients at work, and in their midst the trouble."""
        self.stop.clear()
        threads = [threading.Thread(target=self.client, args=(self.random.randrange(1 << 30),)) for _ in range(4)]
        threads.append(threading.Thread(target=self.add_up))
        for thread in threads:
            thread.start()
        try:
            trouble()
            time.sleep(seconds)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()


def prepared(clusters):
    found = []
    for cluster in clusters:
        with cluster.admin() as admin:
            found += admin.execute("SELECT gid FROM pg_prepared_xacts").fetchall()
    return found


def check(bank, clusters):
    assert not bank.wrong, f"of {bank.sums} sums {len(bank.wrong)} were not {ACCOUNTS * START}: {bank.wrong[:5]}"
    wait_until("the prepared transactions to be settled", lambda: not prepared(clusters), 60, 0.2)
    balances, entries = {}, {}
    for cluster in clusters:
        with cluster.admin() as admin:
            balances.update(admin.execute("SELECT id, balance FROM accounts").fetchall())
            for account, transfer, amount in admin.execute("SELECT account, transfer, amount FROM entries").fetchall():
                entries.setdefault(transfer, []).append((account, amount))
    assert sum(balances.values()) == ACCOUNTS * START, f"the sum is {sum(balances.values())}"
    expected = dict.fromkeys(balances, START)
    for transfer, sides in entries.items():
        assert len(sides) == 2 and sum(amount for _, amount in sides) == 0, f"half of transfer {transfer}: {sides}"
        for account, amount in sides:
            expected[account] += amount
    assert expected == balances, "an account does not have what its transfers say"
    missing = bank.acknowledged - set(entries)
    assert not missing, f"acknowledged, and not there: {sorted(missing)[:5]}"
    return len(entries)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    root = scratch_directory("kintsugi-bank-")
    # fsync stays off: what is killed is PostgreSQL, not the machine.
    settings = {"max_prepared_transactions": 50, "wal_level": "logical"}
    clusters = [Cluster(root, name, settings=settings) for name in ("one", "two")]
    router = None
    try:
        router = Kintsugi(
            os.environ["KINTSUGI_PROGRAM"],
            clusters[0],
            root,
            sections={"pool": {"size": 10}, "map": {"store": "sqlite:map.db"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
            store=True,
        )
        bank = Bank(router, options.seed)
        bank.make({"s1": clusters[0], "s2": clusters[1]})

        def router_dies_at(step):
            def trouble():
                router.kill()
                router.environment = {"KINTSUGI_FAILPOINT": step}
                router.start(wait=False)
                wait_until(f"the router to die at {step}", lambda: router.process.poll() is not None, 30)
                assert router.process.returncode == -signal.SIGKILL
                router.environment = {}
                router.start()
            return trouble

        def shard_dies(cluster):
            def trouble():
                time.sleep(bank.random.random() / 2)
                # Its postmaster first, then what it leaves behind.
                cluster.process.kill()
                cluster.process.wait()
                cluster.process = None
                def up():
                    try:
                        cluster.start()
                        return True
                    except RuntimeError:
                        return False  # children of the old one still hold its memory
                wait_until("PostgreSQL to be started again", up, 30, 0.2)
            return trouble

        for number in range(options.rounds):
            for name, trouble in [*((step, router_dies_at(step)) for step in STEPS),
                                  *((f"shard {c.name}", shard_dies(c)) for c in clusters)]:
                began, before = time.monotonic(), len(bank.acknowledged)
                bank.run(0.7, trouble)
                found = check(bank, clusters)
                print(f"round {number}, {name}: {len(bank.acknowledged) - before} transfers acknowledged, {found} in all, {bank.sums} sums, "
                      f"{time.monotonic() - began:.1f} s", flush=True)
        shift = Shift(1, lambda: len(bank.acknowledged) > 100 and bank.sums > 20)
        while shift.goes_on():
            bank.run(1, lambda: None)
        check(bank, clusters)
        assert len(bank.acknowledged) > 100, "hardly a transfer went through"
        assert bank.sums > 20, "hardly a sum was to be had"
        router.stop()
        router = None
    finally:
        if router is not None:
            print(router.log_tail(20))
            router.kill()
        for cluster in clusters:
            cluster.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
