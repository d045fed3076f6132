"""TPC-B over two shards beside plain PostgreSQL: pgbench's own script, eight clients, the four tables sharded by their own
keys, so that most transactions write on both shards and commit in two phases."""

import os
import re
import subprocess

from postgres import BIN, DATABASE, PASSWORD, USER

TABLES = """
CREATE TABLE pgbench_branches (bid int NOT NULL PRIMARY KEY, bbalance int, filler char(88)) {bid};
CREATE TABLE pgbench_tellers (tid int NOT NULL PRIMARY KEY, bid int, tbalance int, filler char(84)) {tid};
CREATE TABLE pgbench_accounts (aid int NOT NULL PRIMARY KEY, bid int, abalance int, filler char(84)) {aid};
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)) {tid};
"""
SCALE, CLIENTS = 20, 8


def statements(sharded):
    text = TABLES.format(**{key: f"SHARD BY pgbench ({key})" if sharded else "" for key in ("aid", "bid", "tid")})
    return [line for line in text.strip().splitlines() if line]


def rows():
    yield "pgbench_branches", (f"{i}\t0\t\n" for i in range(1, SCALE + 1))
    yield "pgbench_tellers", (f"{i}\t{(i - 1) // 10 + 1}\t0\t\n" for i in range(1, SCALE * 10 + 1))
    yield "pgbench_accounts", (f"{i}\t{(i - 1) // 100000 + 1}\t0\t\n" for i in range(1, SCALE * 100000 + 1))


def fill(connection, sharded):
    for statement in statements(sharded):
        connection.execute(statement)
    for table, lines in rows():
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            piece = []
            for line in lines:
                piece.append(line)
                if len(piece) == 5000:
                    copy.write("".join(piece))
                    piece = []
            copy.write("".join(piece))


def transactions_a_second(port, seconds):
    """Of pgbench's TPC-B; its variable `scale` is given, for it cannot count the branches through a map."""
    done = subprocess.run(
        [f"{BIN}/pgbench", "-n", "-M", "simple", "-c", str(CLIENTS), "-j", "1", "-T", str(seconds), "-s", str(SCALE),
         "-h", "127.0.0.1", "-p", str(port), "-U", USER, DATABASE],
        env={**os.environ, "PGPASSWORD": PASSWORD, "PGSSLMODE": "disable"}, capture_output=True, text=True,
        timeout=seconds + 60,
    )  # fmt: skip
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if done.returncode != 0 or found is None or "failed" in done.stderr:
        raise RuntimeError(done.stderr[-300:])
    return float(found.group(1))


def measure(plain, over, plain_port, port, seconds, rounds):
    """{"plain": tps, "kintsugi": tps}: the medians, measured by turns."""
    over.execute("CREATE SHARD MAP pgbench BY HASH (int) SHARDLETS 16")
    fill(plain, False)
    fill(over, True)
    tps = {"plain": [], "kintsugi": []}
    for _ in range(rounds):
        tps["plain"].append(transactions_a_second(plain_port, seconds))
        tps["kintsugi"].append(transactions_a_second(port, seconds))
    total = over.execute(
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), "
        "(SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history)"
    ).fetchone()
    if len(set(total)) != 1:
        raise RuntimeError(f"the balances are not one: {total}")
    return {name: sorted(each)[len(each) // 2] for name, each in tps.items()}
