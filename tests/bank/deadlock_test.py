"""Transactions that wait for each other on different shards do not wait for ever.

In blocks one of them gets 40P01, as from one PostgreSQL. A statement that stands alone is run again instead: one PostgreSQL
would have had it wait, since there two of them meet on the first row. Through one router, and through two. And what has
failed on one shard holds nothing on others, though its client has not said ROLLBACK yet.

    deadlock_test.py        KINTSUGI_PROGRAM: the program to test
"""

import sys
import threading

import psycopg
from small_bank import SUM, connect, small_bank

LOW, HIGH = 1, 30
ADD = "UPDATE accounts SET balance = balance + %s WHERE id = %s"
CLIENTS, TIMES = 4, 10


def together(works, seconds=90):
    """What each returns or raises."""
    results = [None] * len(works)

    def run(i, work):
        try:
            results[i] = work()
        except psycopg.Error as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), "a deadlock is not found"
    return results


def crosswise(first_router, second_router, **how):
    """Each has one account and wants the other's."""
    clients = connect(first_router), connect(second_router)
    for client, own in zip(clients, (LOW, HIGH)):
        client.execute("BEGIN")
        client.execute(ADD, (1, own), **how)
    results = together([lambda: clients[0].execute(ADD, (-1, HIGH), **how).rowcount, lambda: clients[1].execute(ADD, (-1, LOW), **how).rowcount])
    failed = [i for i in (0, 1) if isinstance(results[i], psycopg.Error)]
    assert len(failed) == 1, f"one of them is broken off, and the other goes on: {results}"
    error = results[failed[0]]
    assert (error.sqlstate, error.diag.message_primary) == ("40P01", "deadlock detected"), error
    assert results[1 - failed[0]] == 1
    try:
        clients[failed[0]].execute("SELECT 1")
        raise AssertionError("the transaction goes on")
    except psycopg.errors.InFailedSqlTransaction:
        clients[failed[0]].execute("ROLLBACK")
    clients[1 - failed[0]].execute("COMMIT")
    for client in clients:
        client.close()


def failed_lets_go(router, savepoint, **how):
    first, second = connect(router), connect(router)
    second.execute("SET lock_timeout = '5s'")
    first.execute("BEGIN")
    if savepoint:
        first.execute("SAVEPOINT here")
    first.execute(ADD, (1, LOW), **how)
    try:
        first.execute("UPDATE accounts SET balance = balance / %s WHERE id = %s", (0, HIGH), **how)
        raise AssertionError("divided by nought")
    except psycopg.errors.DivisionByZero:
        pass
    assert second.execute(ADD, (0, LOW), **how).rowcount == 1
    if savepoint:
        first.execute("ROLLBACK TO here")
        assert first.execute(ADD, (-1, LOW), **how).rowcount == 1
        assert first.execute(ADD, (1, HIGH), **how).rowcount == 1
    first.execute("COMMIT")
    for client in first, second:
        client.close()


def at_once(routers, sql):
    """Many of one statement that writes the same row of each shard: all of them are done."""

    def work(router):
        with connect(router) as client:
            for _ in range(TIMES):
                client.execute(sql)

    results = together([lambda i=i: work(routers[i % len(routers)]) for i in range(CLIENTS)])
    assert results == [None] * CLIENTS, results


def main():
    for routers in (1, 2):
        with small_bank({}, {}, routers=routers) as (_, *all_routers):
            first, last = all_routers[0], all_routers[-1]
            for how in {}, {"prepare": True}:
                crosswise(first, last, **how)
                failed_lets_go(first, False, **how)
                failed_lets_go(first, True, **how)
            with connect(first) as client:
                assert client.execute("SELECT sum(balance) FROM accounts").fetchone()[0] == SUM
            at_once(all_routers, f"UPDATE accounts SET balance = balance + 1 WHERE id IN ({LOW}, {HIGH})")
            with connect(first) as client:
                expected = SUM + 2 * CLIENTS * TIMES
                assert client.execute("SELECT sum(balance) FROM accounts").fetchone()[0] == expected
                client.execute("CREATE TABLE rates (id int PRIMARY KEY, rate int) REPLICATED")
                client.execute("INSERT INTO rates VALUES (1, 0)")
            at_once(all_routers, "UPDATE rates SET rate = rate + 1")
            with connect(last) as client:
                assert client.execute("SELECT rate FROM rates").fetchone()[0] == CLIENTS * TIMES
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
