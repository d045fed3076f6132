"""The same statements to one plain PostgreSQL and, through the router, to the same data over 1, 2 and 5 shards.

Rows, their order where the statement fixes it, column names and types, command tags and SQLSTATEs have to be the same,
in the simple protocol and in the extended one with text and binary results. A statement may be refused (0A000) instead;
what is refused is counted and listed, a statement marked `-- must` may not be, and one marked `-- refused` has to be.

    KINTSUGI_PROGRAM   the program to test
    KINTSUGI_SHARDS    which numbers of shards (default: 1 2 5)
    KINTSUGI_BODIES    which files of statements (default: body.sql edges.sql)
    KINTSUGI_MODES     in which ways (default: simple text binary)

A body is a file of statements that end in `;` at the end of a line. `-- ordered` before one says that its rows come in a
fixed order although it has no ORDER BY at its end. `-- data a\tb\n` before a COPY FROM STDIN is what it gets; of a COPY TO
STDOUT the lines are compared, in any order.
"""

import os
import re
import shutil
import sys
import time

import psycopg
from psycopg import pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

MODES = tuple(os.environ.get("KINTSUGI_MODES", "simple text binary").split())


class Statement:
    def __init__(self, text, marks, line, data=""):
        self.text, self.marks, self.data = text, marks, data
        self.line = line  # "body.sql:12"
        folded = re.sub(r"\s+", " ", text.lower())
        depth = 0
        top = ""
        for piece in re.split(r"([()])", folded):
            if piece == "(":
                depth += 1
            elif piece == ")":
                depth -= 1
            elif depth == 0:
                top += piece
        self.ordered = "ordered" in marks or " order by " in top


def read_body(path):
    statements, lines, marks, first, data = [], [], set(), 0, ""
    with open(path) as file:
        for number, line in enumerate(file, 1):
            stripped = line.strip()
            if not lines and stripped.startswith("--"):
                if stripped in ("-- must", "-- ordered", "-- refused"):
                    marks.add(stripped[3:])
                elif stripped.startswith("-- data "):
                    data = stripped[8:].replace("\\n", "\n").replace("\\t", "\t")
                continue
            if not stripped and not lines:
                continue
            if not lines:
                first = number
            lines.append(line)
            if stripped.endswith(";"):
                where = f"{os.path.basename(path)}:{first}"
                statements.append(Statement("".join(lines).strip().rstrip(";"), marks, where, data))
                lines, marks, data = [], set(), ""
    return statements


def observe(connection, statement, mode):
    """(kind, what): the rows with all that is said of them, or the SQLSTATE."""
    text = statement.text.encode()
    if mode == "simple":
        result = connection.exec_(text)
    else:
        result = connection.exec_params(text, [], result_format=1 if mode == "binary" else 0)
    copied = []
    if result.status == pq.ExecStatus.COPY_IN:
        connection.put_copy_data(statement.data.encode())
        connection.put_copy_end()
        result = last_of(connection)
    elif result.status == pq.ExecStatus.COPY_OUT:
        while True:
            size, line = connection.get_copy_data(0)
            if size <= 0:
                break
            copied.append((bytes(line),))
        result = last_of(connection)
    if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        return "error", (state or b"").decode(), (message or b"").decode()
    # Types that were made here have a number of their own in every database.
    columns = [
        (result.fname(i), result.ftype(i) if result.ftype(i) < 16384 else "made here", result.fmod(i))
        for i in range(result.nfields)
    ]
    rows = [tuple(result.get_value(r, c) for c in range(result.nfields)) for r in range(result.ntuples)]
    rows += copied
    if not statement.ordered:
        rows.sort(key=lambda row: [(value is None, value or b"") for value in row])
    return "rows", (result.command_status, columns, rows), ""


def last_of(connection):
    result = connection.get_result()
    while more := connection.get_result():
        result = more
    return result


def same(left, right):
    return left[0] == right[0] and left[1] == right[1]


def connect(port, database):
    connection = pq.PGconn.connect(
        f"host=127.0.0.1 port={port} dbname={database} user={USER} password={PASSWORD}".encode()
    )
    if connection.status != pq.ConnStatus.OK:
        raise RuntimeError(connection.error_message.decode())
    return connection


def run_script(connection, text):
    for statement in re.split(r";\s*\n", text):
        statement = re.sub(r"(?m)^--.*$", "", statement).strip().rstrip(";")
        if not statement:
            continue
        result = connection.exec_(statement.encode())
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise RuntimeError(f"{statement}\n{result.error_message.decode()}")


