"""SERIALIZABLE over several shards: what has committed is as if one had come after the other.

Clients read some rows, mostly of several shards, append their transaction's number to some of them, and commit. A row's value
is then the list of those who have written it, in their order, and each reader has seen a beginning of it: so who came before
whom is known of any two that met on a row. Serializable transactions make no circle of that. (Under REPEATABLE READ they
do, which shows that circles are found.)

    serializable_test.py [--seconds N] [--routers N]        KINTSUGI_PROGRAM: the program to test
"""

import argparse
import collections
import itertools
import random
import threading
import time

import psycopg
from small_bank import Shift, connect, small_bank

KEYS = [1, 2, 3, 21, 22, 23]  # three on each shard
CLIENTS = 6
ENOUGH = 100


def order(history, final):
    """Who came before whom. `history`: {number: {key: list that was read}}."""
    after = collections.defaultdict(set)
    for lists in final.values():
        for earlier, later in itertools.pairwise(lists):
            after[earlier].add(later)
    for number, reads in history.items():
        for key, seen in reads.items():
            assert final[key][: len(seen)] == seen, f"{number} has read {seen} of {key}, which became {final[key]}"
            if seen:
                after[seen[-1]].add(number)
            following = [writer for writer in final[key][len(seen) : len(seen) + 2] if writer != number]
            if following:
                after[number].add(following[0])
    return after


def circles(history, after):
    """Those who are in circles or behind them."""
    # Whoever is in no circle can be taken away, one after the other, from the front.
    before = collections.Counter(later for earlier in after for later in after[earlier] if later != earlier)
    front = [number for number in history if not before[number]]
    left = set(history)
    while front:
        number = front.pop()
        left.discard(number)
        for later in after[number] - {number}:
            before[later] -= 1
            if not before[later] and later in left:
                front.append(later)
    return left


def smallest_circle(left, after):
    best = None
    for start in left:
        came_from, front = {start: None}, collections.deque([start])
        while front and start is not None:
            number = front.popleft()
            if start in after[number] - {number}:
                circle = [number]
                while came_from[circle[-1]] is not None:
                    circle.append(came_from[circle[-1]])
                if best is None or len(circle) < len(best):
                    best = circle[::-1]
                break
            for later in after[number] & left:
                if later not in came_from:
                    came_from[later] = number
                    front.append(later)
    return best


def by_key(c, keys):
    return {key: c.execute("SELECT list FROM notes WHERE id = %s", (key,)).fetchone()[0] for key in keys}


def at_once(c, keys):
    return dict(c.execute(f"SELECT id, list FROM notes WHERE id IN ({', '.join(map(str, keys))})").fetchall())


def joined(c, keys):
    return dict(c.execute(f"SELECT a.id, a.list FROM notes a JOIN notes b ON b.id = a.other WHERE a.id IN ({', '.join(map(str, keys))})").fetchall())


class Notes:
    def __init__(self, routers, level, seconds):
        self.routers, self.level = routers, level
        self.numbers = itertools.count(1)
        self.history, self.errors, self.refused = {}, [], 0
        self.shift = Shift(seconds, lambda: len(self.history) > ENOUGH)
        self.stories = {}

    def client(self, seed):
        chooser = random.Random(seed)
        with connect(self.routers[seed % len(self.routers)]) as c:
            c.execute(f"SET default_transaction_isolation = '{self.level}'")
            while self.shift.goes_on() and not self.errors:
                number = next(self.numbers)
                story = self.stories[number] = [time.monotonic()]
                try:
                    reads = self.transaction(c, chooser, number, story)
                    self.history[number] = reads
                    story.append(time.monotonic())
                except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                    self.refused += 1
                    c.execute("ROLLBACK")

    def transaction(self, c, chooser, number, story):
        keys = chooser.sample(KEYS, chooser.choice((2, 2, 3)))
        writes = chooser.sample(keys, chooser.choice((0, 1, 1, 1, 2)))
        way = chooser.choice((by_key, by_key, at_once, joined))
        if not writes and way is at_once and chooser.random() < 0.5:
            story.append(f"reads {keys} at once")
            return way(c, keys)  # a transaction of its own
        if len(writes) == 2 and chooser.random() < 0.5:
            # One statement, which reads what it writes.
            story.append(f"writes {writes} at once")
            rows = c.execute(f"UPDATE notes SET list = list || {number} WHERE id IN ({writes[0]}, {writes[1]}) RETURNING id, list").fetchall()
            return {key: seen[:-1] for key, seen in rows}
        c.execute(chooser.choice(("BEGIN", f"BEGIN ISOLATION LEVEL {self.level}", f"START TRANSACTION ISOLATION LEVEL {self.level}, READ WRITE")))
        story += [f"reads {keys} {way.__name__}", f"writes {writes}"]
        reads = way(c, keys)
        story.append(time.monotonic())
        for key in writes:
            c.execute("UPDATE notes SET list = list || %s WHERE id = %s", (number, key))
        if not writes and chooser.random() < 0.3:
            time.sleep(0.005)
        c.execute("COMMIT")
        return reads

    def guarded(self, seed):
        try:
            self.client(seed)
        except Exception as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    def run(self):
        with connect(self.routers[0]) as c:
            c.execute("UPDATE notes SET list = '{}'")
        threads = [threading.Thread(target=self.guarded, args=(seed,)) for seed in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.errors, self.errors
        with connect(self.routers[0]) as c:
            final = dict(c.execute("SELECT id, list FROM notes").fetchall())
        written = sum(map(len, final.values()))
        after = order(self.history, final)
        found = circles(self.history, after)
        print(f"{self.level}: {len(self.history)} transactions, {written} writes, {self.refused} refused, {len(found)} in circles or behind them")
        assert {number for numbers in final.values() for number in numbers} <= set(self.history), "a write of nobody"
        assert len(self.history) > ENOUGH, "hardly anything was tried"
        if found and self.level == "SERIALIZABLE":
            for number in smallest_circle(found, after):
                print(number, "saw", {key: seen[-2:] for key, seen in self.history[number].items()}, self.stories[number])
        return found


def read_only_is_not_refused(router):
    """What says that it only reads has no part in any circle, and costs the others nothing."""
    with connect(router) as reader, connect(router) as writer:
        for _ in range(20):
            reader.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
            at_once(reader, KEYS)
            writer.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            writer.execute("UPDATE notes SET list = '{}' WHERE id = 1")
            writer.execute("COMMIT")
            by_key(reader, KEYS)
            reader.execute("COMMIT")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--routers", type=int, default=1)
    options = options.parse_args()
    with small_bank({}, {}, routers=options.routers) as (_, *routers):
        with connect(routers[0]) as admin:
            admin.execute("CREATE TABLE notes (id int PRIMARY KEY, other int, list int[] NOT NULL DEFAULT '{}') SHARD BY bank (id)")
            admin.execute("INSERT INTO notes VALUES " + ", ".join(f"({key}, {other})" for key, other in zip(KEYS, KEYS[1:] + KEYS[:1])))
        found = any(Notes(routers, "REPEATABLE READ", options.seconds / 2).run() for _ in range(5))
        assert found, "no circle was found where there are some: the test tests nothing"
        found = Notes(routers, "SERIALIZABLE", options.seconds).run()
        assert not found, f"not serializable: {sorted(found)[:20]}"
        read_only_is_not_refused(routers[0])
    print("passed")


if __name__ == "__main__":
    main()
