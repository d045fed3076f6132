"""Random sequences of protocol messages, of which every answer is that of one PostgreSQL.

Parse, Bind, Describe, Execute, Close, Flush and Sync in any order that a client may send them in, right and wrong, simple
queries between them, COPY with its data, transactions that fail: each sequence goes to one plain PostgreSQL and to a router
over two shards, and what comes back is compared message by message. What the router refuses ends the sequence.

    KINTSUGI_SEED=1 KINTSUGI_SEQUENCES=300   from which number on, and how many
"""

import os
import random
import struct

import protocol as p
from harness import check, main
from postgres import PASSWORD, USER
from routers import Router, connect, two_shards

PLAIN = "app_plain"
ROWS = 12
TABLES = (
    "CREATE TABLE t (k int PRIMARY KEY, v text)",
    "CREATE TABLE h (id int PRIMARY KEY, w int CHECK (w <> 13))",
)
FILL = (
    "DELETE FROM t; DELETE FROM h;"
    f" INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, {ROWS}) i;"
    " INSERT INTO h SELECT i, i * 2 FROM generate_series(1, 5) i"
)
STATE = "SELECT (SELECT string_agg(k || '=' || coalesce(v, '?'), ',' ORDER BY k) FROM t), (SELECT string_agg(id || '=' || coalesce(w, 0), ',' ORDER BY id) FROM h)"

# With the types of the parameters; {k} is a key here and there.
PREPARED = (
    ("SELECT k, v FROM t WHERE k = $1", (23,)),
    ("SELECT k, v FROM t ORDER BY k", ()),
    ("SELECT k, v FROM t WHERE k > $1 ORDER BY k DESC", (23,)),
    ("SELECT count(*), min(k), max(v) FROM t", ()),
    ("SELECT v FROM t WHERE k IN ($1, $2) ORDER BY k", (23, 23)),
    ("INSERT INTO t VALUES ($1, $2)", (23, 25)),
    ("INSERT INTO t VALUES ($1, $2) RETURNING k, v", (23, 25)),
    ("INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v", (23, 25)),
    ("UPDATE t SET v = $2 WHERE k = $1", (23, 25)),
    ("UPDATE t SET v = $1", (25,)),
    ("DELETE FROM t WHERE k = $1 RETURNING k", (23,)),
    ("DELETE FROM t WHERE k > $1", (23,)),
    ("SELECT id, w FROM h ORDER BY id", ()),
    ("INSERT INTO h VALUES ($1, $2)", (23, 23)),
    ("UPDATE h SET w = w + $1 WHERE id = 2 RETURNING w", (23,)),
    ("SELECT $1::int + 1", (23,)),
    ("SELECT 1 / $1::int", (23,)),
    ("SELECT t.k, h.w FROM t JOIN h ON h.id = t.k ORDER BY t.k", ()),
    ("BEGIN", ()),
    ("COMMIT", ()),
    ("ROLLBACK", ()),
    ("", ()),
    ("SELECT nothing FROM t", ()),
    ("SELEC 1", ()),
    ("SHOW work_mem", ()),
    ("SET work_mem = '5MB'", ()),
)
SIMPLE = (
    "SELECT k, v FROM t WHERE k = {k}",
    "SELECT k FROM t ORDER BY k LIMIT 3",
    "SELECT count(*) FROM t",
    "INSERT INTO t VALUES ({k}, 's')",
    "INSERT INTO t VALUES ({k}, 'm'), (2000 + {k}, 'm') RETURNING k",
    "UPDATE t SET v = 'u' WHERE k = {k}",
    "DELETE FROM t WHERE k = {k}",
    "UPDATE h SET w = 13 WHERE id = 1",
    "SELECT 1; SELECT k FROM t WHERE k = {k}; SELECT 2",
    "INSERT INTO t VALUES ({k}, 'x'); SELECT 1 / 0; SELECT 3",
    "BEGIN",
    "BEGIN; INSERT INTO t VALUES ({k}, 'b')",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "RELEASE a",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "",
    ";",
    "SELECT 1 / 0",
    "SELEC",
    "SET work_mem = '6MB'",
    "RESET work_mem",
    "SHOW work_mem",
    "DEALLOCATE ALL",
    "DEALLOCATE a",
    "PREPARE b (int) AS SELECT v FROM t WHERE k = $1",
    "EXECUTE a({k})",
    "EXECUTE b({k})",
    "DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k",
    "FETCH 2 FROM c",
    "CLOSE c",
    "DISCARD ALL",
)
COPIES = ("COPY t FROM STDIN", "COPY h FROM STDIN", "COPY t (v, k) FROM STDIN (FORMAT csv)", "COPY nowhere FROM STDIN")
NAMES, PORTALS = ("", "a", "b"), ("", "p", "q")


