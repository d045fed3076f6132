"""A statement over several shards sees each transaction over several shards entirely or not at all.

Clients transfer money between accounts on three shards, as fast as they can; others add everything up, in all the ways a
statement can go over several shards. One PostgreSQL would never show a sum that is off by a transfer. With several routers
on one store each client goes through another one.

    one_moment_test.py [--seconds N] [--routers N]        KINTSUGI_PROGRAM: the program to test
"""

import argparse
import collections
import itertools
import os
import random
import shutil
import sys
import threading

import psycopg

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from shift import Shift  # noqa: E402
from systems import Kintsugi  # noqa: E402

ACCOUNTS, START = 30, 1000
TOTAL = ACCOUNTS * START


def plain(c):
    return c.execute("SELECT sum(balance) FROM accounts").fetchone()[0]


def rows(c):
    return sum(balance for (balance,) in c.execute("SELECT balance FROM accounts"))


def in_order(c):
    return sum(balance for _, balance in c.execute("SELECT id, balance FROM accounts ORDER BY balance, id", prepare=True, binary=True))


def average(c):  # tier 3
    return c.execute("SELECT avg(balance) * count(*) FROM accounts").fetchone()[0]


def grouped(c):
    return sum(s for _, s in c.execute("SELECT id % 4, sum(balance) FROM accounts GROUP BY id % 4"))


def in_a_block(c):
    with c.transaction():
        c.execute("SELECT 1")
        first = c.execute("SELECT sum(balance) FROM accounts").fetchone()[0]
        second = c.execute("SELECT sum(balance) FROM accounts").fetchone()[0]
        return first if first != TOTAL else second


def in_one_query(c):
    cursor = c.execute("SELECT 1; SELECT sum(balance) FROM accounts")
    cursor.nextset()
    return cursor.fetchone()[0]


def by_cursor(c):
    with c.transaction(), c.cursor("some") as cursor:
        cursor.execute("SELECT balance FROM accounts")
        cursor.itersize = 7
        return sum(balance for (balance,) in cursor)


def gathered(c):  # tier 4: two reads of one table
    return c.execute("SELECT sum(a.balance) + sum(b.balance) - sum(a.balance) FROM accounts a JOIN accounts b ON b.id = (a.id + 11) %% %s",
                     (ACCOUNTS,)).fetchone()[0]


def copied(c):
    with c.cursor().copy("COPY accounts (balance) TO STDOUT") as copy:
        return sum(int(line) for line in b"".join(copy).split())


def copied_query(c):
    with c.cursor().copy("COPY (SELECT balance FROM accounts ORDER BY id) TO STDOUT") as copy:
        return sum(int(line) for line in b"".join(copy).split())


WAYS = plain, rows, in_order, average, grouped, in_a_block, in_one_query, by_cursor, gathered, copied, copied_query


class Bank:
    def __init__(self, routers):
        self.routers = routers
        self.clients = itertools.count()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.transfers, self.errors = 0, []
        self.looks, self.wrong = collections.Counter(), collections.Counter()

    def connect(self):
        router = self.routers[next(self.clients) % len(self.routers)]
        return psycopg.connect(host="127.0.0.1", port=router.port, dbname=DATABASE, user=USER, password=PASSWORD,
                               sslmode="disable", autocommit=True)

    def transfer(self, seed):
        chooser = random.Random(seed)
        with self.connect() as c:
            while not self.stop.is_set():
                source, target = chooser.sample(range(ACCOUNTS), 2)
                amount = chooser.randint(1, 20)
                with c.transaction():
                    for account, change in sorted(((source, -amount), (target, amount))):
                        c.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))
                with self.lock:
                    self.transfers += 1

    def look(self, ways):
        with self.connect() as c:
            while not self.stop.is_set():
                for way in ways:
                    seen = way(c)
                    with self.lock:
                        self.looks[way.__name__] += 1
                        if seen != TOTAL:
                            self.wrong[way.__name__] += 1

    def enough(self):
        return self.transfers > 100 and all(self.looks[way.__name__] > 5 for way in WAYS)

    def guarded(self, function, *arguments):
        try:
            function(*arguments)
        except Exception as error:
            with self.lock:
                self.errors.append(f"{function.__name__}: {type(error).__name__}: {error}")
            self.stop.set()


def make(bank, cluster, shards):
    with bank.connect() as admin:
        for i in range(shards):
            admin.execute(f"CREATE SHARD s{i} DSN 'host=127.0.0.1 port={cluster.port} dbname=d{i} user={USER} password={PASSWORD}'")
        admin.execute("CREATE SHARD MAP bank BY RANGE (int)")
        for i in range(shards):
            low = "MINVALUE" if i == 0 else str(ACCOUNTS * i // shards)
            high = "MAXVALUE" if i == shards - 1 else str(ACCOUNTS * (i + 1) // shards)
            admin.execute(f"CREATE SHARDLET b{i} OF bank FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{i}")
        admin.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) SHARD BY bank (id)")
        admin.execute(f"INSERT INTO accounts SELECT i, {START} FROM generate_series(0, {ACCOUNTS - 1}) i")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=12)
    options.add_argument("--routers", type=int, default=1)
    options = options.parse_args()
    root = scratch_directory("kintsugi-moment-")
    cluster = Cluster(root, settings={"max_prepared_transactions": 50, "wal_level": "logical"})
    routers = []
    try:
        with cluster.admin("postgres") as admin:
            for i in range(3):
                admin.execute(f"CREATE DATABASE d{i} OWNER {USER}")
            admin.execute(f"CREATE DATABASE store OWNER {USER}")
        store = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{cluster.port}/store" if options.routers > 1 else "sqlite:map.db"
        for i in range(options.routers):
            routers.append(
                Kintsugi(os.environ["KINTSUGI_PROGRAM"], cluster, root, name=f"router{i + 1}",
                         sections={"pool": {"size": 20}, "map": {"store": store}, "server": {"threads": 2}},
                         users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True))
        bank = Bank(routers)
        make(bank, cluster, 3)
        threads = [threading.Thread(target=bank.guarded, args=(bank.transfer, seed)) for seed in range(4)]
        threads += [threading.Thread(target=bank.guarded, args=(bank.look, WAYS[i::3])) for i in range(3)]
        for thread in threads:
            thread.start()
        shift = Shift(options.seconds, bank.enough)
        while shift.goes_on() and not bank.stop.wait(0.1):
            pass
        bank.stop.set()
        for thread in threads:
            thread.join()
        print(f"{bank.transfers} transfers; looks: {dict(bank.looks)}")
        assert not bank.errors, bank.errors
        assert not bank.wrong, f"sums that are off: {dict(bank.wrong)}"
        assert bank.enough(), "hardly anything was tried"
        while routers:
            routers.pop().stop()
    finally:
        for router in routers:
            print(router.log_tail(20))
            router.kill()
        cluster.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
