#!/usr/bin/python3
"""SQL, REST and the command line of one running router over real PostgreSQL. argv[1] is the program."""
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, READER, READER_PASSWORD, psycopg, wait_until  # noqa: E402

house = None


def setUpModule():
    global house
    house = House(PROGRAM, shards=3)
    for number in (1, 2):
        with house.shard(number) as connection:
            connection.execute("CREATE TABLE orders (tenant bigint NOT NULL, id bigint, PRIMARY KEY (tenant, id));"
                               "CREATE TABLE plans (name text PRIMARY KEY)")


def tearDownModule():
    house.close()


class Faces(unittest.TestCase):
    maxDiff = None

    def ok(self, answer, status=200):
        self.assertEqual(answer.status, status, answer.text)
        return answer.json if answer.text else None

    def problem(self, answer, status, sqlstate=None):
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        body = answer.json
        self.assertEqual(body["status"], status)
        self.assertEqual(body["type"], "urn:kintsugi:error:" + body["sqlstate"])
        self.assertTrue(body["detail"] and body["title"] and body["hint"])
        self.assertNotEqual(body["title"], "Something is wrong in Kintsugi")
        if sqlstate:
            self.assertEqual(body["sqlstate"], sqlstate, body)
        return body

    def refused(self, sql, sqlstate, connection=None, pattern="."):
        with self.assertRaises(psycopg.Error) as caught:
            (connection or self.admin).execute(sql)
        self.assertEqual(caught.exception.sqlstate, sqlstate, caught.exception)
        self.assertRegex(str(caught.exception), pattern)

    @property
    def admin(self):
        if not hasattr(Faces, "_admin"):
            Faces._admin = house.sql()
        return Faces._admin

    # The tests are one story, told in the order of their names.

    def test_01_the_first_shard_through_rest(self):
        self.assertEqual(stat.S_IMODE(os.stat(house.token_file).st_mode), 0o600)
        self.assertEqual(self.ok(house.rest("GET", "/v1/shards")), {"items": [], "next": None})
        made = self.ok(house.rest("POST", "/v1/shards", {"name": "s1", "dsn": house.dsn(1)}), 201)
        self.assertEqual((made["name"], made["state"], made["home"]), ("s1", "online", True))
        self.assertNotIn("app-secret", str(made))
        again = self.ok(house.rest("POST", "/v1/shards", {"name": "s1", "dsn": house.dsn(1)}), 200)
        self.assertEqual(again["name"], "s1")
        self.problem(house.rest("POST", "/v1/shards", {"name": "s1", "dsn": house.dsn(2)}), 409, "42710")
        self.problem(house.rest("POST", "/v1/shards", {"name": "s9", "dsn": house.dsn(1)}), 409, "55000")

    def test_02_sql_makes_shards_maps_and_shardlets(self):
        run = self.admin.execute
        run(f"CREATE SHARD s2 DSN '{house.dsn(2)}'")
        run(f"CREATE SHARD IF NOT EXISTS s2 DSN '{house.dsn(2)}'")
        self.refused(f"CREATE SHARD s2 DSN '{house.dsn(2)}'", "42710")
        self.refused("CREATE SHARD s3 DSN 'host=127.0.0.1 port=1 dbname=x'", "KG005", pattern='shard "s3"')
        self.refused("CREATE SHARD s3 DSN 'colour=red'", "22023", pattern="invalid connection option")
        run("CREATE SHARD MAP tenants BY RANGE (bigint)")
        run("CREATE SHARDLET a OF tenants FOR VALUES FROM (MINVALUE) TO (1000) ON SHARD s1")
        run("CREATE SHARDLET b OF tenants FOR VALUES FROM (1000) TO (MAXVALUE) ON SHARD s2")
        self.refused("CREATE SHARDLET c OF tenants FOR VALUES FROM (5) TO (10) ON SHARD s1", "42P17", pattern='"a"')
        self.refused("CREATE SHARDLET c OF nowhere FOR VALUES FROM (5) TO (10) ON SHARD s1", "42704")
        self.refused("CREATE SHARDLET c OF tenants FOR VALUES FROM ('x') TO (10) ON SHARD s1", "22P02")
        self.assertEqual(run("SHOW SHARDLETS OF tenants").fetchall(),
                         [("a", "tenants", "MINVALUE", "1000", None, "s1", "online"),
                          ("b", "tenants", "1000", "MAXVALUE", None, "s2", "online")])
        cursor = run("SHOW SHARDS")
        self.assertEqual([column.name for column in cursor.description], ["name", "dsn", "state", "home", "entries"])
        self.assertEqual([row[0] for row in cursor.fetchall()], ["s1", "s2"])
        run("CREATE SHARD MAP regions BY LIST (text)")
        run("CREATE SHARDLET eu OF regions FOR VALUES IN ('de', 'fr') ON SHARD s2")
        run("CREATE SHARD MAP users BY HASH (uuid) SHARDLETS 8 ON SHARDS (s1, s2)")
        self.assertEqual([row[:4] for row in run("SHOW SHARD MAPS").fetchall()],
                         [("regions", "list", "text", 1), ("tenants", "range", "bigint", 2), ("users", "hash", "uuid", 8)])
        run("ALTER SHARDLET eu SET READ ONLY")
        run("ALTER SHARDLET eu RENAME TO europe")
        self.assertEqual(run("SHOW SHARDLETS OF regions").fetchall(),
                         [("europe", "regions", None, None, "'de', 'fr'", "s2", "read only")])
        run("DROP SHARD MAP users")
        run("DROP SHARD MAP IF EXISTS users")
        self.refused("DROP SHARD MAP users", "42704")
        self.refused("DROP SHARD s2", "2BP01")

    def test_03_tables_are_adopted(self):
        with house.shard(1) as connection:
            connection.execute("INSERT INTO orders VALUES (1, 1), (2000, 1)")
        self.refused("ALTER TABLE orders SHARD BY tenants (tenant)", "55000", pattern="2000")
        with house.shard(1) as connection:
            connection.execute("DELETE FROM orders WHERE tenant = 2000")
        for statement, code, meant in (("ALTER TABLE ordrs SHARD BY tenants (tenant)", "42P01", "public.orders"),
                                       ("ALTER TABLE orders SHARD BY tenants (tennant)", "42703", "tenant"),
                                       ("ALTER TABLE plan REPLICATED", "42P01", "public.plans")):
            with self.assertRaises(psycopg.Error, msg=statement) as refused:
                self.admin.execute(statement)
            self.assertEqual((refused.exception.sqlstate, refused.exception.diag.message_hint), (code, f'Did you mean "{meant}"?'))
        # No shard has to have a table of a map without shardlets, but one must.
        self.admin.execute("CREATE SHARD MAP nothing BY RANGE (bigint)")
        self.refused("ALTER TABLE ordrs SHARD BY nothing (tenant)", "42P01")
        self.admin.execute("DROP SHARD MAP nothing")
        self.admin.execute("ALTER TABLE orders SHARD BY tenants (tenant)")
        self.admin.execute("ALTER TABLE plans REPLICATED")
        self.assertEqual(self.admin.execute("SHOW SHARDED TABLES").fetchall(),
                         [("public.orders", "sharded", "tenants", "tenant"), ("public.plans", "replicated", None, None)])
        self.assertEqual(self.ok(house.rest("GET", "/v1/tables"))["items"],
                         [{"name": "public.orders", "map": "tenants", "key": ["tenant"]},
                          {"name": "public.plans", "replicated": True}])
        self.refused("DROP SHARD MAP tenants", "2BP01")
        self.refused("DROP SHARDLET a", "55000", pattern="rows")

    def test_04_only_admins_change_and_all_may_look(self):
        with house.sql(READER, READER_PASSWORD) as reader:
            self.assertEqual(len(reader.execute("SHOW SHARDS").fetchall()), 2)
            for sql in ("CREATE SHARD MAP m BY RANGE (int)", "DROP SHARD s2", "ALTER SHARDLET a SET OFFLINE",
                        "MOVE SHARDLET a TO SHARD s2", "ALTER TABLE plans SHARD BY tenants (name)", "CANCEL JOB 1"):
                self.refused(sql, "42501", reader)
        self.assertNotIn("app-secret", str(self.admin.execute("SHOW SHARDS").fetchall()))

    def test_05_sql_in_transactions_and_in_one_message(self):
        with house.sql() as connection:
            connection.autocommit = False
            connection.execute("SELECT 1")
            self.refused("CREATE SHARD MAP x BY RANGE (int)", "25001", connection)
            connection.rollback()
        self.admin.execute("CREATE SHARD MAP x BY RANGE (int); DROP SHARD MAP x")
        names = [row[0] for row in self.admin.execute("SHOW SHARD MAPS").fetchall()]
        self.assertEqual(names, ["regions", "tenants"])

    def test_06_rest_pages_filters_and_says_the_epoch(self):
        for i in range(5):
            self.ok(house.rest("POST", "/v1/maps/regions/shardlets",
                               {"name": f"r{i}", "values": [f"x{i}", f"y{i}"], "shard": "s1"}), 201)
        seen, after = [], ""
        while after is not None:
            page = self.ok(house.rest("GET", f"/v1/maps/regions/shardlets?limit=2&after={after}"))
            self.assertLessEqual(len(page["items"]), 2)
            seen += [item["name"] for item in page["items"]]
            after = page["next"]
        self.assertEqual(seen, ["europe", "r0", "r1", "r2", "r3", "r4"])
        only = self.ok(house.rest("GET", "/v1/maps/regions/shardlets?shard=s2"))
        self.assertEqual([item["name"] for item in only["items"]], ["europe"])
        self.problem(house.rest("GET", "/v1/maps/regions/shardlets?limit=0"), 400)
        long = self.problem(house.rest("POST", "/v1/maps", {"name": "ä" * 5000, "kind": "range", "key": ["bigint"]}), 400, "42622")
        self.assertEqual(long["detail"], 'the name "' + "ä" * 31 + '..." is longer than 63 bytes')
        self.problem(house.rest("GET", "/v1/maps/regions/shardlets?after=zz"), 400)
        self.problem(house.rest("GET", "/v1/maps/regions/shardlets?shard=none"), 404)

        answer = house.rest("GET", "/v1/maps/tenants")
        tag = answer.headers["ETag"]
        self.assertEqual(tag, f'"{self.ok(house.rest("GET", "/v1/epoch"))["epoch"]}"')
        self.assertEqual(house.rest("GET", "/v1/maps/tenants", headers={"If-None-Match": tag}).status, 304)
        path = "/v1/maps/regions/shardlets/r0"
        changed = house.rest("PATCH", path, {"state": "offline"}, headers={"If-Match": tag})
        self.assertEqual(self.ok(changed)["state"], "offline")
        self.problem(house.rest("PATCH", path, {"state": "online"}, headers={"If-Match": tag}), 412, "KG007")
        self.problem(house.rest("PATCH", path, {"state": "online"}, headers={"If-Match": "old"}), 412)
        self.assertEqual(self.ok(house.rest("GET", path))["state"], "offline")
        self.ok(house.rest("PATCH", path, {"state": "online"}, headers={"If-Match": changed.headers["ETag"]}))
        for i in range(5):
            self.assertEqual(house.rest("DELETE", f"/v1/maps/regions/shardlets/r{i}").status, 204)

    def test_07_lookup(self):
        self.assertEqual(self.ok(house.rest("GET", "/v1/maps/tenants/lookup?key=42")),
                         {"map": "tenants", "key": [42], "shardlet": "a", "shard": "s1", "state": "online"})
        self.assertEqual(self.ok(house.rest("GET", "/v1/maps/tenants/lookup?key=1000"))["shard"], "s2")
        self.problem(house.rest("GET", "/v1/maps/regions/lookup?key=jp"), 404, "KG001")
        self.problem(house.rest("GET", "/v1/maps/tenants/lookup?key=many"), 400, "22P02")
        self.problem(house.rest("GET", "/v1/maps/tenants/lookup"), 400)

    def test_08_a_post_without_a_length_has_no_body(self):
        """As curl -X POST sends it."""
        begun = time.monotonic()
        said = house.talk(f"POST /v1/recovery/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n"
                          "Connection: close\r\n\r\n")
        self.assertTrue(said.startswith("HTTP/1.1 200"), said)
        self.assertLess(time.monotonic() - begun, 8)

    def test_08_a_token_is_needed_and_bodies_are_bounded(self):
        for token in (None, "wrong", "x" * 64):
            self.problem(house.rest("GET", "/v1/shards", token=token), 401, "28000")
            self.problem(house.rest("DELETE", "/v1/shards/s2", token=token), 401)
        self.problem(house.rest("GET", "/v1/nothing"), 404)
        answer = house.rest("PUT", "/v1/shards", {})
        self.problem(answer, 405)
        self.assertEqual(answer.headers["Allow"], "GET, HEAD, POST, OPTIONS")
        for head in ("Content-Length: 2000000", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked"):
            said = house.talk(f"POST /v1/shards HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n{head}\r\n\r\n")
            self.assertRegex(said, r"^HTTP/1.1 41[13] ", said)
            self.assertIn("application/problem+json", said)
            self.assertNotIn("Something is wrong in Kintsugi", said)
        said = house.talk(f"GET /{'a' * 100000} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertRegex(said, r"^HTTP/1.1 414 ")
        self.assertIn("The request's path is too long", said)
        self.problem(house.rest("POST", "/v1/shards", raw=b"name=s", headers={"Content-Type": "text/csv"}), 415)

    def test_09_every_operation_with_hostile_bodies_and_names(self):
        document = self.ok(house.rest("GET", "/openapi.json", token=None))
        before = self.ok(house.rest("GET", "/v1/epoch"))["epoch"]
        hostile = [b"", b"{", b"[]", b"null", b"1e999", b'{"a":' * 5000, b"[" * 100000, b"\xff\xfe", b'{"name": "\\u0000"}',
                   b'{"name": 1, "dsn": {}, "kind": [], "key": 7, "from": {}, "to": null, "shard": true}',
                   b'{"name": "' + b"n" * 100000 + b'"}', b'{"name": "x", "unknown": 1}', b'{"type": "move"}',
                   b'{"type": "explode"}', b'{"type":"split","shardlet":"a","at":[{}],"into":[1,2]}',
                   b'{"name": "a\'; DROP TABLE orders; --", "kind": "range", "key": ["bigint\'; DROP"]}',
                   b'{"state": "held"}', b'{"rows": "yes"}', b'{"from": "everywhere"}', b'{"dsns": []}', b'{"dsns": ["x=y"]}']
        names = ["none", "%00", "a%2Fb", "%ff%fe", "x" * 5000, "%27%3B--", "..", "%2e%2e"]
        calls = 0
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                # An operation without a body would do what it says; those with names are given wrong ones.
                if "requestBody" not in operation and "{" not in path and method != "get":
                    continue
                spots = names if "{" in path else [""]
                bodies = hostile if "requestBody" in operation else [None]
                for name in spots[:1] if len(bodies) > 1 else spots:
                    for body in bodies:
                        if "recovery" in path and body == b"":
                            continue
                        url = re.sub(r"\{\w+\}", name, path) + ("?key=%00&limit=x" if method == "get" else "")
                        answer = house.rest(method.upper(), url, raw=body)
                        calls += 1
                        self.assertLess(answer.status, 500, (method, url, body and body[:80], answer.text))
                        if answer.status >= 400:
                            self.problem(answer, answer.status)
        self.assertGreater(calls, 200)
        self.assertEqual(self.ok(house.rest("GET", "/v1/epoch"))["epoch"], before, "nothing of that changed the map")
        self.assertIsNone(house.process.poll())

    def test_10_every_operation_answers_as_it_is_described(self):
        document = self.ok(house.rest("GET", "/openapi.json", token=None))
        schemas = document["components"]["schemas"]
        called = set()

        def call(method, pattern, path, body=None, status=None, raw=None):
            operation = document["paths"][pattern][method]
            answer = house.rest(method.upper(), path, body, raw=raw,
                                headers={"Content-Type": "text/plain"} if raw is not None else None)
            wanted = [int(code) for code in operation["responses"] if code.startswith("2")]
            self.assertIn(answer.status, [status] if status else wanted, (method, path, answer.text))
            called.add((method, pattern))
            if answer.status >= 300 or answer.status == 204 or "application/json" not in answer.headers["Content-Type"]:
                return answer
            schema = operation["responses"][str(wanted[0])]["content"]["application/json"]["schema"]
            items = [answer.json]
            if pattern == "/openapi.json":
                return answer
            if "$ref" not in schema:
                items, schema = answer.json["items"], schema["properties"]["items"]["items"]
            described = schemas[schema["$ref"].split("/")[-1]]
            for item in items:
                for member in described["required"]:
                    self.assertIn(member, item, (pattern, item))
                for member in item:
                    self.assertIn(member, {**described["properties"], "notices": 0, "target": 0, "history": 0, "router": 0,
                                           "parent": 0, "children": 0, "canceling": 0, "shard": 0, "map": 0, "mode": 0,
                                           "shardlet": 0, "shardlets": 0, "to": 0, "at": 0, "into": 0, "move": 0,
                                           "max_rate": 0} if "job" in pattern else {**described["properties"], "notices": 0},
                                  (pattern, item))
            return answer

        one = "/v1/shards/{shard}"
        call("get", "/v1/shards", "/v1/shards")
        call("post", "/v1/shards", "/v1/shards", {"name": "t", "dsn": house.dsn(3)})
        # There are tables already: a job gives them to the new shard first.
        wait_until("the new shard", lambda: house.rest("GET", "/v1/shards/t").json["state"] == "online", 30)
        with house.shard(3) as connection:
            self.assertEqual(connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone(), (2,))
        call("get", one, "/v1/shards/t")
        call("patch", one, "/v1/shards/t", {"state": "draining"})
        call("patch", one, "/v1/shards/t", {"dsn": house.dsn(3), "state": "online"})
        call("get", "/v1/slow", "/v1/slow")
        call("post", "/v1/explain", "/v1/explain", {"statement": "SELECT 1"})
        call("post", "/v1/users", "/v1/users", {"name": "someone", "role": "viewer"})
        call("get", "/v1/users", "/v1/users")
        call("delete", "/v1/users/{user}", "/v1/users/someone")
        call("get", "/v1/maps", "/v1/maps")
        call("post", "/v1/maps", "/v1/maps", {"name": "m", "kind": "list", "key": ["text", "int"]})
        call("get", "/v1/maps/{map}", "/v1/maps/m")
        shardlets, shardlet = "/v1/maps/{map}/shardlets", "/v1/maps/{map}/shardlets/{shardlet}"
        call("post", shardlets, "/v1/maps/m/shardlets", {"name": "k", "values": [["a", 1], ["b", 2]], "shard": "t"})
        call("post", shardlets, "/v1/maps/m/shardlets", {"name": "k", "values": [["b", "2"], ["a", 1]], "shard": "t"}, 200)
        call("post", shardlets, "/v1/maps/m/shardlets", {"name": "k", "values": [["b", 3]], "shard": "t"}, 409)
        call("get", shardlets, "/v1/maps/m/shardlets")
        call("get", shardlet, "/v1/maps/m/shardlets/k")
        call("patch", shardlet, "/v1/maps/m/shardlets/k", {"state": "read only", "name": "kk"})
        self.assertEqual(call("get", "/v1/maps/{map}/lookup", "/v1/maps/m/lookup?key=b&key=2").json["key"], ["b", 2])
        call("delete", shardlet, "/v1/maps/m/shardlets/kk")
        call("delete", "/v1/maps/{map}", "/v1/maps/m")
        call("delete", one, "/v1/shards/t")
        call("get", "/v1/tables", "/v1/tables")
        call("get", "/v1/tables/{table}", "/v1/tables/orders")
        call("delete", "/v1/tables/{table}", "/v1/tables/plans")
        call("post", "/v1/tables", "/v1/tables", {"name": "plans", "replicated": True})
        for name in ("routers", "stats", "pools", "audit", "epoch", "jobs"):
            call("get", f"/v1/{name}", f"/v1/{name}")
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/"):
            call("get", path, path)
        call("post", "/v1/recovery/check", "/v1/recovery/check", {})
        call("post", "/v1/recovery/resolve", "/v1/recovery/resolve", {"from": "store", "dry_run": True})
        call("post", "/v1/recovery/rebuild", "/v1/recovery/rebuild", {"dsns": [house.dsn(1)]}, 409)
        file = call("get", "/v1/export", "/v1/export").text
        self.assertIn('"tenants"', file)
        call("post", "/v1/import", "/v1/import", raw=file.encode(), status=409)
        job = call("post", "/v1/jobs", "/v1/jobs", {"type": "split", "shardlet": "b", "at": [5000], "into": ["b1", "b2"]}).json
        path = f"/v1/jobs/{job['id']}"
        wait_until("the job", lambda: house.rest("GET", path).json["state"] in ("done", "failed"), 30)
        self.assertEqual(call("get", "/v1/jobs/{id}", path).json["state"], "done")
        events = call("get", "/v1/jobs/{id}/events", path + "/events").text
        self.assertRegex(events, r'^event: job\ndata: \{"id":\d+,.*"state":"done"')
        call("post", "/v1/jobs/{id}/cancel", path + "/cancel", status=409)
        call("post", "/v1/jobs/{id}/resume", path + "/resume", status=409)
        listed = {(method, path) for path, methods in document["paths"].items() for method in methods}
        self.assertEqual(listed - called, set(), "every operation of the description is called")

    def test_11_the_command_line(self):
        code, out, _ = house.cli("shard", "list")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^name +state +home +entries +dsn$")
        self.assertRegex(out, r"(?m)^s1 +online +yes ")
        self.assertNotIn("app-secret", out)
        self.assertEqual([item["name"] for item in house.cli_json("shard", "list")], ["s1", "s2"])
        self.assertEqual(house.cli("map", "create", "c", "--by", "hash", "--key", "bigint", "--shardlets", "4")[0], 0)
        code, out, _ = house.cli("map", "show", "c")
        self.assertEqual((code, out.count("c_")), (0, 4))
        self.assertEqual(house.cli_json("map", "show", "c")["shardlets"][0]["name"], "c_1")
        code, _, err = house.cli("map", "create", "c", "--by", "range", "--key", "bigint")
        self.assertEqual(code, 3)
        self.assertIn('"c"', err)
        code, _, err = house.cli("map", "drop", "c")
        self.assertEqual(code, 2)
        self.assertIn("--yes", err)
        self.assertEqual(house.cli("map", "drop", "c", "--yes")[0], 0)
        self.assertEqual(house.cli_json("lookup", "tenants", "42")["shard"], "s1")
        self.assertEqual(json.loads(house.cli("lookup", "--json", "tenants", "--", "-5")[1])["shard"], "s1")
        code, _, err = house.cli("lookup", "nowhere", "42")
        self.assertEqual((code, "nowhere" in err), (1, True))
        self.assertEqual(house.cli("shardlet", "set", "regions", "europe", "--state", "online")[0], 0)
        self.assertEqual(house.cli("table", "unshard", "plans", "--yes")[0], 0)
        self.assertEqual(house.cli("table", "replicate", "plans")[0], 0)
        code, out, err = house.cli("recover", "check")
        self.assertEqual((code, out), (0, "Store, shards and rows agree.\n"), err)
        self.assertEqual(house.cli("router", "list")[0], 0)
        self.assertIn("CREATE SHARD MAP", house.cli("audit")[1])
        self.assertEqual(house.cli("shard", "list", environment={"KINTSUGI_ADMIN": "http://127.0.0.1:1"})[0], 4)
        self.assertEqual(house.cli("shard", "list", environment={"KINTSUGI_TOKEN": "wrong"})[0], 1)
        code, _, err = house.cli("shard", "lst")
        self.assertEqual(code, 2)
        self.assertIn("did you mean list?", err)
        self.assertIn("kintsugi shard --help", err)
        for arguments in (("move", "b1", "--to", "s11"), ("map", "show", "tenant"), ("shardlet", "set", "regions", "europa", "--state", "online"),
                          ("table", "unshard", "public.plan", "--yes")):
            self.assertIn("Did you mean", house.cli(*arguments)[2])
        for path, meant in (("/v1/shards/s11", "s1"), ("/v1/maps/tenant", "tenants"), ("/v1/maps/regions/shardlets/europa", "europe"),
                            ("/v1/tables/plan", "public.plans")):
            self.assertEqual(self.problem(house.rest("GET", path), 404, "42704")["hint"], f'Did you mean "{meant}"?')
        for statement in ("SHOW SHARDLETS OF tenant", "MOVE SHARDLET b1 TO SHARD s11", "ALTER SHARDLET europa SET ONLINE", "DROP SHARD MAP region",
                          "CREATE TABLE t (tenant bigint) SHARD BY tenant (tenant)"):
            self.refused(statement, "42704", pattern="Did you mean")
        self.assertNotIn("Did you mean", self.problem(house.rest("GET", "/v1/shards/entirely-else"), 404)["hint"])
        code, out, _ = house.cli("shard", "add", "--help")
        self.assertEqual(code, 0)
        self.assertIn("DSN", out)
        code, out, _ = house.cli("map", "export")
        self.assertEqual((code, out), (0, house.rest("GET", "/v1/export").text))

    def test_11b_an_address_is_for_one_router(self):
        with tempfile.TemporaryDirectory() as data:
            second = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", f"127.0.0.1:{house.port}", "--admin", "127.0.0.1:0"],
                                    capture_output=True, text=True, timeout=120)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"cannot listen on 127.0.0.1:{house.port}: Address already in use", second.stderr)

    def test_12_jobs_from_every_face(self):
        code, out, err = house.cli("move", "b2", "--to", "s1")
        self.assertEqual(code, 0, err)
        self.assertIn("is done", out)
        self.assertEqual(house.cli_json("lookup", "tenants", "9000")["shard"], "s1")
        row = self.admin.execute("MOVE SHARDLET b2 TO SHARD s2 WITH (wait = true)").fetchone()
        self.assertEqual(row[1:4], ("move", "b2 to s2", "done"))
        self.assertEqual(house.cli_json("lookup", "tenants", "9000")["shard"], "s2")
        self.refused("MOVE SHARDLET nothing TO SHARD s2", "42704")
        self.refused("MOVE SHARDLET b2 TO SHARD s1 WITH (speed = 9)", "22023", pattern="speed")
        plan = self.admin.execute("DRAIN SHARD s2 WITH (dry_run = true)").fetchall()
        self.assertTrue(plan)
        self.assertEqual(house.cli("merge", "b1", "b2", "--into", "b")[0], 0)
        self.assertEqual(self.admin.execute("SHOW SHARDLETS OF tenants").fetchall()[1][0], "b")
        states = {row[3] for row in self.admin.execute("SHOW JOBS").fetchall()}
        self.assertEqual(states, {"done"})
        code, _, err = house.cli("move", "b", "--to", "nowhere")
        self.assertEqual((code, "nowhere" in err), (1, True))

    def test_12a_a_serial_column_is_a_sharding_key(self):
        """As Django and others make the table of tenants itself: id bigserial PRIMARY KEY."""
        for kind in ("bigserial", "serial8", "serial", "smallserial"):
            with house.sql() as connection:
                connection.execute("SET kintsugi.shard_new_tables = 'tenants(id)'")
                connection.execute(f"CREATE TABLE people (id {kind} PRIMARY KEY, name text)")
                ids = [connection.execute("INSERT INTO people (name) VALUES (%s) RETURNING id", [str(i)]).fetchone()[0] for i in range(3)]
                ids += [row[0] for row in connection.execute("INSERT INTO people (name) SELECT 'm' FROM generate_series(1, 5) RETURNING id")]
                self.assertEqual(len(set(ids)), 8, ids)
                self.assertEqual(connection.execute("SELECT count(*) FROM people").fetchone(), (8,))
                self.assertEqual(connection.execute("SELECT name FROM people WHERE id = %s", [ids[2]]).fetchone(), ("2",))
                self.assertEqual(self.ok(house.rest("GET", "/v1/tables/people"))["key"], ["id"])
                connection.execute("DROP TABLE people")

    def test_12b_copy_out_while_a_shardlet_moves_and_when_it_is_closed(self):
        self.admin.execute("CREATE TABLE papers (tenant bigint PRIMARY KEY, twice bigint GENERATED ALWAYS AS (tenant * 2) STORED, "
                           "note text) SHARD BY tenants (tenant)")
        self.admin.execute("INSERT INTO papers (tenant, note) SELECT g, repeat('n', 100) FROM generate_series(1, 20000) g")

        def copied(what, connection):
            with connection.cursor() as cursor, cursor.copy(f"COPY {what} TO STDOUT") as copy:
                return sorted(b"".join(bytes(piece) for piece in copy).splitlines())

        forms = ("papers", 'public.papers ("note" , tenant )')
        with house.sql() as connection:
            before = {form: copied(form, connection) for form in forms}
            self.assertEqual([len(lines) for lines in before.values()], [20000, 20000])
            times = 0
            for _ in range(2):
                there = house.cli_json("lookup", "tenants", "19999")["shard"]
                job = self.ok(house.rest("POST", "/v1/jobs", {"type": "move", "shardlet": "b", "to": "s2" if there == "s1" else "s1"}), 202)
                state = ""
                while state not in ("done", "failed", "canceled"):
                    state = house.rest("GET", f"/v1/jobs/{job['id']}").json["state"]
                    for form in forms:
                        self.assertEqual(copied(form, connection), before[form], state)
                        times += 1
                self.assertEqual(state, "done")
                history = house.rest("GET", f"/v1/jobs/{job['id']}").json["history"]
                self.assertEqual(history, sorted(history, key=lambda event: event["at"]))
            self.assertGreater(times, 4)
            with connection.transaction(force_rollback=True):
                self.refused("VACUUM papers", "25001", connection, "^VACUUM cannot run inside a transaction block")
            with connection.transaction(force_rollback=True):
                self.refused("/* one */ create index CONCURRENTLY on papers (note)", "25001", connection,
                             "^CREATE INDEX CONCURRENTLY cannot run inside a transaction block")
            self.admin.execute("ALTER SHARDLET b SET READ ONLY")
            self.assertEqual(copied("papers", connection), before["papers"])
            self.admin.execute("ALTER SHARDLET b SET OFFLINE")
            self.refused("COPY papers TO STDOUT", "KG002", connection)
            self.admin.execute("ALTER SHARDLET b SET ONLINE")
        self.admin.execute("DROP TABLE papers")

    def test_12c_a_database_that_was_added_by_mistake_can_be_removed(self):
        with house.shard(3) as connection:
            connection.execute("DROP TABLE IF EXISTS orders, plans")
            connection.execute("CREATE TABLE orders (something text); INSERT INTO orders VALUES ('else')")
            job = self.ok(house.rest("POST", "/v1/shards", {"name": "mistake", "dsn": house.dsn(3)}), 201)["notices"][0]
            self.assertIn("mistake", job)
            wait_until("the job's end", lambda: "failed" in [row[3] for row in self.admin.execute("SHOW JOBS").fetchall()], 60)
            self.assertEqual(self.ok(house.rest("GET", "/v1/shards/mistake"))["state"], "preparing")
            code, _, err = house.cli("shard", "remove", "mistake", "--yes")
            self.assertEqual(code, 0, err)
            self.assertEqual(connection.execute("SELECT * FROM orders").fetchall(), [("else",)])
            self.assertEqual(connection.execute("SELECT to_regnamespace('kintsugi')").fetchone(), (None,))
            connection.execute("DROP TABLE orders")

    def test_13_audit_health_and_metrics(self):
        trail = self.ok(house.rest("GET", "/v1/audit?limit=1000"))["items"]
        whats = [entry["what"] for entry in trail]
        self.assertIn("ALTER SHARDLET eu SET READ ONLY", whats)
        self.assertNotIn("app-secret", str(trail))
        refused = next(entry for entry in trail if entry["what"].startswith("CREATE SHARDLET c OF tenants"))
        self.assertEqual((refused["who"], refused["face"]), ("app", "sql"))
        self.assertRegex(refused["result"], "^(22P02|42P17)")
        self.assertTrue(any(entry["face"] == "rest" and entry["result"] == "done" for entry in trail))
        self.assertEqual(house.rest("GET", "/healthz").status, 200)
        console = house.rest("GET", "/")
        self.assertIn("<title>Kintsugi</title>", console.text)
        self.assertIn("frame-ancestors 'none'", console.headers["Content-Security-Policy"])
        self.assertNotIn(house.token, console.text)
        ready = self.ok(house.rest("GET", "/readyz"))
        self.assertEqual((ready["ready"], ready["store"], ready["lease"]), (True, "reachable", "valid"))
        metrics = house.rest("GET", "/metrics").text
        self.assertRegex(metrics, r"(?m)^kintsugi_epoch \d+$")
        self.assertRegex(metrics, r'(?m)^kintsugi_shardlets\{map="tenants"\} 2$')
        self.assertRegex(metrics, r'(?m)^kintsugi_pool_connections\{shard="s1",role="app"\} \d+$')
        for line in metrics.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) kintsugi_\w+ .+|kintsugi_\w+(\{[^}]*\})? -?\d+(\.\d+)?)$")
        self.assertNotIn("app-secret", pathlib.Path(house.log).read_text(errors="replace"))

    def test_14_everything_is_there_after_a_kill_and_a_restart(self):
        before = self.admin.execute("SHOW SHARDLETS").fetchall()
        token = house.token
        house.stop(9)
        house.start()
        self.assertEqual(house.token, token)
        with house.sql() as connection:
            self.assertEqual(connection.execute("SHOW SHARDLETS").fetchall(), before)


if __name__ == "__main__":
    unittest.main()
