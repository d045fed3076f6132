"""A cancel request finds what its client runs, whatever that is at the moment, and nothing else."""

import itertools
import re
import struct
import threading
import urllib.request

from psycopg import pq

from harness import check, main
from postgres import DATABASE, SECOND, USER, PASSWORD, wait_until
from protocol import CANCEL_REQUEST, RawClient, logged_in, message, query
from routers import Router, connect, state_of, two_shards

CANCELED = "57014"


class World:
    """A router over two databases of the cluster that share a sharded table."""

    def __init__(self, stage, router):
        self.stage, self.router, self.lockers = stage, router, []
        self.asked = threading.Event()
        with self.connect() as c:
            two_shards(stage, c, 1000)
            c.execute("CREATE TABLE t (k int PRIMARY KEY, v text) SHARD BY m (k)")
            c.execute("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) i")

    def lock(self, database):
        locker = self.stage.cluster.admin(database)
        locker.execute("BEGIN; LOCK TABLE t")
        self.lockers.append(locker)

    def unlock(self):
        while self.lockers:
            self.lockers.pop().close()

    def connect(self):
        return connect(self.stage, self.router)

    def blocked(self):
        """The databases in which a statement waits for a lock."""
        with self.stage.cluster.admin("postgres") as admin:
            found = admin.execute("SELECT datname FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall()
        return {name for (name,) in found}

    def copies(self):
        """Rows are being written on both shards."""
        with self.stage.cluster.admin("postgres") as admin:
            found = admin.execute("SELECT datname FROM pg_stat_activity WHERE query LIKE 'COPY%FROM STDIN%'").fetchall()
        return len(set(found)) == 2

    def waiting(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.router.admin_port}/metrics") as answer:
            found = re.findall(r"^kintsugi_pool_clients_waiting\S* (\d+)", answer.read().decode(), re.M)
        return sum(int(count) for count in found)

    def cancels(self, what, victim, run, is_there, then="SELECT 1"):
        """`run` ends with 57014 when it is cancelled where `is_there` says that it is; then its connection works."""
        self.asked.clear()
        result = []
        thread = threading.Thread(target=lambda: result.append(state_of(run)), daemon=True)
        thread.start()
        wait_until(what, is_there)
        victim.cancel()
        self.asked.set()
        thread.join(30)
        if result != [CANCELED]:
            raise AssertionError(f"{what}: {result}")
        if victim.info.transaction_status != pq.TransactionStatus.IDLE:
            victim.rollback()
        wait_until(f"{what} to end on the shards", lambda: not self.blocked())
        if victim.execute(then).fetchone() is None:
            raise AssertionError(f"{what}: nothing can be asked afterwards")


def copy_in(c, asked):
    with c.cursor().copy("COPY t FROM STDIN") as copy:
        keys = itertools.count(2_000_000)
        while not asked.is_set():
            for key in itertools.islice(keys, 1000):
                copy.write(f"{key}\tx\n{-key}\tx\n")


def copy_out(c):
    with c.cursor().copy("COPY (SELECT k, v FROM t) TO STDOUT") as copy:
        for _ in copy:
            pass


def pipelined(c):
    with c.pipeline():
        c.execute("SELECT 1")
        cursor = c.execute("SELECT count(*) FROM t WHERE k > %s", [5], prepare=True)
        c.execute("SELECT 2")
        cursor.fetchone()


def cancelled_within_a_message(router, world):
    """COPY data of which the router has read a part: the rest is no message of its own."""
    row = b"3000000\ty\n"
    with logged_in(router) as c:
        c.send(query("COPY t FROM STDIN"))
        assert c.read()[0] == "G"
        data = message("d", row * 1000)
        c.send(data[:5 + len(row)])
        wait_until("COPY on both shards", world.copies)
        with RawClient("127.0.0.1", router.port) as canceller:
            canceller.send(struct.pack(">IIII", 16, CANCEL_REQUEST, c.pid, c.secret))
            canceller.is_closed()
        told = c.until_ready()
        assert told[0].startswith("E ERROR 57014") and told[-1].startswith("Z"), told
        after = c.ask(data[5 + len(row):], message("c"), query("SELECT 'still here'"))
        assert "D" in (line[0] for line in after) and after[-1].startswith("Z"), after


@check(seconds=120)
def whatever_it_does(stage):
    users = [{"name": USER, "password": PASSWORD, "admin": True}]
    sections = {"pool": {"size": 2}, "server": {"threads": 2}}
    with Router(stage, "cancel", store=True, users=users, sections=sections) as router:
        world = World(stage, router)
        with world.connect() as c, world.connect() as bystander:
            # One that is beside it all the time, on a shard that it uses.
            bystander.execute("BEGIN")
            bystander.execute("SELECT 1")  # of the home shard, which is the first
            for database in (DATABASE, SECOND):
                world.lock(database)
            for what, run, where in (
                ("a statement on one shard", lambda: c.execute("SELECT 1 FROM t WHERE k = 5"), 1),
                ("one in a transaction", lambda: (c.execute("BEGIN"), c.execute("DELETE FROM t WHERE k = 5")), 1),
                ("a fan-out", lambda: c.execute("SELECT count(*) FROM t"), 2),
                ("rows that are merged", lambda: c.execute("SELECT k FROM t ORDER BY k"), 2),
                ("a fan-out that writes", lambda: c.execute("UPDATE t SET v = 'z'"), 2),
                ("rows that are brought together",
                 lambda: c.execute("SELECT count(*) FROM t a JOIN t b ON a.v = b.v"), 1),
                ("COPY to the client", lambda: copy_out(c), 2),
                ("one in a pipeline", lambda: pipelined(c), 1),
                ("a definition", lambda: c.execute("ALTER TABLE t ADD COLUMN w int"), 1),
            ):
                world.cancels(what, c, run, lambda where=where: len(world.blocked()) >= where)
                print(f"     {what}", flush=True)
            world.unlock()

            world.cancels("COPY from the client", c, lambda: copy_in(c, world.asked), world.copies)
            # Nothing is free for it: the bystander has one of two connections.
            with world.connect() as another:
                another.execute("BEGIN")
                another.execute("SELECT 1")
                world.cancels("a client that waits", c, lambda: c.execute("SELECT 1"), world.waiting,
                              then="SHOW SHARDS")
                for client in (another, bystander):
                    if client.execute("SELECT count(*) FROM t WHERE k = 5").fetchone() != (1,):
                        raise AssertionError("the cancel request has met another client")
                    client.execute("COMMIT")
            cancelled_within_a_message(router, world)
            if c.execute("SELECT count(*) FROM t WHERE v = repeat('x', 1000)").fetchone() != (2000,):
                raise AssertionError("something of what was cancelled is there")


if __name__ == "__main__":
    main(settings={"wal_level": "logical", "max_prepared_transactions": 20})
