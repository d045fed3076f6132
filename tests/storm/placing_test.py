"""ALTER TABLE ... SHARD BY and REPLICATED of a table that is being written to, through two routers, at that moment.

Up to then all of its rows are the home shard's, wherever the map would look for them. Either the rows are found that are not
where the map says, and the statement is refused, or every row that a client was told of is where the map says: nothing is
lost, no copy differs, and no single statement fails.
"""

import random
import sys
import threading
import time

import psycopg

from world import World

ROUNDS = 8


class Writer:
    """Writes rows with keys of its own, from `later` on also some that belong on the other shard."""

    def __init__(self, world, router, number, table):
        self.connection = world.connect(router)
        self.number, self.table = number, table
        self.rows, self.trouble, self.later, self.ended = {}, [], False, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        n = 0
        try:
            while not self.ended:
                n += 1
                key = (1000 if self.later and n % 3 == 0 else -1000000) + 10 * n + self.number
                self.step(n, key)
        except Exception as error:  # told at the end
            self.trouble.append(error)

    def step(self, n, key):
        if n % 5 == 0:  # one that has done something cannot be repeated by its router
            try:
                with self.connection.transaction():
                    self.connection.execute(f"INSERT INTO {self.table} VALUES (%s, 1)", [key])
                    self.connection.execute(f"UPDATE {self.table} SET v = v + 1 WHERE id = %s", [key])
                self.rows[key] = 2
            except psycopg.errors.SerializationFailure:
                pass
            return
        self.connection.execute(f"INSERT INTO {self.table} VALUES (%s, 1)", [key])
        self.rows[key] = 1
        if n % 7 == 0:
            self.connection.execute(f"DELETE FROM {self.table} WHERE id = %s", [key])
            del self.rows[key]

    def end(self):
        self.ended = True
        self.thread.join(30)
        assert not self.thread.is_alive(), "a writer hangs"
        assert not self.trouble, self.trouble
        self.connection.close()
        return self.rows


def rows_of(connection, table):
    return dict(connection.execute(f"SELECT id, v FROM {table}").fetchall())


def guard_stands(world):
    with world.at_shard(0) as home:
        return home.execute("SELECT FROM pg_trigger WHERE tgname LIKE 'kintsugi%'").fetchone() is not None


def place(world, table, how, delay):
    """Whether it was placed, and how many rows are on the other shard. The table is written to before, meanwhile and
    afterwards; with what belongs elsewhere from `delay` on, or (None) from when the guard stands."""
    for shard in (0, 1):
        with world.at_shard(shard) as direct:
            direct.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, v int); ALTER TABLE {table} OWNER TO app")
    with world.connect() as admin:
        deadline = time.monotonic() + 10  # until it is known as the home shard's
        while True:
            try:
                admin.execute(f"INSERT INTO {table} VALUES (-1, 7)")
                break
            except psycopg.errors.UndefinedTable:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        if how == "REPLICATED":
            admin.execute(f"DELETE FROM {table}")
        writers = []
        if how != "REPLICATED":
            writers = [Writer(world, i % 2, i, table) for i in range(4)]
            time.sleep(0.1)

        done = threading.Event()

        def go_on():
            if delay is None:
                while not done.is_set() and not guard_stands(world):
                    pass
            else:
                time.sleep(delay)
            if how == "REPLICATED":
                writers.extend(Writer(world, i % 2, i, table) for i in range(4))
            for writer in writers:
                writer.later = True

        changing = threading.Thread(target=go_on)
        changing.start()
        try:
            admin.execute(f"ALTER TABLE {table} {how}")
            placed = True
        except psycopg.errors.ObjectNotInPrerequisiteState:
            placed = False
        done.set()
        changing.join()
        time.sleep(0.5)
        written = {} if how == "REPLICATED" else {-1: 7}
        for writer in writers:
            written.update(writer.end())
        for router in (0, 1):
            with world.connect(router) as connection:
                assert rows_of(connection, table) == written, f"{how}, {placed}, router {router}"
        with world.at_shard(0) as home, world.at_shard(1) as other:
            deadline = time.monotonic() + 10
            for shard in (home, other):
                while shard.execute("SELECT FROM pg_trigger WHERE tgname LIKE 'kintsugi%'").fetchone():
                    assert time.monotonic() < deadline, "the guard stays"
                    time.sleep(0.05)
            found = rows_of(home, table), rows_of(other, table)
        if not placed:
            due = written, {}
        elif how == "REPLICATED":
            due = written, written
        else:
            due = ({k: v for k, v in written.items() if k < 100}, {k: v for k, v in written.items() if k >= 100})
        assert found == due, f"{how}, placed: {placed}: rows are not where they belong"
        return placed, len(due[1])


def main():
    world = World(shards=2, routers=2)
    try:
        with world.connect() as admin:
            admin.execute("CREATE SHARD MAP m BY RANGE (bigint)")
            admin.execute("CREATE SHARDLET low OF m FOR VALUES FROM (MINVALUE) TO (100) ON SHARD s1")
            admin.execute("CREATE SHARDLET high OF m FOR VALUES FROM (100) TO (MAXVALUE) ON SHARD s2")
        source = random.Random(11)
        results = {"SHARD BY m (id)": [], "REPLICATED": []}
        for how, outcomes in results.items():
            for i in range(ROUNDS):
                delay = None if i % 2 == 0 else source.uniform(0, 0.4)
                outcomes.append(place(world, f"t{i}{how[0].lower()}", how, delay))
            placed = [rows for done, rows in outcomes if done]
            print(f"{how}: {len(placed)} of {ROUNDS} placed, the others refused; {sum(placed)} rows on the other shard")
            assert placed and sum(placed) > 0, "never placed: nothing was shown"
    finally:
        world.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
