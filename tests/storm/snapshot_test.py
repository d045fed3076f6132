"""Transactions that keep one snapshot, while shardlets move: each answer is right, or it is 40001.

Blocks under REPEATABLE READ and SERIALIZABLE that began before a shardlet arrived on a shard, while it was arriving, when
it had left and was not cleaned away yet, or before it went away and came back. Those that nothing of a move concerns, and
all under READ COMMITTED, go on without an error.
"""

import os
import sys
import threading
import time

import psycopg

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from world import World, rows_where_the_map_says  # noqa: E402

ROWS = 60
# a: 0 to 19, moves. b: 20 to 39, on s1. c: 40 to 59, on s2.
A, B, C = 5, 25, 45
WHOLE = "SELECT count(*), sum(balance) FROM accounts"  # needs no temporary table: a slot would wait for its transaction


class Snapshots:
    def __init__(self, world):
        self.world = world
        self.admin = world.connect(prepare_threshold=None)
        self.home = "s1"

    def away(self):
        """Moved, and perhaps not cleaned yet: the fence's triggers stay while a transaction that has read has the table."""
        for _, _, _, state, *_ in self.admin.execute("SHOW JOBS").fetchall():
            assert state in ("done", "canceled"), "the test keeps a transaction open over two moves"
        to = "s2" if self.home == "s1" else "s1"
        job = self.admin.execute(f"MOVE SHARDLET a TO SHARD {to}").fetchone()[0]
        while (state := self.state(job)) not in ("cleaning", "done"):
            assert state not in ("failed", "canceled"), self.admin.execute(f"SHOW JOB {job}").fetchall()
            time.sleep(0.005)
        self.home = to

    def quiet(self):
        deadline = time.monotonic() + 20
        while any(row[3] not in ("done", "canceled") for row in self.admin.execute("SHOW JOBS").fetchall()):
            assert time.monotonic() < deadline, self.admin.execute("SHOW JOBS").fetchall()
            time.sleep(0.01)

    def begin(self, isolation, prepared):
        client = self.world.connect(autocommit=True, prepare_threshold=0 if prepared else None)
        client.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        return client

    def read(self, client, key):
        return client.execute("SELECT balance FROM accounts WHERE id = %s", [key]).fetchall()

    @staticmethod
    def copy_out(client):
        with client.cursor() as cursor, cursor.copy("COPY accounts TO STDOUT") as copy:
            return list(copy)

    def expect_refused(self, what, work):
        try:
            answer = work()
        except psycopg.errors.SerializationFailure as error:
            assert "Retry" in (error.diag.message_hint or ""), error
            return
        raise AssertionError(f"{what}: it was answered with {answer}")

    def right_or_refused(self, what, work, right):
        try:
            answer = work()
        except psycopg.errors.SerializationFailure:
            return "40001"
        assert answer == right, f"{what}: {answer}, not {right}"
        return "right"

    # ---- what may be met

    def arrived_since(self, isolation, prepared):
        """On the target there is a snapshot that is older than the rows."""
        after = {"point read": lambda c: self.read(c, A),
                 "count of all": lambda c: c.execute(WHOLE).fetchall(),
                 "range": lambda c: c.execute("SELECT id FROM accounts WHERE id BETWEEN 3 AND 8").fetchall(),
                 "update": lambda c: c.execute("UPDATE accounts SET balance = 100 WHERE id = %s", [A]).rowcount,
                 "join": lambda c: c.execute("SELECT count(*) FROM accounts x JOIN accounts y ON x.id = y.id + 1").fetchall(),
                 "aggregate": lambda c: c.execute("SELECT balance, avg(id) FROM accounts GROUP BY 1").fetchall(),
                 "copy": self.copy_out}
        if prepared:
            del after["copy"]
        clients = {name: self.begin(isolation, prepared) for name in after}
        own = "c" if self.home == "s1" else "b"
        for client in clients.values():
            assert self.read(client, C if own == "c" else B) == [(100,)]
        self.away()
        if not prepared:  # a Parse by itself has opened the transaction on the home shard, too
            self.quiet()
        for name, work in after.items():
            self.expect_refused(f"{name} after the rows have arrived", lambda: work(clients[name]))
            clients[name].execute("ROLLBACK")
            # The same connection is as good as new.
            assert self.read(clients[name], A) == [(100,)]
            clients[name].close()

    def left_since(self, isolation, prepared):
        """What was read where the rows were is not read again where they are."""
        client = self.begin(isolation, prepared)
        assert self.read(client, A) == [(100,)]
        self.away()
        with self.world.connect() as other:
            other.execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", [A])
        self.expect_refused("a second read", lambda: self.read(client, A))
        client.close()
        with self.world.connect() as other:
            other.execute("UPDATE accounts SET balance = balance - 1 WHERE id = %s", [A])

    def there_and_back(self, isolation, prepared):
        """The snapshot was taken where the rows are, while they were not."""
        client = self.begin(isolation, prepared)
        here, there = (B, C) if self.home == "s1" else (C, B)
        assert self.read(client, there) == [(100,)]
        self.away()
        self.quiet()
        assert self.read(client, here) == [(100,)]
        self.away()
        self.expect_refused("a read of rows that have come back", lambda: self.read(client, A))
        client.close()

    def arriving(self, isolation, prepared):
        """A snapshot that has rows which a move has brought; then the move is given up, and nothing hides them any more."""
        target = "s2" if self.home == "s1" else "s1"
        job = self.admin.execute(f"MOVE SHARDLET a TO SHARD {target} WITH (max_rate = '3kB/s')").fetchone()[0]
        while self.state(job) != "copying":
            time.sleep(0.002)
        writer = self.world.connect(autocommit=False)  # no fence as long as this is open
        writer.execute("UPDATE accounts SET balance = balance WHERE id = %s", [B if self.home == "s1" else C])
        deadline = time.monotonic() + 20
        while self.at(target) == 0:
            assert time.monotonic() < deadline, "the rows do not arrive"
            time.sleep(0.005)
        client = self.begin(isolation, prepared)
        assert client.execute(WHOLE).fetchall() == [(ROWS, 100 * ROWS)]
        self.admin.execute(f"CANCEL JOB {job}")
        while (state := self.state(job)) != "canceled":
            assert state not in ("committed", "cleaning", "done", "failed"), state
            time.sleep(0.01)
        writer.rollback()
        writer.close()
        assert self.at(target) == 0
        how = self.right_or_refused("a count after a move was given up", lambda: client.execute(WHOLE).fetchall(),
                                    [(ROWS, 100 * ROWS)])
        client.close()
        return how

    def cleaned(self, isolation, prepared):
        """The rows were still there, hidden, when the snapshot was taken; now nothing hides them."""
        source, target = self.home, "s2" if self.home == "s1" else "s1"
        slow = self.world.connect()
        sleeper = threading.Thread(
            target=lambda: slow.execute("SELECT pg_sleep(4) FROM accounts WHERE id = %s", [B if source == "s1" else C]))
        sleeper.start()
        time.sleep(0.3)
        # Cleaning waits for the statement that an older map has led to.
        job = self.admin.execute(f"MOVE SHARDLET a TO SHARD {target} WITH (mode = offline)").fetchone()[0]
        while self.state(job) not in ("cleaning", "done"):
            time.sleep(0.005)
        client = self.begin(isolation, prepared)
        # Of a table of another map: what reads this one keeps the fence, and with it what hides the rows.
        assert client.execute("SELECT count(*) FROM notes").fetchone() == (2,)
        assert self.state(job) == "cleaning" and self.at(source) == 20, "the test is too slow to see anything"
        while self.state(job) != "done":
            time.sleep(0.01)
        self.home = target
        sleeper.join()
        slow.close()
        how = self.right_or_refused("a count after the cleaning", lambda: client.execute(WHOLE).fetchall(),
                                    [(ROWS, 100 * ROWS)])
        print("a count after the cleaning:", how)
        client.close()

    def state(self, job):
        return self.admin.execute(f"SHOW JOB {job}").fetchone()[3]

    def at(self, shard):
        with self.world.at_shard(int(shard[1]) - 1) as pg:
            return pg.execute("SELECT count(*) FROM accounts WHERE id < 20").fetchone()[0]

    # ---- what goes on

    def not_concerned(self, isolation, prepared):
        client = self.begin(isolation, prepared)
        assert self.read(client, B) == [(100,)]
        assert self.read(client, C) == [(100,)]
        self.away()
        for key in (B, C):
            assert client.execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", [key]).rowcount == 1
            assert self.read(client, key) == [(101,)]
        assert client.execute("SELECT id FROM accounts WHERE id BETWEEN 21 AND 22 ORDER BY 1").fetchall() == [(21,), (22,)]
        client.execute("ROLLBACK")
        client.close()
        self.quiet()
        # One that has no snapshot yet is not too old.
        client = self.begin(isolation, prepared)
        client.execute("SAVEPOINT nothing")
        self.away()
        assert client.execute(WHOLE).fetchall() == [(ROWS, 100 * ROWS)]
        client.execute("COMMIT")
        client.close()

    def each_its_own(self, isolation, prepared):
        """READ COMMITTED sees what there is."""
        client = self.begin(isolation, prepared)
        assert self.read(client, A) == [(100,)]
        assert client.execute(WHOLE).fetchall() == [(ROWS, 100 * ROWS)]
        self.away()
        assert self.read(client, A) == [(100,)]
        assert client.execute(WHOLE).fetchall() == [(ROWS, 100 * ROWS)]
        assert client.execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", [A]).rowcount == 1
        assert client.execute(WHOLE).fetchall() == [(ROWS, 100 * ROWS + 1)]
        client.execute("ROLLBACK")
        client.close()

    # ---- where nobody says BEGIN

    def by_default(self):
        """The isolation is a setting of the role on the shards: only PostgreSQL knows."""
        for i in range(2):
            with self.world.at_shard(i) as pg:
                pg.execute("ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'repeatable read'")
        for router in self.world.routers:  # its pools are as before
            router.kill()
            router.start()
        self.admin = self.world.connect(prepare_threshold=None)
        there = C if self.home == "s1" else B

        # A query of several statements is one transaction.
        client = self.world.connect()
        result = []
        script = (f"SELECT balance FROM accounts WHERE id = {there}; SELECT pg_sleep(6) FROM accounts WHERE id = {there}; "
                  f"SELECT count(*) FROM accounts WHERE id < 20")
        running = threading.Thread(target=lambda: result.append(client.pgconn.exec_(script.encode())))
        running.start()
        time.sleep(0.5)
        self.admin.execute(f"MOVE SHARDLET a TO SHARD {'s2' if self.home == 's1' else 's1'}")
        running.join()
        assert result[0].error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"40001" or \
            result[0].get_value(0, 0) == b"20", (result[0].error_message, result[0].get_value(0, 0))
        while self.admin.execute("SHOW JOBS").fetchall()[-1][3] not in ("done", "failed"):
            time.sleep(0.05)
        self.home = "s2" if self.home == "s1" else "s1"
        client.close()

        # So is what runs between two Syncs.
        there = C if self.home == "s1" else B
        with self.world.connect(prepare_threshold=0) as client, client.pipeline():
            assert self.read(client, there) == [(100,)]
            client.execute("SELECT 1").fetchone()
            self.away()
            answer = self.right_or_refused("a pipeline", lambda: self.read(client, A), [(100,)])
        print("a pipeline across a move:", answer)

    def first_words(self):
        """What a transaction says before its first query: the router asks PostgreSQL nothing in between, by which SET
        TRANSACTION would come too late."""
        words = ("BEGIN", "SET LOCAL search_path = public", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                 "SET LOCAL lock_timeout = '3s'", "SHOW lock_timeout", "SET TRANSACTION READ ONLY, NOT DEFERRABLE")
        for simple in (True, False):
            with self.world.connect(prepare_threshold=None) as client:
                def say(text):
                    exec_ = client.pgconn.exec_ if simple else lambda text: client.pgconn.exec_params(text, [])
                    result = exec_(text.encode())
                    assert not result.error_message, (text, simple, result.error_message)
                    return result.get_value(0, 0)
                for text in words:
                    say(text)
                assert say(WHOLE) == b"60"
                assert say("SHOW transaction_isolation") == b"repeatable read"
                say("COMMIT")
        with self.world.connect() as client:
            client.execute("; ".join((*words, WHOLE, "COMMIT")))

    def run(self):
        self.first_words()
        for isolation in ("REPEATABLE READ", "SERIALIZABLE"):
            for prepared in (False, True):
                for look in (self.arrived_since, self.left_since, self.there_and_back, self.not_concerned):
                    # A Parse by itself opens the transaction on the home shard: the first move would not be cleaned.
                    look(isolation, prepared and look != self.there_and_back)
                    self.quiet()
        for _ in range(3):
            print("a count after a move was given up:", self.arriving("REPEATABLE READ", False))
            self.quiet()
        self.cleaned("REPEATABLE READ", False)
        for prepared in (False, True):
            self.each_its_own("READ COMMITTED", prepared)
            self.quiet()
        self.by_default()
        self.quiet()


