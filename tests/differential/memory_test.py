"""The router's memory while several shards answer a slow client: it does not grow with the answer.

A fan-out whose rows come in any order and an ordered merge, of rows that generate_series makes while they are read, to a client
that reads little at a time. What the router's process holds at most may be 64 MB more than before, whatever the size.

    KINTSUGI_PROGRAM    the program to test
    KINTSUGI_MEMORY_MB  how much each statement answers (default: 200; the claim is 10000)
"""

import os
import select
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from differential_test import connect, run_script  # noqa: E402
from postgres import PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

MOST_MB = 64
MEGABYTES = int(os.environ.get("KINTSUGI_MEMORY_MB", "200"))
ROWS = MEGABYTES * 250  # from each of four rows of the table, a KB each
STATEMENTS = {
    "rows in any order": f"SELECT t.tenant, g, repeat('x', 1000) FROM places t, generate_series(1, {ROWS}) g",
    "rows in order": f"SELECT t.tenant, g, repeat('x', 1000) FROM places t, generate_series(1, {ROWS}) g ORDER BY t.tenant",
}


def forget_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


def read_slowly(connection, text):
    """Bytes that came; the first second nothing is read at all, then with pauses."""
    connection.send_query(text.encode())
    while connection.flush():
        pass
    time.sleep(1)
    total, tail, since = 0, b"", 0
    while True:
        if not select.select([connection.socket], [], [], 60)[0]:
            raise RuntimeError(f"nothing came for a minute after {total} bytes of {text}")
        piece = os.read(connection.socket, 1 << 16)
        if not piece:
            raise RuntimeError(f"the connection has ended after {total} bytes of {text}")
        total += len(piece)
        since += len(piece)
        tail = (tail + piece)[-6:]
        if tail == b"Z\0\0\0\5I":
            return total
        if since > 10_000_000:
            since = 0
            time.sleep(0.02)


def main():
    root = scratch_directory("kintsugi-memory-")
    cluster = Cluster(root)
    failed = False
    try:
        with cluster.admin("postgres") as admin:
            for name in ("s1", "s2"):
                admin.execute(f"CREATE DATABASE {name} OWNER {USER}")
        router = Kintsugi(
            os.environ["KINTSUGI_PROGRAM"], cluster, root,
            sections={"pool": {"size": 5}, "map": {"store": "sqlite:map.db"}},
            users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True,
        )  # fmt: skip
        own = connect(router.port, "app")
        for name in ("s1", "s2"):
            run_script(own, f"CREATE SHARD {name} DSN 'host=127.0.0.1 port={cluster.port} dbname={name} user={USER} "
                            f"password={PASSWORD}'")
        run_script(own, "CREATE SHARD MAP tenants BY RANGE (int);\n"
                        "CREATE SHARDLET a OF tenants FOR VALUES FROM (MINVALUE) TO (5) ON SHARD s1;\n"
                        "CREATE SHARDLET b OF tenants FOR VALUES FROM (5) TO (MAXVALUE) ON SHARD s2;\n"
                        "CREATE TABLE places (tenant int PRIMARY KEY) SHARD BY tenants (tenant);\n"
                        "INSERT INTO places VALUES (1), (2), (6), (7);\n")
        pid = router.process.pid
        for what, text in STATEMENTS.items():
            connection = connect(router.port, "app")
            route = own.exec_(f"EXPLAIN (ROUTE) {text}".encode())
            tier = route.get_value(0, 0).decode()
            if not tier.startswith("tier 2"):
                failed = True
                print(f"{what}: {tier}")
            forget_peak(pid)
            before = router.status_kb("VmRSS")
            began = time.monotonic()
            total = read_slowly(connection, text)
            peak = router.status_kb("VmHWM")
            grown = (peak - before) / 1024
            enough = total >= MEGABYTES * 1_000_000
            failed |= not enough or grown > MOST_MB
            print(f"{what}: {total / 1e6:,.0f} MB in {time.monotonic() - began:.0f} s, at most {peak / 1024:.0f} MB held, "
                  f"{grown:.1f} MB more than before{'' if enough else ', TOO LITTLE CAME'}", flush=True)
        router.stop()
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
