#!/usr/bin/python3
"""The map store is lost while the router and its shards are there: routing goes on, nothing is changed by mistake, and the store
is made anew from the shards or from a file. argv[1] is the program."""
import json
import os
import pathlib
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, psycopg, wait_until  # noqa: E402

house = None


def setUpModule():
    global house
    house = House(PROGRAM, shards=3)
    for n in (1, 2, 3):
        assert house.cli("shard", "add", f"s{n}", house.dsn(n))[0] == 0
    for words in (("map", "create", "tenants", "--by", "range", "--key", "bigint"), ("map", "create", "docs", "--by", "hash", "--key", "uuid", "--shardlets", "4"),
                  ("shardlet", "add", "tenants", "a", "--from", "MINVALUE", "--to", "1000", "--on", "s2"),
                  ("shardlet", "add", "tenants", "b", "--from", "1000", "--to", "MAXVALUE", "--on", "s3"),
                  ("map", "create", "regions", "--by", "list", "--key", "text,int"), ("shard", "set", "s3", "--state", "draining")):
        code, _, err = house.cli(*words)
        assert code == 0, err
    with house.sql() as sql:
        sql.execute("CREATE SHARDLET odd OF regions FOR VALUES IN (('MINVALUE', 1), ('', -1)) ON SHARD s1")
        sql.execute("CREATE TABLE orders (tenant_id bigint, id bigserial, PRIMARY KEY (tenant_id, id)) SHARD BY tenants (tenant_id)")
        sql.execute("CREATE TABLE plans (id int PRIMARY KEY) REPLICATED")
        sql.execute("INSERT INTO orders SELECT g FROM generate_series(1, 2000) g")
        sql.execute("ALTER SHARDLET b SET READ ONLY")


def tearDownModule():
    house.close()


def lose(*more):
    """The store's files are deleted, and others of the router with them."""
    house.stop()
    for name in os.listdir(house.data):
        if name.startswith(("map.db", *more)):
            os.remove(os.path.join(house.data, name))
    house.start()


def exported():
    return house.rest("GET", "/v1/export").text.splitlines()


def without_identities(lines):
    """All of the file that is the map's: whose store it is, its epoch, and the numbers that shards are told apart by are not."""
    objects = [json.loads(line) for line in lines]
    return [{k: v for k, v in each.items() if k not in ("store", "epoch", "identity")} for each in objects]


class LostStore(unittest.TestCase):
    maxDiff = None

    # The tests are one story, told in the order of their names.

    def test_1_routing_goes_on_and_changes_are_refused(self):
        type(self).before = exported()
        lose()
        with house.sql() as sql:
            self.assertEqual(sql.execute("SELECT count(*) FROM orders").fetchone(), (2000,))
            sql.execute("INSERT INTO orders (tenant_id) VALUES (7)")
            sql.execute("DELETE FROM orders WHERE tenant_id = 7 AND id = (SELECT max(id) FROM orders WHERE tenant_id = 7)")
            for statement in ("CREATE SHARD MAP more BY RANGE (int)", "ALTER SHARDLET a SET OFFLINE", "MOVE SHARDLET a TO SHARD s1", "DROP SHARD MAP docs",
                              f"CREATE SHARD s9 DSN '{house.dsn(1)}'"):
                with self.subTest(statement), self.assertRaises(psycopg.Error) as caught:
                    sql.execute(statement)
                self.assertEqual(caught.exception.sqlstate, "KG006", caught.exception)
                self.assertIn("recover rebuild", caught.exception.diag.message_hint)
            self.assertEqual(len(sql.execute("SHOW SHARDLETS OF tenants").fetchall()), 2)
        self.assertIn("the map store is empty, and not the one that this router knew", pathlib.Path(house.log).read_text())
        ready = house.rest("GET", "/readyz").json
        self.assertEqual((ready["ready"], ready["store"], ready["shards"]), (True, "away", 3))

    def test_2_the_store_is_rebuilt_from_the_shards(self):
        code, out, err = house.cli("recover", "rebuild", house.dsn(3), house.dsn(1), house.dsn(2), "--yes")
        self.assertEqual(code, 0, err)
        wait_until("the router's map", lambda: house.rest("GET", "/readyz").json["store"] == "reachable", 10)
        self.assertEqual(house.cli("recover", "check"), (0, "Store, shards and rows agree.\n", ""))
        told = lambda lines: sorted(({k: v for k, v in each.items() if k != "id"} for each in without_identities(lines)[1:]), key=str)  # noqa: E731
        self.assertEqual(told(exported()), told(self.before))
        with house.sql() as sql:
            self.assertEqual(sql.execute("SELECT count(*) FROM orders").fetchone(), (2000,))
            sql.execute("ALTER SHARDLET a SET ONLINE")
        self.assertEqual(house.cli("recover", "rebuild", house.dsn(1), "--yes")[0], 3)

    def test_3_or_it_is_filled_from_a_file(self):
        before = exported()
        file = os.path.join(house.root, "map.jsonl")
        self.assertEqual(house.cli("map", "export", file)[0], 0)
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600, "it holds passwords")
        lose("replica")
        with house.sql() as sql, self.assertRaises(psycopg.Error) as caught:
            sql.execute("SELECT 1")
        self.assertEqual(caught.exception.sqlstate, "KG005")
        # Its databases are another store's. Whoever knows that it is gone says so, there.
        code, _, err = house.cli("map", "import", file)
        self.assertEqual(code, 3, err)
        self.assertIn("recover rebuild", err)
        self.assertEqual(house.rest("GET", "/v1/shards").json["items"], [])
        for n in (1, 2, 3):
            with house.shard(n) as shard:
                shard.execute("DROP SCHEMA kintsugi CASCADE")
        code, _, err = house.cli("map", "import", file)
        self.assertEqual(code, 0, err)
        self.assertEqual(without_identities(exported()), without_identities(before))
        self.assertEqual(house.cli("recover", "check"), (0, "Store, shards and rows agree.\n", ""))
        with house.sql() as sql:
            self.assertEqual(sql.execute("SELECT count(*) FROM orders").fetchone(), (2000,))


if __name__ == "__main__":
    unittest.main(verbosity=1)
