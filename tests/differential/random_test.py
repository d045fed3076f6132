"""Random statements over random schemas: one plain PostgreSQL against the same data over several shards.

    random_test.py [--statements N] [--seed S] [--shards "1 2 3 5"] [--worlds N] [--refusals]

A world is a schema with data; each has its own seed, printed when something differs, and then the statements that make it
differ are reduced: first those before it, then its own words, then the rows. What is refused (0A000) is counted, and may
not be more than a bound says. An answer that plain PostgreSQL itself gives in another way over the same rows in another
order, with other plans, does not count as different.

    KINTSUGI_PROGRAM   the program to test
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import random
import re
import shutil
import sys
import time

from psycopg import pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from differential_test import connect, run_script, show  # noqa: E402
from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from random_kinds import KINDS  # noqa: E402
from random_statements import SETTINGS, Generator, Statement  # noqa: E402
from random_world import World  # noqa: E402
from systems import Kintsugi  # noqa: E402

MODES = "simple", "text", "binary"
REFUSED_MOST = 0.04  # of all statements
RESET_AFTER = 30  # groups with writes


def send(connection, statement, mode):
    text = statement.text.encode()
    if statement.simple or mode == "simple" and not statement.parameters:
        connection.send_query(text)
    else:
        values = [in_bytes(value, kind, mode) for value, kind in statement.parameters]
        connection.send_query_params(text, *map(list, zip(*values)) if values else ([],), result_format=1 if mode == "binary" else 0)


def in_bytes(value, kind, mode):
    """(bytes, type, format): binary ones have their type declared, as drivers do it."""
    kind = KINDS[kind]
    if mode == "binary" and kind.pack:
        return kind.pack(value), kind.oid, 1
    return value.encode(), 0, 0


def receive(connection, statement):
    """(kind, what, message): the rows with all that is said of them, or the SQLSTATE; of several statements all of it."""
    connection.flush()
    seen = []
    while True:
        result = connection.get_result()
        if result is None:
            break
        copied = []
        if result.status == pq.ExecStatus.COPY_IN:
            if statement.data:
                connection.put_copy_data(statement.data.encode())
            connection.put_copy_end()
            continue
        if result.status == pq.ExecStatus.COPY_OUT:
            size, line = connection.get_copy_data(0)
            while size > 0:
                copied.append((bytes(line),))
                size, line = connection.get_copy_data(0)
        if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
            state = result.error_field(pq.DiagnosticField.SQLSTATE)
            message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
            seen = [("error", (state or b"").decode(), (message or b"").decode())]
        elif not seen or seen[-1][0] != "error":
            seen.append(answer_of(result, statement, copied))
    if not seen:
        return "error", "lost", ""
    if len(seen) == 1 or seen[-1][0] == "error":
        return seen[-1]
    return "rows", [each[1] for each in seen], ""


def answer_of(result, statement, copied):
    # With parameters the modifier of a type depends on when PostgreSQL has put in their values.
    modifier = (lambda i: 0) if statement.parameters or statement.text.startswith("EXECUTE") else result.fmod
    # Types that were made here have a number of their own in every database.
    columns = [(result.fname(i), result.ftype(i) if result.ftype(i) < 16384 else "made here", modifier(i)) for i in range(result.nfields)]
    rows = [tuple(result.get_value(r, c) for c in range(result.nfields)) for r in range(result.ntuples)] + copied
    if not statement.ordered:
        rows.sort(key=lambda row: [(value is None, value or b"") for value in row])
    return "rows", (result.command_status, columns, rows), ""


def ask(connection, statement, mode):
    send(connection, statement, mode)
    return receive(connection, statement)


def same(plain, routed):
    # In a failed transaction PostgreSQL still reads a statement before it refuses it.
    if plain[:2] == ("error", "42601") and routed[:2] == ("error", "25P02"):
        return True
    # A row without its sharding key has an error of its own.
    if plain[:2] == ("error", "23502") and routed[:2] == ("error", "KG003"):
        return True
    return plain[:2] == routed[:2]


def refused(seen):
    """Not supported, or a key that the map has no place for."""
    return seen[0] == "error" and seen[1] in ("0A000", "KG001")


def nature(trouble):
    """Which statuses met: what stays the same while a case gets smaller."""
    return tuple(seen[0] if seen[0] == "rows" else seen[1] for seen in trouble[1:])


class Scene:
    """A world on a plain database (twice: in another order, with other plans) and on shards behind a router."""

    def __init__(self, cluster, program, root, number, seed, shards):
        self.cluster, self.seed, self.number = cluster, seed, number
        self.world = World(random.Random(seed), shards)
        self.names = [f"w{number}_plain", f"w{number}_other", *[f"w{number}_s{i + 1}" for i in range(shards)]]
        with cluster.admin("postgres") as admin:
            for name in self.names:
                admin.execute(f"CREATE DATABASE {name} OWNER {USER} TEMPLATE template0 LOCALE_PROVIDER icu "
                              f"ICU_LOCALE 'en-US'")
        self.router = Kintsugi(
            program,
            cluster,
            root,
            f"router{number}",
            sections={"pool": {"size": 10}, "map": {"store": f"sqlite:map{number}.db"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
            store=True,
        )
        self.plain, self.other = (connect(cluster.port, name) for name in self.names[:2])
        self.routed = connect(self.router.port, "app")
        for setting in ("enable_hashagg", "enable_hashjoin", "enable_seqscan", "enable_nestloop"):
            self.other.exec_(f"SET {setting} = off".encode())
        for i in range(shards):
            run_script(self.routed, f"CREATE SHARD s{i + 1} DSN 'host=127.0.0.1 port={cluster.port} "
                                    f"dbname={self.names[i + 2]} user={USER} password={PASSWORD}'")
        for text in self.world.own_statements():
            run_script(self.routed, text)
        for text in self.world.schema_statements():
            run_script(self.routed, text)
            for connection in (self.plain, self.other):
                run_script(connection, re.sub(r"\s+(SHARD BY \w+ \(\w+\)|REPLICATED)$", "", text))
        self.rows = {name: list(rows) for name, rows in self.world.rows.items()}

    def close(self):
        for connection in (self.plain, self.other, self.routed):
            connection.finish()
        self.router.stop()
        with self.cluster.admin("postgres") as admin:
            for name in self.names:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def reset(self, other=False):
        for connection in (self.plain, self.routed, *([self.other] if other else [])):
            if connection.transaction_status != pq.TransactionStatus.IDLE:
                connection.exec_(b"ROLLBACK")
            for setting in SETTINGS:
                connection.exec_(f"RESET {setting}".encode())
            for table in self.world.tables:
                run_script(connection, f"DELETE FROM {table.name}")
                rows = self.rows[table.name]
                if connection is self.other:
                    rows = rows[::-1]
                if rows:
                    run_script(connection, f"INSERT INTO {table.name} VALUES "
                               + ", ".join("(" + ", ".join(row) + ")" for row in rows))

    def contents(self):
        """The first table whose rows differ, as a statement to show."""
        for table in self.world.tables:
            statement = Statement(f"SELECT * FROM {table.name}")
            plain, routed = ask(self.plain, statement, "text"), ask(self.routed, statement, "text")
            if not same(plain, routed):
                return statement, plain, routed
        return None

    def lost(self):
        return self.routed.status != pq.ConnStatus.OK

    def reconnect(self):
        self.routed.finish()
        self.routed = connect(self.router.port, "app")

    # ---- one session's worth

    def roll_back(self):
        for connection in (self.plain, self.routed):
            connection.exec_(b"ROLLBACK")

    def run_group(self, group, modes, tally):
        """Runs it on both; the statements that were run, and what differed."""
        done = []
        for statement, mode in zip(group, modes):
            if statement.write:
                routed = ask(self.routed, statement, mode)
                if refused(routed):
                    tally.refuse(statement, routed)
                    if self.plain.transaction_status != pq.TransactionStatus.IDLE:
                        self.roll_back()
                        # What was run so far was undone.
                        return [], None
                    continue
                plain = ask(self.plain, statement, mode)
            else:
                send(self.routed, statement, mode)
                send(self.plain, statement, mode)
                routed = receive(self.routed, statement)
                plain = receive(self.plain, statement)
                if refused(routed) and not refused(plain):
                    tally.refuse(statement, routed)
                    if self.plain.transaction_status != pq.TransactionStatus.IDLE:
                        self.roll_back()
                        return [], None
                    continue
            done.append((statement, mode))
            tally.compared += 1
            tally.kinds[plain[0] if plain[0] == "rows" else plain[1]] += 1
            if not same(plain, routed) or self.lost():
                return done, (statement, plain, routed)
        return done, None

    # ---- making it small

    def fails(self, history, like=None):
        """Whether the last of these differs on fresh data (`like` it did before), and plain PostgreSQL is sure of it.
        What was seen."""
        seen = self.first_difference(history)
        return seen if seen and like in (None, nature(seen)) else None

    def first_difference(self, history):
        if self.lost():
            self.reconnect()
        self.reset(other=True)
        seen = None
        for position, (statement, mode) in enumerate(history):
            plain = ask(self.plain, statement, mode)
            other = ask(self.other, statement, mode)
            routed = ask(self.routed, statement, mode)
            if self.lost():
                return statement, plain, routed
            if refused(routed):
                return None
            if not same(plain, routed):
                seen = (statement, plain, routed) if same(plain, other) else None
                break
        for connection in (self.plain, self.other, self.routed):
            if connection.transaction_status != pq.TransactionStatus.IDLE:
                connection.exec_(b"ROLLBACK")
        if seen is None and any(statement.write for statement, _ in history):
            seen = self.contents()
        return seen

    def reduce(self, history, trouble, seconds):
        """A short history that still fails, or None when it does not fail again."""
        deadline = time.monotonic() + seconds
        self.like = nature(trouble)
        if self.fails(history[-1:], self.like):
            history = history[-1:]
        elif not self.fails(history, self.like):
            return None
        size = max(1, len(history) // 2)
        while len(history) > 1 and time.monotonic() < deadline:
            shorter = None
            for at in range(0, len(history), size):
                attempt = history[:at] + history[at + size:]
                if attempt and self.fails(attempt, self.like):
                    shorter = attempt
                    break
            if shorter:
                history = shorter
            elif size == 1:
                break
            else:
                size = max(1, size // 2)
        for at in range(len(history) - 1, -1, -1):
            history = self.shorten(history, at, deadline)
        for table in self.world.tables:
            self.drop_rows(history, table, deadline)
        return history

    def shorten(self, history, at, deadline):
        """Leaves out runs of words of one statement, long ones first."""
        words = re.findall(r"'(?:[^']|'')*'|\w+|\$\d+|[<>=!|]+|::|[^\s\w]|", history[at][0].text)
        words = [word for word in words if word]
        size = len(words) // 2
        while size >= 1 and time.monotonic() < deadline:
            position, found = 0, False
            while position + size <= len(words) and time.monotonic() < deadline:
                attempt = words[:position] + words[position + size:]
                text = " ".join(attempt)
                used = {int(n) for n in re.findall(r"\$(\d+)", text)}
                if text and used == set(range(1, len(used) + 1)) and text.count("(") == text.count(")"):
                    old = history[at][0]
                    ordered = old.ordered and ("ORDER BY" in text or "ORDER BY" not in old.text)
                    new = Statement(text, ordered, old.write, old.parameters[: len(used)], old.simple, old.data)
                    changed = history[:at] + [(new, history[at][1])] + history[at + 1:]
                    if self.fails(changed, self.like):
                        history, words, found = changed, attempt, True
                        continue
                position += 1
            if not found or size > len(words):
                size //= 2
        return history

    def drop_rows(self, history, table, deadline):
        rows = self.rows[table.name]
        size = len(rows)
        while size >= 1 and time.monotonic() < deadline:
            at = 0
            while at < len(rows) and time.monotonic() < deadline:
                self.rows[table.name] = rows[:at] + rows[at + size:]
                if self.fails(history, self.like):
                    rows = self.rows[table.name]
                else:
                    at += size
            size //= 2
        self.rows[table.name] = rows

    def restore(self):
        self.rows = {name: list(rows) for name, rows in self.world.rows.items()}
        if self.lost():
            self.reconnect()
        self.reset()


class Tally:
    def __init__(self):
        self.compared, self.refused, self.differ, self.unsure = 0, 0, 0, 0
        self.kinds = collections.Counter()
        self.reasons = collections.defaultdict(list)

    def add(self, other):
        for name in ("compared", "refused", "differ", "unsure"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kinds += other.kinds
        for reason, statements in other.reasons.items():
            self.reasons[reason] += statements

    def refuse(self, statement, seen):
        self.refused += 1
        self.reasons[re.sub(r"\b[trh]\d\b|x\d+", "_", seen[2])].append(statement)


def report(scene, history, seen):
    statement, plain, routed = seen
    print(f"DIFFERS in world {scene.number}, seed {scene.seed}, {scene.world.shards} shards")
    print(f"    {len(history)} statements")
    for table in scene.world.tables:
        if re.search(rf"\b{table.name}\b", " ".join(s.text for s, _ in history) + " " + statement.text):
            print(f"    {table.create()};")
            if scene.rows[table.name]:
                print(f"    INSERT INTO {table.name} VALUES "
                      + ", ".join("(" + ", ".join(row) + ")" for row in scene.rows[table.name]) + ";")
    for each, mode in history:
        print(f"    {each!r};  -- {mode}")
    print(f"  last  {statement.text}\n  plain  {show(plain)}\n  routed {show(routed)}", flush=True)


def run_world(scene, count, seed, tally, options):
    generator = Generator(random.Random(seed * 7 + 1), scene.world)
    chooser = random.Random(seed * 11 + 3)
    scene.reset()
    history, writes, left = [], 0, count
    while left > 0 and tally.differ < options.most:
        group = list(generator.next_statements())
        modes = [chooser.choice(MODES) for _ in group]
        left -= len(group)
        try:
            done, trouble = scene.run_group(group, modes, tally)
        except Exception:
            print(f"in world {scene.number}, seed {scene.seed}: {group}\n{scene.router.log_tail(20)}")
            raise
        if any(statement.write for statement in group):
            writes += 1
            history += done
            if writes % 10 == 0 and not trouble:
                trouble = scene.contents()
        else:
            done = history + done if trouble else done
        if trouble:
            whole = history if any(statement.write for statement in group) else done
            if scene.lost():
                print(f"the connection is lost by {trouble[0]!r}\n{scene.router.log_tail(30)}")
            short = scene.reduce(whole, trouble, options.reduce_seconds) if not options.no_reduce else whole
            if short is None:
                tally.unsure += 1
                if os.environ.get("KINTSUGI_VERBOSE"):
                    print("UNSURE:", trouble[0], show(trouble[1]), show(trouble[2]), sep="\n   ")
            else:
                tally.differ += 1
                report(scene, short, scene.fails(short) or trouble)
            scene.restore()
            history, writes = [], 0
        elif writes >= RESET_AFTER:
            scene.reset()
            history, writes = [], 0


shared = []  # the cluster, before the processes are forked


def one_world(root, number, options):
    """In a process of its own."""
    cluster = shared[0]
    shards = [int(n) for n in options.shards.split()]
    seed = options.seed + number
    tally = Tally()
    scene = Scene(cluster, os.environ["KINTSUGI_PROGRAM"], root, number, seed, shards[number % len(shards)])
    try:
        run_world(scene, options.statements // options.worlds, seed, tally, options)
    finally:
        scene.close()
    return tally


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--statements", type=int, default=int(os.environ.get("KINTSUGI_STATEMENTS", "10000")))
    options.add_argument("--seed", type=int, default=int(os.environ.get("KINTSUGI_SEED", "1")))
    options.add_argument("--worlds", type=int, default=4)
    options.add_argument("--jobs", type=int, default=2, help="worlds at the same time")
    options.add_argument("--shards", default="1 2 3 5")
    options.add_argument("--refusals", action="store_true", help="show what was refused")
    options.add_argument("--most", type=int, default=5, help="give a world up after so many differences")
    options.add_argument("--no-reduce", action="store_true")
    options.add_argument("--reduce-seconds", type=float, default=60, help="for each difference")
    options = options.parse_args()
    root = scratch_directory("kintsugi-random-")
    cluster = Cluster(root, settings={"max_prepared_transactions": 100, "wal_level": "logical"})
    tally = Tally()
    began = time.monotonic()
    try:
        shared.append(cluster)
        forking = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=forking) as pool:
            jobs = [pool.submit(one_world, root, number, options) for number in range(options.worlds)]
            for job in jobs:
                tally.add(job.result())
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    total = tally.compared + tally.refused
    rate = tally.refused / max(1, total)
    print(f"seed {options.seed}: {total} statements, {tally.compared} compared ({dict(tally.kinds.most_common(12))}), "
          f"{tally.refused} refused ({100 * rate:.1f} %), {tally.differ} differ, {tally.unsure} that PostgreSQL itself "
          f"is not sure of, {time.monotonic() - began:.1f} s")
    for reason, statements in sorted(tally.reasons.items(), key=lambda item: -len(item[1])):
        if options.refusals or rate > REFUSED_MOST:
            print(f"  {len(statements):5} {reason}\n        {statements[0]!r}")
    failed = tally.differ > 0 or rate > REFUSED_MOST or tally.unsure > total // 200 or tally.kinds["rows"] < total // 2
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
