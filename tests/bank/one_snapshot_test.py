"""A REPEATABLE READ or SERIALIZABLE block has one snapshot, on whichever shards it looks, one after the other.

Two clients transfer money between accounts on two shards as fast as they can. Others add the accounts up in blocks, each
account by a statement of its own, and one shard a while after the other. One PostgreSQL would never show a sum that is off.

    one_snapshot_test.py        KINTSUGI_PROGRAM: the program to test
"""

import collections
import random
import threading
import time

import psycopg
from small_bank import ACCOUNTS, SUM, Shift, connect, small_bank

SECONDS = 8


def add_up(c, ids):
    return sum(c.execute("SELECT balance FROM accounts WHERE id = %s", (i,)).fetchone()[0] for i in ids)


def block(begin, *more):
    def way(c, ids):
        c.execute(begin)
        for statement in more:
            c.execute(statement)
        seen = add_up(c, ids)
        c.execute("COMMIT")
        return seen

    return way


def by_default(c, ids):
    c.execute("SET default_transaction_isolation = 'repeatable read'")
    try:
        return block("BEGIN")(c, ids)
    finally:
        c.execute("RESET default_transaction_isolation")


def as_pg_dump(c, ids):
    c.execute("BEGIN")
    c.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    c.execute("LOCK TABLE accounts IN ACCESS SHARE MODE")
    seen = 0
    for half in sorted({i < ACCOUNTS // 2 for i in ids}, key=lambda half: half == (ids[0] < ACCOUNTS // 2)):
        condition = "<" if half else ">="
        with c.cursor().copy(f"COPY (SELECT balance FROM accounts WHERE id {condition} {ACCOUNTS // 2}) TO STDOUT") as copy:
            seen += sum(int(line) for line in b"".join(copy).split())
    c.execute("COMMIT")
    return seen


def first_elsewhere(c, ids):
    """What takes the snapshot is a query that touches no table."""
    c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    c.execute("SELECT 1")
    time.sleep(0.01)
    seen = add_up(c, ids)
    c.execute("COMMIT")
    return seen


def pipelined(c, ids):
    with c.pipeline():
        c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursors = [c.execute("SELECT balance FROM accounts WHERE id = %s", (i,)) for i in ids]
        c.execute("COMMIT")
        return sum(cursor.fetchone()[0] for cursor in cursors)


def one_message(c, ids):
    cursor = c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; " + "; ".join(f"SELECT balance FROM accounts WHERE id = {i}" for i in ids) + "; COMMIT")
    seen = 0
    while cursor.nextset():
        if cursor.description:
            seen += cursor.fetchone()[0]
    return seen


WAYS = {
    "begin": block("BEGIN ISOLATION LEVEL REPEATABLE READ"),
    "serializable": block("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"),
    "set": block("BEGIN", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    "savepoint": block("BEGIN ISOLATION LEVEL REPEATABLE READ", "SAVEPOINT s"),
    "default": by_default,
    "pg_dump": as_pg_dump,
    "first_elsewhere": first_elsewhere,
    "pipeline": pipelined,
    "one_message": one_message,
}


class Watch:
    def __init__(self, router, seconds):
        self.router, self.shift = router, Shift(seconds, self.enough)
        self.transfers, self.looks, self.wrong, self.errors = 0, collections.Counter(), collections.Counter(), []

    def enough(self):
        return self.transfers > 50 and all(self.looks[name] for name in WAYS)

    def transfer(self, seed):
        chooser = random.Random(seed)
        with connect(self.router) as c:
            while self.shift.goes_on() and not self.errors:
                source, target = chooser.randrange(ACCOUNTS // 2), chooser.randrange(ACCOUNTS // 2, ACCOUNTS)
                amount = chooser.randint(-20, 20)
                with c.transaction():
                    for account, change in ((source, -amount), (target, amount)):
                        c.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (change, account))
                self.transfers += 1

    def look(self, seed):
        chooser = random.Random(seed)
        with connect(self.router) as c:
            while self.shift.goes_on() and not self.errors:
                name = chooser.choice(list(WAYS))
                ids = list(range(ACCOUNTS))
                chooser.shuffle(ids)
                seen = WAYS[name](c, ids)
                self.looks[name] += 1
                self.wrong[name] += seen != SUM

    def guarded(self, function, seed):
        try:
            function(seed)
        except Exception as error:
            self.errors.append(f"{function.__name__}: {type(error).__name__}: {error}")

    def run(self):
        threads = [threading.Thread(target=self.guarded, args=(f, seed)) for seed in (1, 2) for f in (self.transfer, self.look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"{self.transfers} transfers; looks: {dict(self.looks)}; off: {dict(+self.wrong)}")
        assert not self.errors, self.errors
        assert not +self.wrong, dict(+self.wrong)
        assert self.enough(), "hardly anything was tried"


def keeps_its_snapshot(router, **how):
    with connect(router) as other, connect(router, **how) as c:
        c.execute("BEGIN")
        assert c.execute("SELECT balance FROM accounts WHERE id = 1").fetchone()[0]
        before = other.execute("SELECT balance FROM accounts WHERE id = 30").fetchone()[0]
        other.execute("UPDATE accounts SET balance = balance + 7 WHERE id = 30")
        assert c.execute("SELECT balance FROM accounts WHERE id = 30").fetchone()[0] == before, "a shard joined with a later snapshot"
        c.execute("ROLLBACK")
        other.execute("UPDATE accounts SET balance = balance - 7 WHERE id = 30")


GATHERED = (
    "SELECT sum(a.balance), max(n.n) FROM accounts a CROSS JOIN notes n WHERE EXISTS (SELECT FROM accounts b WHERE b.balance = a.balance)"
)


def read_only_gather(router):
    """What is brought together beside a transaction that may not write is finished by that transaction's snapshot."""
    with connect(router) as other, connect(router) as c:
        other.execute("CREATE TABLE notes (n int)")  # a home table: the final statement reads it as it is
        other.execute("INSERT INTO notes VALUES (1)")
        assert "tier 4" in other.execute(f"EXPLAIN (ROUTE) {GATHERED}").fetchone()[0]
        c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        c.execute("SELECT 1")
        other.execute("UPDATE notes SET n = 2")
        other.execute("UPDATE accounts SET balance = balance + 7 WHERE id = 30")
        for _ in range(2):
            assert c.execute(GATHERED).fetchone() == (SUM, 1), "not by the transaction's snapshot"
        c.execute("COMMIT")
        assert c.execute(GATHERED).fetchone() == (SUM + 7, 2)
        other.execute("UPDATE accounts SET balance = balance - 7 WHERE id = 30")
        for begin in (("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",), ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SAVEPOINT s")):
            for statement in begin:
                c.execute(statement)
            try:
                c.execute(GATHERED)
                raise AssertionError(f"answered after {begin}")
            except psycopg.errors.FeatureNotSupported:
                c.execute("ROLLBACK")
        other.execute("DROP TABLE notes")


def by_options(router):
    """What one client of a role has asked for says nothing of another one, nor the other way round."""
    with connect(router) as c, c.transaction():
        c.execute("SELECT count(*) FROM accounts")
    keeps_its_snapshot(router, options="-c default_transaction_isolation=serializable")
    with connect(router, options="-c default_transaction_isolation=serializable") as c:  # in no transaction, all the same
        c.execute("CREATE INDEX CONCURRENTLY by_balance ON accounts (balance)")
        c.execute("VACUUM accounts")


def role_default(router, cluster):
    """The isolation that a role has by default is known to PostgreSQL only."""
    for i in range(2):
        with cluster[i].admin() as admin:
            admin.execute("ALTER ROLE app SET default_transaction_isolation = 'repeatable read'")
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' AND pid <> pg_backend_pid()")
    time.sleep(1.1)  # so long the router may go by what it was told before
    keeps_its_snapshot(router)


def away(router, cluster):
    """A shard that does not answer keeps nobody from the others, and does not join later."""
    cluster.stop("immediate")
    with connect(router) as c:
        c.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert c.execute("SELECT count(*) FROM accounts WHERE id IN (1, 2)").fetchone() == (2,)
        cluster.start()
        with psycopg.connect(cluster.shard_dsn()):  # it is back
            pass
        try:
            c.execute("SELECT balance FROM accounts WHERE id = 30")
            raise AssertionError("a shard joined a transaction whose snapshot it has not")
        except psycopg.errors.SerializationFailure as error:
            assert "shard s2 is not part of the transaction's snapshot" in str(error), error
        c.execute("ROLLBACK")


def main():
    with small_bank({}, {}) as (clusters, router):
        Watch(router, SECONDS).run()
        read_only_gather(router)
        by_options(router)
        away(router, clusters[1])
        role_default(router, clusters)
    print("passed")


if __name__ == "__main__":
    main()
