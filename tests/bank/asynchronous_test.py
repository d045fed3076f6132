"""Whoever does not wait for the disk may lose a transaction in a crash, but never a half of one.

Both shards commit asynchronously (synchronous_commit = off, as the client's setting or as the server's) and write to disk
seconds later. The shard that decides crashes as soon as a transfer is acknowledged: the other one has it, so it has to be there.

    asynchronous_test.py        KINTSUGI_PROGRAM: the program to test
"""

import sys

from bank_test import prepared, wait_until
from small_bank import START, connect, small_bank

SLOW_WRITER = {"wal_writer_delay": "10s"}
BEGIN = {
    "the server's setting": "BEGIN",
    "the client's setting": "BEGIN; SET LOCAL synchronous_commit = off",
}


def balances(clusters):
    found = {}
    for cluster in clusters:
        with cluster.admin() as admin:
            assert not admin.execute("SELECT gid FROM pg_prepared_xacts").fetchall()
            found.update(admin.execute("SELECT id, balance FROM accounts").fetchall())
    return found


def main():
    with small_bank(SLOW_WRITER | {"synchronous_commit": "off"}, SLOW_WRITER) as (clusters, router):
        for deciding, (whose, begin) in zip((0, 1), BEGIN.items()):
            for cluster in clusters:
                with cluster.admin() as admin:
                    admin.execute("CHECKPOINT")
            first, second = (1, 30) if deciding == 0 else (30, 1)  # who is written to first decides
            with connect(router) as client:
                client.execute(begin)
                client.execute("UPDATE accounts SET balance = balance - 100 WHERE id = %s", (first,))
                client.execute("UPDATE accounts SET balance = balance + 100 WHERE id = %s", (second,))
                client.execute("COMMIT")
                clusters[deciding].stop("immediate")
            clusters[deciding].start()
            wait_until("what is prepared to be settled", lambda: not prepared(clusters), 30, 0.1)
            found = balances(clusters)
            assert (found[first], found[second]) == (START - 100, START + 100), f"{whose}: {found[first]} and {found[second]}"
            with connect(router) as client:
                client.execute("UPDATE accounts SET balance = %s", (START,))
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