class Sequence:
    """What a client sends, batch by batch, with the number of ReadyForQuery that each is answered by."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.types = {}  # of the parameters, by statement: what was last parsed under the name, if it was

    def key(self):
        return self.random.choice((self.random.randint(1, ROWS), self.random.randint(1, ROWS), 1000 + self.random.randint(0, 3)))

    def batches(self):
        for _ in range(self.random.randint(2, 9)):
            roll = self.random.random()
            if roll < 0.3:
                text = self.random.choice(SIMPLE).replace("{k}", str(self.key()))
                yield [("query " + text, p.query(text))], 1
            elif roll < 0.42:
                yield self.copy()
            else:
                yield self.extended()

    def copy(self):
        text = self.random.choice(COPIES)
        end = ("copy done", p.message("c")) if self.random.random() < 0.8 else ("copy fail", p.message("f", b"no more\0"))
        data = [self.copy_data(text) for _ in range(self.random.randint(0, 3))]
        if self.random.random() < 0.5:
            return [("query " + text, p.query(text)), *data, end], 1
        begin = [
            ("parse '' " + text, p.parse("", text)), ("bind '' ''", p.bind("", "")), ("execute ''", p.execute(""))
        ]  # fmt: skip
        self.types[""] = ()
        # Not to be executed again, where nobody sends data. (PostgreSQL 15.18 crashes at an Execute of the unnamed portal in a
        # transaction when the COPY that it was made of has been closed.)
        closing = [("close P ''", p.close("P", "")), ("close S ''", p.close("S", ""))]
        return [*begin, *data, end, ("sync", p.SYNC), *closing, ("sync", p.SYNC)], 2

    def copy_data(self, text):
        rows = []
        for _ in range(self.random.randint(0, 4)):
            k = self.key() + self.random.choice((0, 3000))
            rows.append(f'"c{k}",{k}' if "csv" in text else f"{k}\t{k}")
            if self.random.random() < 0.05:
                rows.append("rubbish")
        said = ("\n".join(rows) + "\n" if rows else "").encode()
        if rows and self.random.random() < 0.3:  # a row in two messages
            cut = self.random.randint(0, len(said))
            return ("data in two", p.message("d", said[:cut]) + p.message("d", said[cut:]))
        return (f"data {said!r}", p.message("d", said))

    def extended(self):
        said, syncs = [], 0
        for _ in range(self.random.randint(1, 9)):
            said.append(self.one())
            if said[-1][0] == "sync":
                syncs += 1
        said.append(("sync", p.SYNC))
        return said, syncs + 1

    def one(self):
        roll = self.random.random()
        name = self.random.choice(NAMES)
        portal = self.random.choice(PORTALS)
        if roll < 0.27:
            text, types = self.random.choice(PREPARED)
            self.types[name] = types
            told = types if self.random.random() < 0.5 else ()
            return f"parse {name!r} {text} {told}", p.parse(name, text, told)
        if roll < 0.52:
            return self.bind(portal, name)
        if roll < 0.62:
            kind, which = self.random.choice((("S", name), ("P", portal)))
            return f"describe {kind} {which!r}", p.describe(kind, which)
        if roll < 0.84:
            rows = self.random.choice((0, 0, 0, 1, 2, 5))
            return f"execute {portal!r} {rows}", p.execute(portal, rows)
        if roll < 0.89:
            kind, which = self.random.choice((("S", name), ("P", portal)))
            return f"close {kind} {which!r}", p.close(kind, which)
        if roll < 0.92:
            return "flush", p.FLUSH
        if roll < 0.94:
            return "data where there is no COPY", p.message("d", b"1\t1\n") + p.message("c")
        return "sync", p.SYNC

    def bind(self, portal, name):
        values, formats = [], []
        for kind in self.types.get(name, ()):
            roll = self.random.random()
            if roll < 0.06:
                values.append(None)
                formats.append(0)
            elif roll < 0.10 and kind == 23:
                values.append(b"abc")
                formats.append(0)
            elif roll < 0.4:
                value = self.key()
                values.append(struct.pack(">i", value) if kind == 23 else f"b{value}".encode())
                formats.append(1)
            else:
                values.append(str(self.key()).encode())
                formats.append(0)
        if self.random.random() < 0.04:
            values.append(b"1")
            formats.append(0)
        results = self.random.choice(((), (), (0,), (1,)))
        return f"bind {portal!r} {name!r} {values} {formats} {results}", p.bind(portal, name, values, formats, results)


def answers(client, pieces, ready):
    """Until so many ReadyForQuery, or the end of the connection."""
    client.send(*pieces)
    lines = []
    while ready > 0:
        more = client.until_ready()
        lines += more
        if more[-1] == "closed":
            break
        ready -= 1
    return lines


def comparable(lines):
    """Without what nobody promises: a message's words and place."""
    return [" ".join(line.split(" ")[:3]) if line[0] in "EN" and line != "closed" else line for line in lines]


