"""A shardlet's state is what every router says from the moment that one of them has told the client it is so.

Three routers on one store: reads and writes get KG002 as the state says, on each router at once, in both protocols, and
the same for a whole table's statements. A router that is cut from the store may go on only until its lease ends.
"""

import sys
import time

import psycopg

from world import World

READ, WRITE = "SELECT v FROM t WHERE id = %s", "UPDATE t SET v = v + 1 WHERE id = %s"


def outcome(connection, text, key, prepare):
    try:
        connection.execute(text, [key], prepare=prepare)
        return "done"
    except psycopg.Error as error:
        return error.sqlstate


def check(connections, reads, writes, prepare):
    for i, connection in enumerate(connections):
        for text, expected in ((READ, reads), (WRITE, writes)):
            found = outcome(connection, text, 7, prepare)
            assert found == expected, f"router {i + 1}: {text}: {found}, not {expected}"
            assert outcome(connection, text, 700, prepare) == "done", f"router {i + 1}: another shardlet is closed as well"


def check_all_keys(connections, reads, writes):
    for i, connection in enumerate(connections):
        for text, expected in (("SELECT sum(v) FROM t", reads), ("UPDATE t SET v = v", writes)):
            try:
                connection.execute(text)
                found = "done"
            except psycopg.Error as error:
                found = error.sqlstate
            assert found == expected, f"router {i + 1}: {text}: {found}, not {expected}"


def states(world):
    connections = [world.connect(i) for i in range(3)]
    admins = [world.connect(i) for i in range(3)]
    slowest = 0.0
    for round_ in range(6):
        prepare = round_ % 2 == 1
        admin = admins[round_ % 3]
        for state, reads, writes in (("READ ONLY", "done", "KG002"), ("OFFLINE", "KG002", "KG002"), ("ONLINE", "done", "done")):
            began = time.monotonic()
            admin.execute(f"ALTER SHARDLET low SET {state}")
            slowest = max(slowest, time.monotonic() - began)
            check(connections, reads, writes, prepare)
            check_all_keys(connections, reads, writes)
    print(f"a state was set and known to three routers in at most {slowest * 1000:.0f} ms")
    for connection in connections + admins:
        connection.close()


def adoption_by_search_path(world):
    """ALTER TABLE ... SHARD BY means the table that search_path finds, as any other statement does."""
    with world.connect() as connection:
        connection.execute("CREATE SCHEMA app")
        connection.execute("CREATE TABLE app.notes (id bigint, v text)")
        with world.at_shard(1) as shard:  # a table of the home shard; the other has it as well
            shard.execute("CREATE SCHEMA IF NOT EXISTS app")
            shard.execute("CREATE TABLE app.notes (id bigint, v text)")
            shard.execute("ALTER TABLE app.notes OWNER TO app; ALTER SCHEMA app OWNER TO app")
        connection.execute("SET search_path = app, public")
        connection.execute("ALTER TABLE notes SHARD BY m (id)")
        tables = {row[0] for row in connection.execute("SHOW SHARDED TABLES").fetchall()}
        assert "app.notes" in tables, tables
        connection.execute("INSERT INTO notes VALUES (1, 'x'), (900, 'y')")
        assert connection.execute("SELECT count(*) FROM app.notes").fetchone() == (2,)


def main():
    world = World(shards=2, routers=3)
    try:
        with world.connect() as admin:
            admin.execute("CREATE SHARD MAP m BY RANGE (bigint)")
            admin.execute("CREATE SHARDLET low OF m FOR VALUES FROM (MINVALUE) TO (100) ON SHARD s1")
            admin.execute("CREATE SHARDLET high OF m FOR VALUES FROM (100) TO (MAXVALUE) ON SHARD s2")
            admin.execute("CREATE TABLE t (id bigint PRIMARY KEY, v int) SHARD BY m (id)")
            admin.execute("INSERT INTO t VALUES (7, 0), (700, 0)")
        states(world)
        adoption_by_search_path(world)
    finally:
        world.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