def keys_of(shards):
    """The key space of the map `tenants` over so many shards: cuts in the middle of the data."""
    cuts = [10 * (i + 1) // shards for i in range(shards - 1)]
    bounds = ["MINVALUE", *[str(cut) for cut in cuts], "MAXVALUE"]
    return list(zip(bounds, bounds[1:]))


class Trial:
    def __init__(self, cluster, program, root, shards):
        self.cluster, self.shards = cluster, shards
        self.databases = [f"d{shards}_s{i + 1}" for i in range(shards)]
        self.oracle = f"d{shards}_plain"
        with cluster.admin("postgres") as admin:
            for database in [self.oracle, *self.databases]:
                admin.execute(f"CREATE DATABASE {database} OWNER {USER}")
        self.router = Kintsugi(
            program,
            cluster,
            root,
            f"router{shards}",
            sections={"pool": {"size": 10}, "map": {"store": f"sqlite:map{shards}.db"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
            store=True,
        )
        self.plain = connect(cluster.port, self.oracle)
        self.routed = connect(self.router.port, "app")
        for i, database in enumerate(self.databases):
            self.own(f"CREATE SHARD s{i + 1} DSN 'host=127.0.0.1 port={cluster.port} dbname={database} "
                     f"user={USER} password={PASSWORD}'")
        self.own("CREATE SHARD MAP tenants BY RANGE (int)")
        for i, (low, high) in enumerate(keys_of(shards)):
            self.own(f"CREATE SHARDLET t{i} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{i + 1}")
        self.own(f"CREATE SHARD MAP items BY HASH (text) SHARDLETS {2 * shards}")
        schema = open(os.path.join(HERE, "schema.sql")).read()
        run_script(self.routed, schema)
        run_script(self.plain, re.sub(r"\s+(SHARD BY \w+ \(\w+\)|REPLICATED)", "", schema))

    def own(self, text):
        run_script(self.routed, text)

    def run(self, statements, mode):
        trouble, refused, compared = [], [], 0
        data = open(os.path.join(HERE, "data.sql")).read()
        for connection in (self.plain, self.routed):
            run_script(connection, data)
        skipping = False  # a transaction in which something was refused is given up
        for statement in statements:
            if skipping:
                skipping = not re.match(r"(?i)(commit|rollback)$", statement.text)
                continue
            plain = observe(self.plain, statement, mode)
            routed = observe(self.routed, statement, mode)
            if self.routed.status != pq.ConnStatus.OK:
                raise RuntimeError(f"{statement.line}: the connection is lost\n"
                                   f"{self.routed.error_message.decode()}\n{self.router.log_tail(30)}")
            if routed[:2] == ("error", "0A000") and plain[:2] != ("error", "0A000"):
                refused.append((statement, routed[2]))
                if "must" in statement.marks:
                    trouble.append((statement, plain, routed))
                if self.plain.transaction_status != pq.TransactionStatus.IDLE:
                    for connection in (self.plain, self.routed):
                        connection.exec_(b"ROLLBACK")
                    skipping = True
                elif plain[0] == "rows" and not re.match(r"(?i)\s*(select|with|values|table|explain)", statement.text):
                    # The two differ from here on: bring them together again.
                    for connection in (self.plain, self.routed):
                        run_script(connection, data)
                continue
            compared += 1
            if not same(plain, routed) or "refused" in statement.marks:
                trouble.append((statement, plain, routed))
        return trouble, refused, compared

    def close(self):
        self.plain.finish()
        self.routed.finish()
        self.router.stop()


def show(seen):
    if seen[0] == "error":
        return f"error {seen[1]} {seen[2]}"
    tag, columns, rows = seen[1]
    return f"{tag.decode()} {columns} {rows[:8]}{' ...' if len(rows) > 8 else ''}"


def large_statements():
    """What would be too long to write down: many values to be worked out, wide rows to be poured."""
    rows = ", ".join(f"({100000 + i}, 'many')" for i in range(6000))
    for text in (f"INSERT INTO drafts (id, what) VALUES {rows}",
                 "INSERT INTO drafts (tenant, id, what) SELECT g % 10, 200000 + g, repeat('x', 100000) FROM generate_series(1, 300) g",
                 "SELECT count(*), sum(length(what)), min(tenant) FROM drafts"):
        yield Statement(text, {"must"}, "large")


def main():
    bodies = os.environ.get("KINTSUGI_BODIES", "body.sql edges.sql").split()
    body = [statement for name in bodies for statement in read_body(os.path.join(HERE, name))]
    root = scratch_directory("kintsugi-differential-")
    program = os.environ["KINTSUGI_PROGRAM"]
    failed = 0
    cluster = Cluster(root, settings={"max_prepared_transactions": 100, "wal_level": "logical"})
    try:
        for shards in map(int, os.environ.get("KINTSUGI_SHARDS", "1 2 5").split()):
            trial = Trial(cluster, program, root, shards)
            for mode in MODES:
                began = time.monotonic()
                trouble, refused, compared = trial.run([*body, *large_statements()], mode)
                failed += len(trouble)
                print(f"{shards} shards, {mode}: {compared} the same or not, {len(refused)} refused, "
                      f"{len(trouble)} differ ({time.monotonic() - began:.1f} s)")
                for statement, plain, routed in trouble:
                    print(f"  DIFFERS {statement.line}: {statement.text[:2000]}\n    plain  {show(plain)}\n"
                          f"    routed {show(routed)}")
                if mode == "simple" and os.environ.get("KINTSUGI_VERBOSE"):
                    for statement, why in refused:
                        print(f"  refused {statement.line}: {why}")
            trial.close()
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print(f"{'FAILED' if failed else 'passed'}: {len(body)} statements, {failed} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