# What may come first of a message that has two faults.
EITHER = {
    f"E ERROR {state}"
    for state in ("42601", "25P02", "42P05", "08P01", "34000", "55000", "26000", "42P03", "22P02", "22P03")
}


def same(here, there):
    """Rows of a write that then fails on another shard have been sent before it failed."""
    here, there = comparable(here), comparable(there)
    while len(there) > len(here):
        at = next((i for i, line in enumerate(there) if i >= len(here) or line != here[i]), None)
        if there[at][0] not in "TD" or not any(line.startswith("E ERROR") for line in there[at:]):
            return False
        del there[at]
    return len(here) == len(there) and all(
        a == b or {a, b} <= EITHER or (a == "E ERROR 25P02" and b.startswith("E ERROR")) for a, b in zip(here, there)
    )


def ends_it(here, there):
    """Where the router may say something else, after which the two are in different states: a refusal; the unnamed statement
    that PostgreSQL keeps when the Parse of the next is skipped; a value that is looked at when the portal runs and not when
    it is bound; a portal's name that is taken, or of a shard that the batch has left; the unnamed portal, of which a shard
    has one of the router's; a sharding key that is NULL; what a statement is, in a transaction that has failed."""
    here, there = comparable(here), comparable(there)
    first = next((pair for pair in zip(here, there) if pair[0] != pair[1]), ("", ""))
    return (
        any(line.startswith("E ERROR 0A000") for line in there)
        or first[1].startswith(("E ERROR 26000", "E ERROR 34000"))
        or any(line.startswith("E ERROR KG003") for line in there)
        or first[1][0:1] == "2" and first[0][8:13] in ("22P02", "22P03", "22021", "08P01", "42P03")
        or first[1][0:1] in ("n", "T") and first[0].startswith("E ERROR 34000")
        or first[1][0:1] == "t" and first[0].startswith("E ERROR 25P02")
        or first[0][0:1] == "t" and first[1].startswith("E ERROR 25P02")
    )


class Difference(AssertionError):
    pass


