"""Shardlets split, move and merge at random and without pause under two routers, three shards and clients that check.

Every write that was acknowledged is remembered. A read must see what was acknowledged before it began, a count and a sum
over all shards must have every row once at every moment, no acknowledged write may be lost or doubled, and at the end every
row is where the map says. No error but 40001.

With --faults, besides: routers are killed and frozen, by chance and at named points of the jobs that they do, shards and
the store are restarted. Then a write may have an unknown end, and connections break; all else stays as it is.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time

import psycopg

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from world import Shift, World, rows_where_the_map_says  # noqa: E402

ROWS = 120
FAILPOINTS = (
    "move: hidden", "move: identities", "move: publication", "move: slot", "move: prepared", "move: copied",
    "move: guarded", "move: subscribed", "move: caught up", "move: held", "move: fence raised", "move: drained",
    "move: verified",
    "move: before commit", "move: after commit", "move: committed", "move: online", "move: settled", "move: cleaning",
    "move: following dropped", "move: cleaned", "move: fence dropped", "split: before commit", "split: after commit",
    "merge: before commit", "merge: after commit",
)


# What has to have been done by the clients for anything to be shown.
ENOUGH = {"updates": 20, "reads": 20, "counts": 20, "transfers": 20, "writes to several shards": 20, "snapshots": 5}

# What a client may be told when servers die: no connection, its shard is away, restarts, or cannot be had; the map store is away; the end of a
# COMMIT is not known.
# Everything else is an error of the router's own making, or one that hides the first.
OF_FAULTS = (None, "KG005", "KG006", "57P01", "57P02", "57P03", "08006", "08007")


class Storm:
    def __init__(self, world, seed, faults):
        self.world, self.faults = world, faults
        self.chooser = random.Random(seed)
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.counts, self.errors, self.jobs = {}, [], {}
        self.told = [0] * ROWS  # the highest value that an update of the row has been told
        self.values = [set() for _ in range(ROWS)]  # all of them
        self.begun = [0] * ROWS  # updates that were sent
        self.unknown = [0] * ROWS  # and have no known end
        self.changed = [0] * ROWS  # balances, by what was told to be done
        self.unsure = []  # changes of balances that have no known end: when, what, the error
        self.longest_ms = 0.0

    def note(self, what, more=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + more

    def client(self, work, autocommit):
        """Runs `work` again and again; 40001 is counted, a broken connection is one of the faults."""
        chooser = random.Random()
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None or connection.closed:
                    connection = self.world.connect(chooser.randrange(2), autocommit=autocommit,
                                                    prepare_threshold=chooser.choice((0, None)))
                work(connection, chooser)
            except AssertionError as wrong:
                self.errors.append(f"{work.__name__}: {wrong}")
                return
            except psycopg.Error as error:
                if error.sqlstate == "40001":
                    self.note(f"40001 in {work.__name__}")
                elif not self.faults or error.sqlstate not in OF_FAULTS:
                    self.errors.append(f"{work.__name__}: {error.sqlstate} {error}")
                    return
                else:
                    self.note(f"faults: {error.sqlstate or 'connection'}")
                    if connection is not None and error.sqlstate in (None, "KG005", "57P01", "08006"):
                        connection.close()
                    time.sleep(0.05)
                if connection is not None and not connection.closed and not autocommit:
                    try:
                        connection.rollback()
                    except psycopg.Error:
                        connection.close()
        if connection is not None:
            connection.close()

    def update(self, connection, chooser):
        key = chooser.randrange(ROWS)
        with self.lock:
            self.begun[key] += 1
        began = time.monotonic()
        try:
            value = connection.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s RETURNING seen", [key]).fetchone()
        except psycopg.Error as error:
            with self.lock:
                if error.sqlstate == "40001":
                    self.begun[key] -= 1  # it was refused whole
                else:
                    self.unknown[key] += 1
            raise
        waited = 1000 * (time.monotonic() - began)
        assert value is not None, f"an update did not find row {key}"
        with self.lock:
            assert value[0] not in self.values[key], f"two updates of row {key} made it {value[0]}: one is lost"
            self.values[key].add(value[0])
            self.told[key] = max(self.told[key], value[0])
            self.longest_ms = max(self.longest_ms, waited)
        self.note("updates")

    def read(self, connection, chooser):
        key = chooser.randrange(ROWS)
        due = self.told[key]
        value = connection.execute("SELECT seen FROM accounts WHERE id = %s", [key]).fetchone()
        assert value is not None, f"a read did not find row {key}"
        assert value[0] >= due, f"stale: row {key} is {value[0]}, and {due} was acknowledged before"
        self.note("reads")

    def count(self, connection, chooser):
        with self.lock:
            due = sum(self.told)
        rows, total = connection.execute("SELECT count(*), sum(seen)::bigint FROM accounts").fetchone()
        with self.lock:
            most = sum(self.begun)
        assert rows == ROWS, f"a count found {rows} rows of {ROWS}"
        assert due <= total <= most, f"a sum over all shards is {total}, not between {due} and {most}"
        self.note("counts")

    def changes(self, changes, work):
        """Runs `work`, which makes these changes of balances, or does not, or nobody knows."""
        began = time.time()
        try:
            work()
        except psycopg.Error as error:
            if error.sqlstate != "40001":
                with self.lock:
                    self.unsure.append((began, time.time(), changes, f"{error.sqlstate} {error}".strip()))
            raise
        with self.lock:
            for key, change in changes.items():
                self.changed[key] += change

    def transfer(self, connection, chooser):
        keys = sorted(chooser.sample([key for key in range(ROWS) if key % 3], 2))

        def work():
            for key, change in zip(keys, (-1, 1)):
                done = connection.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", [change, key])
                assert done.rowcount == 1, f"a transfer found {done.rowcount} rows"
            connection.commit()

        self.changes(dict(zip(keys, (-1, 1))), work)
        self.note("transfers")

    def snapshot(self, connection, chooser):
        """REPEATABLE READ: what it reads twice is the same, and every row is there, or it is 40001."""
        # With one of these always open a job that is over but for its triggers waits long for a moment to remove them.
        time.sleep(chooser.choice((0.3, 1)))
        key = chooser.randrange(ROWS)
        due = self.told[key]
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        first = None
        for _ in range(3):
            value = connection.execute("SELECT seen FROM accounts WHERE id = %s", [key]).fetchone()
            assert value is not None, f"a snapshot does not have row {key}"
            rows, total = connection.execute("SELECT count(*), sum(seen)::bigint FROM accounts").fetchone()
            assert rows == ROWS, f"a snapshot counted {rows} rows of {ROWS}"
            assert value[0] >= due, f"stale: row {key} is {value[0]} in a snapshot, and {due} was acknowledged before"
            assert first in (None, (value, total)), f"a snapshot had {first} and has {(value, total)}"
            first = value, total
            time.sleep(chooser.choice((0, 0.05, 0.3)))
        connection.commit()
        self.note("snapshots")

    def fan_write(self, connection, chooser):
        """One statement, several shards: its balance is nought. Of rows that no transfer locks: it would be a deadlock."""
        keys = chooser.sample(range(0, ROWS, 3), 2)

        def work():
            done = connection.execute(
                "UPDATE accounts SET balance = balance + CASE WHEN id = %s THEN 1 ELSE -1 END WHERE id IN (%s, %s)",
                [keys[0], *keys])
            assert done.rowcount == 2, f"a write to two rows found {done.rowcount}"

        self.changes(dict(zip(keys, (1, -1))), work)
        self.note("writes to several shards")

    # ---- the jobs

    def next_job(self, shardlets):
        chooser = self.chooser
        shardlets = sorted(shardlets, key=lambda s: -1 if s[2] == "MINVALUE" else int(s[2]))
        name, _, low, high, _, place, _ = chooser.choice(shardlets)
        to = chooser.choice([s for s in ("s1", "s2", "s3") if s != place])
        low, high = 0 if low == "MINVALUE" else int(low), ROWS if high == "MAXVALUE" else int(high)
        kind = chooser.random()
        if (kind < 0.3 or len(shardlets) < 3) and len(shardlets) < 9 and high - low > 4:
            self.made = getattr(self, "made", 0) + 1
            parts = f"p{self.made}l", f"p{self.made}r"
            at = chooser.randrange(low + 1, high)
            move = f" MOVE {chooser.choice(parts)} TO SHARD {to}" if chooser.random() < 0.5 else ""
            return f"SPLIT SHARDLET {name} AT ({at}) INTO ({parts[0]}, {parts[1]}){move}"
        if kind < 0.55 and len(shardlets) > 2:
            i = chooser.randrange(len(shardlets) - 1)
            self.made = getattr(self, "made", 0) + 1
            return (f"MERGE SHARDLETS {shardlets[i][0]}, {shardlets[i + 1][0]} INTO m{self.made} ON SHARD "
                    f"{chooser.choice(('s1', 's2', 's3'))}")
        return f"MOVE SHARDLET {name} TO SHARD {to}"

    def one_job(self, router):
        with self.world.connect(router) as admin:
            job = self.next_job(admin.execute("SHOW SHARDLETS OF keys").fetchall())
            began = time.monotonic()
            row = admin.execute(f"{job} WITH (wait = true)").fetchone()
            took = time.monotonic() - began
        kind = job.split()[0]
        self.jobs.setdefault(kind, []).append(took)
        if row[3] != "done":
            with self.world.connect(router) as admin:
                text = admin.execute(f"SHOW JOB {row[0]}").fetchall()
            if not self.faults:
                raise AssertionError(f"{job} is {row[3]}: {text}")
            self.note(f"jobs {row[3]}")

    def jobs_done(self):
        return sum(len(times) for times in self.jobs.values()) + self.counts.get("jobs whose end was not seen", 0)

    def enough(self):
        return all(self.counts.get(what, 0) > least for what, least in ENOUGH.items())

    def run_jobs(self, shift):
        while shift.goes_on() and not self.errors:
            try:
                self.one_job(self.chooser.randrange(2))
            except psycopg.Error as error:
                if not self.faults:
                    raise
                self.note("jobs whose end was not seen")
                time.sleep(0.3)

    def guarded_jobs(self, shift):
        try:
            self.run_jobs(shift)
        except Exception as error:  # told at the end
            self.errors.append(f"jobs: {error}")

    # ---- faults

    def restart_router(self, i, failpoint=""):
        router = self.world.routers[i]
        router.kill()
        router.environment["KINTSUGI_FAILPOINT"] = failpoint
        router.start()

    def freeze(self, i, seconds):
        process = self.world.routers[i].process
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)

    def break_things(self, until):
        """One fault after another, each followed by a look whether all is well again."""
        chooser = random.Random(self.chooser.random())
        points = list(FAILPOINTS)
        chooser.shuffle(points)
        while time.monotonic() < until and not self.errors:
            fault = chooser.choice(("kill", "freeze", "shard", "store", "point", "point", "point", "stop", "stop"))
            i = chooser.randrange(2)
            if fault == "kill":
                self.restart_router(i)
            elif fault == "freeze":
                self.freeze(i, chooser.choice((0.5, 6, 8)))
            elif fault == "shard":
                self.world.clusters[chooser.randrange(1, 4)].restart(chooser.choice(("fast", "immediate")))
            elif fault == "store":
                self.world.store.restart(chooser.choice(("fast", "immediate")))
            else:
                # It dies, or stops, when it comes there with a job.
                point = points[self.counts.get("points tried", 0) % len(points)]
                self.note("points tried")
                self.restart_router(i, ("stop " if fault == "stop" else "") + point)
                process = self.world.routers[i].process
                patience = time.monotonic() + 10
                while time.monotonic() < patience:
                    if fault == "point" and process.poll() is not None:
                        self.note("killed at a point")
                        break
                    if fault == "stop" and self.is_stopped(process.pid):
                        self.note("stopped at a point")
                        time.sleep(chooser.choice((1, 6)))
                        break
                    time.sleep(0.02)
                if fault == "stop":
                    os.kill(process.pid, signal.SIGCONT)
                self.restart_router(i)
            self.note(f"fault: {fault}")
            time.sleep(chooser.choice((0.2, 1.5)))

    @staticmethod
    def is_stopped(pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "T"
        except OSError:
            return False

    # ---- the tour: each named point once

    def job_for(self, point):
        """A job that comes by this point, from what there is now."""
        with self.world.connect() as admin:
            shardlets = sorted(admin.execute("SHOW SHARDLETS OF keys").fetchall(),
                               key=lambda s: -1 if s[2] == "MINVALUE" else int(s[2]))
        self.made = getattr(self, "made", 0) + 1
        wide = [s for s in shardlets if self.width(s) > 4]
        if point.startswith("split") or (point.startswith("merge") and len(shardlets) < 4):
            name, _, low, high, *_ = self.chooser.choice(wide)
            middle = ((0 if low == "MINVALUE" else int(low)) + (ROWS if high == "MAXVALUE" else int(high))) // 2
            return f"SPLIT SHARDLET {name} AT ({middle}) INTO (t{self.made}l, t{self.made}r)", point.startswith("split")
        if point.startswith("merge"):
            i = next((i for i in range(len(shardlets) - 1) if shardlets[i][5] == shardlets[i + 1][5]), None)
            if i is not None:
                return f"MERGE SHARDLETS {shardlets[i][0]}, {shardlets[i + 1][0]} INTO t{self.made}", True
            i = self.chooser.randrange(len(shardlets) - 1)
            return f"MOVE SHARDLET {shardlets[i][0]} TO SHARD {shardlets[i + 1][5]}", False
        name, place = (one := self.chooser.choice(shardlets))[0], one[5]
        to = self.chooser.choice([s for s in ("s1", "s2", "s3") if s != place])
        return f"MOVE SHARDLET {name} TO SHARD {to}", True

    @staticmethod
    def width(shardlet):
        low, high = shardlet[2], shardlet[3]
        return (ROWS if high == "MAXVALUE" else int(high)) - (0 if low == "MINVALUE" else int(low))

    def submit(self, router, job):
        """Until it is accepted. A router that has come to its point already answers no more."""
        deadline = time.monotonic() + 20
        process = self.world.routers[router].process
        while process.poll() is None:
            try:
                with self.world.connect(router) as admin:
                    return admin.execute(job).fetchone()[0]
            except psycopg.Error:  # the store may be on its way back
                assert time.monotonic() < deadline, job
                time.sleep(0.1)

    def visit(self, point, stop):
        """The router that moves is killed there, or frozen until another has taken the job up; then all agree."""
        patience = time.monotonic() + 60
        while True:
            job, comes_by = self.job_for(point)
            if comes_by:
                break
            self.submit(1, job)
            self.settle()
        # The other is away, so that the first gets the job. (Frozen it would keep transactions that a slot waits for.)
        self.restart_router(0, ("stop " if stop else "") + point)
        process, other = self.world.routers[0].process, self.world.routers[1]
        other.kill()
        refused = []

        def submit():
            try:
                self.submit(0, job)
            except AssertionError as why:
                refused.append(why)

        try:
            # On a thread apart: who stops at its point before it has answered answers when it goes on.
            threading.Thread(target=submit, daemon=True).start()
            while time.monotonic() < patience and not refused:
                if self.is_stopped(process.pid) if stop else process.poll() is not None:
                    break
                time.sleep(0.005)
            else:
                raise AssertionError(f"{job} did not come by {point} {refused}")
        finally:
            other.environment["KINTSUGI_FAILPOINT"] = ""
            other.start()
        if stop:
            time.sleep(self.chooser.choice((0.2, 6)))
            os.kill(process.pid, signal.SIGCONT)
            self.note("stopped at a point")
        else:
            self.note("killed at a point")
        return process if stop else None

    def tour(self, until, points):
        """Each point under the storm's load; a shard or the store is restarted behind each, in turn."""
        for n, point in enumerate(points):
            if time.monotonic() > until or self.errors:
                return
            began = time.monotonic()
            awake = self.visit(point, stop=self.chooser.random() < 0.3)
            cluster = self.world.clusters[n % len(self.world.clusters)]
            cluster.restart(self.chooser.choice(("fast", "immediate")))
            self.note("servers restarted")
            if awake is None:
                self.restart_router(0)
            self.settle()
            self.agree(f"after {'a stop' if awake else 'a kill'} at {point}")
            self.note("points passed")
            self.jobs.setdefault(point, []).append(time.monotonic() - began)

    def agree(self, when):
        """Both routers count every row once, and each is where the map says, while the load goes on."""
        deadline = time.monotonic() + 40
        while True:
            try:
                for router in (0, 1):
                    with self.world.connect(router) as client:
                        rows = client.execute("SELECT count(*), count(DISTINCT id) FROM accounts").fetchone()
                        assert rows == (ROWS, ROWS), f"router {router} counts {rows}"
                rows_where_the_map_says(self.world, "accounts", "id", range(ROWS), under_load=True)
                return
            except (AssertionError, psycopg.Error) as problem:
                assert time.monotonic() < deadline, f"{when}: {problem}"
                time.sleep(0.2)

    # ---- all of it

    def run(self, seconds, points=None):
        clients = [(self.update, True)] * 3 + [(self.read, True)] * 2 + [(self.count, True)] + \
            [(self.transfer, False)] * 2 + [(self.fan_write, True)] + [(self.snapshot, False)]
        threads = [threading.Thread(target=self.client, args=each, daemon=True) for each in clients]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        shift = Shift(seconds if points is None else 0, lambda: self.jobs_done() > seconds / 8 and self.enough())
        jobs = threading.Thread(target=self.guarded_jobs, args=(shift,), daemon=True)
        jobs.start()
        try:
            # On this thread: what it starts anew would be ended together with another (die_with_parent).
            if points is not None:
                self.tour(until, points)
            elif self.faults:
                self.break_things(until)
            jobs.join(Shift.TIMES * seconds + 150)
        finally:  # what fails is told at once: its clients may wait for a router that is frozen
            self.stop.set()
        for thread in threads:
            thread.join(60)
        assert not jobs.is_alive(), "a job hangs"
        assert not any(thread.is_alive() for thread in threads), "a client hangs"
        assert not self.errors, self.errors
        self.settle()
        self.check()

    def settle(self):
        """Whatever has begun comes to an end by itself."""
        deadline = time.monotonic() + 90
        while True:
            try:
                with self.world.connect() as admin:
                    running = [row for row in admin.execute("SHOW JOBS").fetchall()
                               if row[3] not in ("done", "failed", "canceled")]
            except psycopg.Error as error:  # a server has just been restarted
                if not self.faults:
                    raise
                running = [error]
            if not running:
                return
            assert time.monotonic() < deadline, f"jobs that do not end: {running}"
            time.sleep(0.2)

    def check(self):
        for router in (0, 1):
            with self.world.connect(router) as admin:
                found = admin.execute("SELECT id, seen FROM accounts").fetchall()
                rows = dict(found)
                assert len(found) == len(rows) == ROWS, f"{len(found)} rows, of {len(rows)} keys"
                for key, seen in rows.items():
                    low, high = len(self.values[key]), len(self.values[key]) + self.unknown[key]
                    assert low <= seen <= high, f"row {key} is {seen}: {low} updates were acknowledged, {high} at most"
                told = admin.execute("SELECT sum(balance)::bigint FROM accounts").fetchone()
                balances = dict(admin.execute("SELECT id, balance FROM accounts").fetchall())
                assert told == (100 * ROWS,) and sum(balances.values()) == 100 * ROWS, \
                    f"the sum of balances was {told} and is {sum(balances.values())}: {self.off(balances)}"
                off = self.off(balances)
                sure = [key for key in off[0] if not any(key in changes for _, _, changes, _ in self.unsure)]
                assert not sure, f"balances of {sure} are not what was told: {off}"
        deadline = time.monotonic() + 30
        while True:  # what two-phase commits and jobs leave is cleared away in the background
            try:
                rows_where_the_map_says(self.world, "accounts", "id", range(ROWS))
                break
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def off(self, balances):
        """Rows whose balance is not what was told, and those with no known end that have to do with them."""
        rows = {key: balance - 100 - self.changed[key] for key, balance in balances.items() if balance - 100 != self.changed[key]}
        return rows, [(time.strftime("%H:%M:%S", time.gmtime(began)), time.strftime("%H:%M:%S", time.gmtime(ended)), changes, why)
                      for began, ended, changes, why in self.unsure if set(changes) & set(rows)]

    def tell_last_jobs(self):
        try:
            with self.world.connect(connect_timeout=5) as admin:
                for row in admin.execute("SHOW JOBS").fetchall()[-2:]:
                    print(*row, file=sys.stderr)
            with self.world.store.admin("store") as store:
                for row in store.execute("SELECT kind, key, updated, body FROM kintsugi_map.note WHERE kind LIKE '%job%' ORDER BY updated").fetchall()[-2:]:
                    print(*row, file=sys.stderr)
        except psycopg.Error as error:
            print(f"the jobs cannot be looked at: {error}", file=sys.stderr)
        for i in range(len(self.world.places)):
            with self.world.at_shard(i) as shard:
                for table in ("pg_prepared_xacts", "kintsugi.txn_decision ORDER BY decided DESC LIMIT 20"):
                    for row in shard.execute(f"SELECT * FROM {table}").fetchall():
                        print(f"s{i + 1}", *row, file=sys.stderr)

    def tell(self):
        print({what: self.counts[what] for what in sorted(self.counts)})
        print({kind: f"{len(times)}, {sum(times) / len(times):.2f} s each, {max(times):.2f} at most"
               for kind, times in self.jobs.items()}, f"longest wait of an update {self.longest_ms:.0f} ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--tour", type=int, default=0, help="visit so many of the named points, chosen by the seed")
    parser.add_argument("--points", default="", help="visit these, in this order: 'move: held,move: verified'")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    world = World(shards=3, routers=2, apart=True)
    storm = Storm(world, options.seed, options.faults or options.tour > 0 or options.points != "")
    points = storm.chooser.sample(FAILPOINTS, min(options.tour, len(FAILPOINTS))) if options.tour else None
    points = options.points.split(",") if options.points else points
    try:
        with world.connect() as admin:
            admin.execute("CREATE SHARD MAP keys BY RANGE (bigint)")
            for name, low, high, shard in (("a", "MINVALUE", 40, "s1"), ("b", 40, 80, "s2"), ("c", 80, "MAXVALUE", "s3")):
                admin.execute(f"CREATE SHARDLET {name} OF keys FOR VALUES FROM ({low}) TO ({high}) ON SHARD {shard}")
            admin.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, "
                          "seen bigint NOT NULL DEFAULT 0) SHARD BY keys (id)")
            admin.execute("INSERT INTO accounts (id, balance) VALUES " + ", ".join(f"({i}, 100)" for i in range(ROWS)))
        time.sleep(1)
        storm.run(options.seconds, points)
        storm.tell()
        counts = storm.counts
        done = storm.jobs_done()
        if points is None:
            assert done > options.seconds / 8, f"only {done} jobs in {options.seconds} s"
        else:
            passed = counts.get("points passed", 0)
            assert passed == len(points) or (passed > 1 and options.tour < len(FAILPOINTS)), f"{passed} of {points}"
        assert storm.enough(), f"too little was going on to show anything: {counts}"
        for what in ("update", "read", "count", "fan_write"):
            # A lone statement waits. Only one that had begun to tell something may be refused.
            refused = counts.get(f"40001 in {what}", 0)
            assert refused <= (0 if not storm.faults else 20), f"{refused} lone statements of {what} were refused"
        refused = counts.get("40001 in transfer", 0)
        if storm.faults:  # while a router is frozen with a fence up, who holds rows elsewhere is refused again and again
            assert refused < counts["transfers"], f"{refused} transactions were refused, {counts['transfers']} were not"
        else:
            assert refused <= 2 * done, f"{refused} transactions were refused in {done} jobs"
        for router in world.routers:
            router.stop()
    except BaseException:
        storm.stop.set()
        storm.tell()
        storm.tell_last_jobs()
        for router in world.routers:
            print(router.name, router.log_tail(40), file=sys.stderr)
        raise
    finally:
        world.stop()
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
