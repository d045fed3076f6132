"""While the home shard is away a statement over several shards is an error; when it is back the sum is whole.

What names mean is asked of a shard before a session's first statement. When nobody answers, a sharded table must not be
taken for one of the home shard: that would be half of the rows, without a word.

    home_away_test.py        KINTSUGI_PROGRAM: the program to test
"""

import os
import shutil
import sys

import psycopg

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

SUM = "SELECT sum(balance) FROM accounts"
AS_CLIENTS_SEND_THEM = {
    "simple": lambda c: c.execute(SUM),
    "extended": lambda c: c.execute(SUM + " WHERE id > %s", (-1,)),
    "prepared": lambda c: c.execute(SUM, prepare=True),
    "script": lambda c: c.execute("SELECT 1; " + SUM),
    "write": lambda c: c.execute("UPDATE accounts SET balance = balance WHERE id = 30 RETURNING 20000"),
}


def connect(router, **more):
    return psycopg.connect(host="127.0.0.1", port=router.port, dbname=DATABASE, user=USER, password=PASSWORD, sslmode="disable",
                           autocommit=True, **more)


def last_of(cursor):
    while cursor.nextset():
        pass
    return cursor.fetchone()[0]


def main():
    root = scratch_directory("kintsugi-home-")
    clusters = [Cluster(root, name, settings={"max_prepared_transactions": 10}) for name in ("one", "two")]
    router = None
    try:
        router = Kintsugi(os.environ["KINTSUGI_PROGRAM"], clusters[0], root,
                          sections={"pool": {"size": 10, "wait_timeout": "1s"}, "map": {"store": "sqlite:map.db"}},
                          users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True)
        with connect(router) as admin:
            for name, cluster in zip(("s1", "s2"), clusters):
                admin.execute(f"CREATE SHARD {name} DSN '{cluster.shard_dsn()}'")
            admin.execute("CREATE SHARD MAP bank BY RANGE (int)")
            admin.execute("CREATE SHARDLET low OF bank FOR VALUES FROM (MINVALUE) TO (20) ON SHARD s1")
            admin.execute("CREATE SHARDLET high OF bank FOR VALUES FROM (20) TO (MAXVALUE) ON SHARD s2")
            admin.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) SHARD BY bank (id)")
            admin.execute("INSERT INTO accounts SELECT i, 500 FROM generate_series(0, 39) i")
            assert last_of(admin.execute(SUM)) == 20000
        clusters[0].stop("immediate")
        sessions = {}
        for how, send in AS_CLIENTS_SEND_THEM.items():
            sessions[how] = connect(router)
            for _ in range(2):
                try:
                    send(sessions[how])
                except psycopg.Error as error:
                    assert error.sqlstate in ("KG005", "57P03"), (how, error.sqlstate, error)
                else:
                    raise AssertionError(f"{how}: an answer while the home shard is away")
        # In a block that has failed for it, too, ROLLBACK is heard.
        in_block = connect(router)
        in_block.execute("BEGIN")
        try:
            in_block.execute(SUM)
            raise AssertionError("an answer while the home shard is away")
        except psycopg.Error as error:
            assert error.sqlstate in ("KG005", "57P03"), error
        in_block.execute("ROLLBACK")
        sessions["in a block before"] = in_block
        AS_CLIENTS_SEND_THEM["in a block before"] = lambda c: c.execute(SUM)
        clusters[0].start()
        for how, session in sessions.items():
            for _ in range(3):
                found = last_of(AS_CLIENTS_SEND_THEM[how](session))
                assert found == 20000, f"{how}: {found}"
            session.close()
        router.stop()
        router = None
    finally:
        if router is not None:
            print(router.log_tail(20))
            router.kill()
        for cluster in clusters:
            cluster.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