def left_open():
    """A portal of several shards of which some rows are still to come, and what may become of it."""
    begin = [("query BEGIN", p.query("BEGIN"))], 1
    some = [
        ("parse b", p.parse("b", "SELECT k, v FROM t ORDER BY k")),
        ("parse c", p.parse("c", "SELECT v FROM t WHERE k = 5")),
        ("bind '' b", p.bind("", "b")),
        ("execute '' 1", p.execute("", 1)),
    ]
    sync = ("sync", p.SYNC)
    yield "the client goes", [begin, ([*some, sync], 1)]
    yield "the client goes, in a transaction that has failed", [begin, ([*some, ("bind", p.bind("", "no")), sync], 1)]
    for name in ("b", "c"):
        again = [(f"bind '' {name}", p.bind("", name)), ("execute", p.execute("", 1))]
        yield "another is bound in its place", [begin, ([*some, *again, sync], 1)]
    for text in ("SELECT count(*) FROM t", "SELECT 1/0", "COMMIT", "ROLLBACK"):
        yield text + " comes", [begin, ([*some, sync], 1), ([("query " + text, p.query(text))], 1)]
    yield "the client goes before it has its answer", [begin, ([*some, ("flush", p.FLUSH)], 0)]
    yield "the same without a block", [([*some, ("flush", p.FLUSH)], 0)]
    ends = [("parse", p.parse("", "COMMIT")), ("bind", p.bind("x", "")), ("execute", p.execute("x")), sync]
    yield "COMMIT comes as a portal", [begin, ([*some, sync], 1), (ends, 1)]
    named = [("bind q", p.bind("q", "b")), ("execute q", p.execute("q", 2))]
    yield "it has a name", [begin, ([*some, *named, sync], 1), ([("execute q", p.execute("q", 3)), sync], 1)]


def compare(seed, batches, plain, routed):
    """How many batches were answered alike, and whether the end was a refusal."""
    story = []
    count = 0
    for said, ready in batches:
        story += [what for what, _ in said]
        here, there = (answers(c, [piece for _, piece in said], ready) for c in (plain, routed))
        if same(here, there):
            count += 1
            continue
        if ends_it(here, there):
            return count, True
        raise Difference(
            f"seed {seed}\n  " + "\n  ".join(story) + "\nPostgreSQL:\n  " + "\n  ".join(here) + "\nthe router:\n  " + "\n  ".join(there)
        )
    return count, False


def run(stage, seeds):
    users = [{"name": USER, "password": PASSWORD, "admin": True}]
    with stage.cluster.admin("postgres") as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {PLAIN}")
        admin.execute(f"CREATE DATABASE {PLAIN} OWNER {USER}")
    with Router(stage, "sequences", store=True, users=users, sections={"pool": {"size": 3}}) as router:
        with connect(stage, router) as c:
            two_shards(stage, c, 6)
            c.execute(TABLES[0] + " SHARD BY m (k)")
            c.execute(TABLES[1])
        beside = p.logged_in(stage.cluster, database=PLAIN)
        beside.ask(p.query(";".join(TABLES)))
        over = p.logged_in(router)
        alike = refused = 0
        differences = []
        sequences = [*left_open(), *((seed, Sequence(seed).batches()) for seed in seeds)]
        for seed, batches in sequences:
            for c in (beside, over):
                filled = c.ask(p.query(FILL))
                assert filled[-1] == "Z b'I'", filled
            plain, routed = p.logged_in(stage.cluster, database=PLAIN), p.logged_in(router)
            try:
                with plain, routed:
                    count, ended = compare(seed, batches, plain, routed)
                alike += count
                refused += ended
                if not ended:
                    states = [c.ask(p.query(STATE)) for c in (beside, over)]
                    if comparable(states[0]) != comparable(states[1]):
                        raise Difference(f"seed {seed}: the rows afterwards\n  {states[0]}\n  {states[1]}")
            except (Difference, TimeoutError) as error:
                print(f"---- seed {seed}: {type(error).__name__} {error}", flush=True)
                differences.append(seed)
        print(f"     {len(seeds)} sequences, {alike} batches alike, {refused} ended by a refusal", flush=True)
        if differences:
            raise Difference(f"seeds {differences}")
        assert refused < len(seeds) / 3, "most of what is asked is refused"


@check(seconds=400)
def any_order(stage):
    first = int(os.environ.get("KINTSUGI_SEED", 1))
    count = int(os.environ.get("KINTSUGI_SEQUENCES", 300))
    print(f"     from seed {first}", flush=True)
    run(stage, range(first, first + count))


if __name__ == "__main__":
    main(settings={"wal_level": "logical", "max_prepared_transactions": 20})