def main():
    world = World(shards=2, routers=1)
    try:
        with world.connect() as admin:
            admin.execute("CREATE SHARD MAP keys BY RANGE (bigint)")
            for name, low, high, shard in (("a", "MINVALUE", 20, "s1"), ("b", 20, 40, "s1"), ("c", 40, "MAXVALUE", "s2")):
                admin.execute(f"CREATE SHARDLET {name} OF keys FOR VALUES FROM ({low}) TO ({high}) ON SHARD {shard}")
            admin.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, pad text NOT NULL) "
                          "SHARD BY keys (id)")
            admin.execute("CREATE SHARD MAP others BY LIST (bigint)")
            for i in range(2):
                admin.execute(f"CREATE SHARDLET other{i} OF others FOR VALUES IN ({i}) ON SHARD s{i + 1}")
            admin.execute("CREATE TABLE notes (id bigint PRIMARY KEY) SHARD BY others (id)")
            admin.execute("INSERT INTO notes VALUES (0), (1)")
            admin.execute("INSERT INTO accounts VALUES " + ", ".join(f"({i}, 100, '{'x' * 50}')" for i in range(ROWS)))
        Snapshots(world).run()
        rows_where_the_map_says(world, "accounts", "id", range(ROWS))
        for router in world.routers:
            router.stop()
    except BaseException:
        for router in world.routers:
            print(router.name, router.log_tail(20), file=sys.stderr)
        raise
    finally:
        world.stop()
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
