"""The 22 queries of TPC-H through the router, with orders and lineitem in one shard map, customer in another, part and
partsupp in a third, and the rest replicated: every answer is exactly that of one plain PostgreSQL, and none is refused.

    tpch_test.py [--scale 0.01] [--shards 3] [--times N] [--json FILE]

With --times each query is timed so often on both, and the geometric mean of the quotients is printed (bench/tpch).

    KINTSUGI_PROGRAM   the program to test
"""

import argparse
import json
import math
import os
import re
import shutil
import sys
import time

from psycopg import pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
sys.path.insert(0, os.path.join(HERE, "..", "differential"))

import tpch_data  # noqa: E402
from differential_test import connect, run_script, show  # noqa: E402
from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402


def queries():
    text = open(os.path.join(HERE, "queries.sql")).read()
    for number, body in re.findall(r"-- (\d+)\n(.*?);\n", text, re.S):
        yield int(number), body


def copy_in(connection, table, lines):
    result = connection.exec_(f"COPY {table} FROM STDIN".encode())
    if result.status != pq.ExecStatus.COPY_IN:
        raise RuntimeError(result.error_message.decode())
    for at in range(0, len(lines), 1000):
        connection.put_copy_data(("\n".join(lines[at : at + 1000]) + "\n").encode())
    connection.put_copy_end()
    result = connection.get_result()
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise RuntimeError(result.error_message.decode())
    while connection.get_result():
        pass


def ask(connection, text):
    result = connection.exec_(text.encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        return ("error", (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode(),
                result.error_message.decode())
    columns = [(result.fname(i), result.ftype(i), result.fmod(i)) for i in range(result.nfields)]
    rows = [tuple(result.get_value(r, c) for c in range(result.nfields)) for r in range(result.ntuples)]
    return "rows", (result.command_status, columns, rows), ""


def timed(connection, text, times):
    """The quickest of so many."""
    best = math.inf
    for _ in range(times):
        began = time.perf_counter()
        ask(connection, text)
        best = min(best, time.perf_counter() - began)
    return best


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--scale", type=float, default=0.01)
    options.add_argument("--shards", type=int, default=3)
    options.add_argument("--times", type=int, default=0)
    options.add_argument("--json")
    options.add_argument("--only", type=int, nargs="*")
    options = options.parse_args()
    root = scratch_directory("kintsugi-tpch-")
    cluster = Cluster(root, settings={"max_prepared_transactions": 20, "wal_level": "logical", "shared_buffers": "256MB",
                                      "work_mem": "32MB", "max_wal_size": "4GB"})
    failed, measured = 0, {}
    try:
        shards = [f"s{i + 1}" for i in range(options.shards)]
        with cluster.admin("postgres") as admin:
            for name in ["plain", *shards]:
                admin.execute(f"CREATE DATABASE {name} OWNER {USER}")
        router = Kintsugi(
            os.environ["KINTSUGI_PROGRAM"],
            cluster,
            root,
            sections={"pool": {"size": 10}, "map": {"store": "sqlite:map.db"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}],
            store=True,
        )
        plain, routed = connect(cluster.port, "plain"), connect(router.port, "app")
        for name in shards:
            run_script(routed, f"CREATE SHARD {name} DSN 'host=127.0.0.1 port={cluster.port} dbname={name} user={USER} "
                               f"password={PASSWORD}'")
        for name in ("orders", "customers", "parts"):
            run_script(routed, f"CREATE SHARD MAP {name} BY HASH (int) SHARDLETS {4 * options.shards}")
        run_script(routed, tpch_data.SCHEMA)
        run_script(plain, re.sub(r"\s+(SHARD BY \w+ \(\w+\)|REPLICATED);", ";", tpch_data.SCHEMA))
        for table, lines in tpch_data.tables(options.scale):
            began = time.perf_counter()
            copy_in(plain, table, lines)
            between = time.perf_counter()
            copy_in(routed, table, lines)
            if options.times and len(lines) > 10_000:
                print(f"COPY {table}: {len(lines) / (between - began):,.0f} rows/s plain, "
                      f"{len(lines) / (time.perf_counter() - between):,.0f} routed")
        with cluster.admin("postgres") as admin:
            databases = ["plain", *shards]
        for name in databases:
            with cluster.admin(name) as admin:
                admin.execute("VACUUM ANALYZE")
        for number, text in queries():
            if options.only and number not in options.only:
                continue
            began = time.perf_counter()
            expected = ask(plain, text)
            between = time.perf_counter()
            seen = ask(routed, text)
            took = between - began, time.perf_counter() - between
            route = ask(routed, f"EXPLAIN (ROUTE) {text}")
            tier = route[1][2][0][0].decode() if route[0] == "rows" and route[1][2] else str(route)
            if expected[:2] != seen[:2]:
                failed += 1
                print(f"Q{number} DIFFERS\n  plain  {show(expected)}\n  routed {show(seen)}")
            if options.times:
                took = timed(plain, text, options.times), timed(routed, text, options.times)
                measured[number] = took
            print(f"Q{number:<2} {took[0] * 1000:8.1f} ms plain {took[1] * 1000:8.1f} ms routed  "
                  f"{took[1] / took[0]:5.2f}  {len(expected[1][2]) if expected[0] == 'rows' else expected[1]} rows, {tier}",
                  flush=True)
        if measured:
            mean = math.exp(sum(math.log(b / a) for a, b in measured.values()) / len(measured))
            print(f"geometric mean over {len(measured)} queries at scale {options.scale}: {mean:.2f} times plain")
            if options.json:
                with open(options.json, "w") as file:
                    json.dump({"scale": options.scale, "shards": options.shards, "mean": mean,
                               "seconds": {number: list(both) for number, both in measured.items()}}, file)
        router.stop()
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
