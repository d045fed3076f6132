#!/usr/bin/python3
"""REST against its own description: every operation of /openapi.json with a valid body, with hostile ones, and with
every role. argv[1] is the program."""
import ctypes
import hashlib
import json
import pathlib
import re
import ssl
import stat
import subprocess
import os
import signal
import sys
import unittest
import urllib.request

import jsonschema

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, wait_until  # noqa: E402

ROLES = ["viewer", "operator", "admin"]
# OpenAPI's own description of itself, Debian's openapi-specification.
OPENAPI_SCHEMA = pathlib.Path("/usr/share/openapi-specification/schemas/v3.0/schema.json")
house, document, tokens = None, None, {}


def setUpModule():
    global house, document
    house = House(PROGRAM, shards=3)
    for number in (1, 2):
        with house.shard(number) as connection:
            connection.execute("CREATE TABLE orders (tenant bigint NOT NULL, id bigint, PRIMARY KEY (tenant, id));"
                               "CREATE TABLE plans (name text PRIMARY KEY)")
    document = house.rest("GET", "/openapi.json").json
    tokens["admin"] = house.token


def tearDownModule():
    house.close()


def operations():
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def schema_of(operation):
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return None if body is None else resolved(body["schema"])


def resolved(schema):
    reference = schema.get("$ref")
    return document["components"]["schemas"][reference.rsplit("/", 1)[1]] if reference else schema


class Operations(unittest.TestCase):
    maxDiff = None
    called = set()

    def fits(self, value, schema, where):
        """As far as this document goes: type, required, enum, items, properties."""
        schema = resolved(schema)
        if value is None and schema.get("nullable"):
            return
        types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None), "number": (int, float)}
        if "type" in schema:
            allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            self.assertTrue(any(isinstance(value, types[t]) and not (t == "integer" and isinstance(value, bool)) for t in allowed),
                            f"{where}: {value!r} is no {allowed}")
        if "enum" in schema:
            self.assertIn(value, schema["enum"], where)
        if isinstance(value, dict):
            for name in schema.get("required", []):
                self.assertIn(name, value, where)
            for name, inner in schema.get("properties", {}).items():
                if name in value and value[name] is not None:
                    self.fits(value[name], inner, f"{where}.{name}")
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                self.fits(item, schema["items"], f"{where}[{i}]")

    def problem(self, answer, where):
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json", (where, answer.text[:300]))
        self.fits(answer.json, {"$ref": "#/components/schemas/problem"}, where)
        self.assertEqual(answer.json["status"], answer.status)
        self.assertRegex(answer.json["type"], "^urn:kintsugi:error:[0-9A-Z]{5}$")
        for secret in ("app-secret", house.token):
            self.assertNotIn(secret, answer.text)

    def valid(self, method, path, body=None, raw=None, query="", **values):
        operation = document["paths"][path][method.lower()]
        Operations.called.add((method, path))
        at = re.sub(r"\{(\w+)\}", lambda m: str(values[m[1]]), path) + query
        headers = {"Content-Type": "text/plain"} if raw is not None else None
        if method == "POST" and operation["operationId"] == "addUser":
            answer = house.rest(method, at, body)
        else:
            answer = house.rest(method, at, body, raw=raw, headers=headers)
        # The epoch is there where the description says so, and nowhere else.
        described = next(answers for code, answers in operation["responses"].items() if code.startswith("2"))
        self.assertEqual("ETag" in answer.headers, "ETag" in described.get("headers", {}), (method, path))
        wanted = next(code for code in operation["responses"] if code.startswith("2"))
        self.assertEqual(str(answer.status), wanted, (method, at, answer.text))
        content = operation["responses"][wanted].get("content", {})
        if "application/json" in content:
            self.fits(answer.json, content["application/json"]["schema"], f"{method} {path}")
            return answer.json
        return answer.text

    # The tests are one story, told in the order of their names.

    def test_0_the_description_is_valid_openapi(self):
        schema = json.loads(OPENAPI_SCHEMA.read_text())
        validator = jsonschema.validators.validator_for(schema)(schema)
        self.assertEqual([f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(document)], [])
        self.assertTrue(document["openapi"].startswith("3.0."))
        # What that schema cannot say: names are used once, and what is referred to is there and nothing else.
        ids = [operation["operationId"] for _, _, operation in operations()]
        self.assertEqual(len(ids), len(set(ids)))
        used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
        self.assertEqual(used, set(document["components"]["schemas"]))
        for _, path, operation in operations():
            self.assertEqual(sorted(re.findall(r"\{(\w+)\}", path)), sorted(p["name"] for p in operation["parameters"] if p["in"] == "path"))
        for name, schema in document["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(schema)
            if "properties" in schema:
                self.assertLessEqual(set(schema.get("required", [])), set(schema["properties"]), name)
        # All of CONTRACT 6 is in it.
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/v1/maps/{map}/lookup", "/v1/jobs/{id}/events", "/v1/recovery/check"):
            self.assertIn(path, document["paths"])

    def test_1_every_operation_with_a_valid_body(self):
        valid = self.valid
        for n in (1, 2):
            valid("POST", "/v1/shards", {"name": f"s{n}", "dsn": house.dsn(n)})
        valid("GET", "/v1/shards")
        valid("GET", "/v1/shards/{shard}", shard="s1")
        valid("PATCH", "/v1/shards/{shard}", {"state": "online"}, shard="s2")
        valid("POST", "/v1/maps", {"name": "tenants", "kind": "range", "key": ["bigint"]})
        valid("POST", "/v1/maps", {"name": "spare", "kind": "hash", "key": ["uuid"], "shardlets": 4, "shards": ["s1", "s2"]})
        valid("GET", "/v1/maps")
        valid("GET", "/v1/maps/{map}", map="spare")
        valid("DELETE", "/v1/maps/{map}", map="spare")
        shardlets = "/v1/maps/{map}/shardlets"
        valid("POST", shardlets, {"name": "a", "from": ["MINVALUE"], "to": [1000], "shard": "s1"}, map="tenants")
        valid("POST", shardlets, {"name": "b", "from": [1000], "to": ["MAXVALUE"], "shard": "s2"}, map="tenants")
        valid("GET", shardlets, query="?limit=1&shard=s1", map="tenants")
        one = shardlets + "/{shardlet}"
        valid("GET", one, map="tenants", shardlet="a")
        valid("PATCH", one, {"state": "read only"}, map="tenants", shardlet="a")
        valid("PATCH", one, {"state": "online"}, map="tenants", shardlet="a")
        valid("GET", "/v1/maps/{map}/lookup", query="?key=42", map="tenants")
        valid("POST", "/v1/tables", {"name": "public.orders", "map": "tenants", "key": ["tenant"]})
        valid("POST", "/v1/tables", {"name": "public.plans", "replicated": True})
        valid("GET", "/v1/tables", query="?map=tenants")
        valid("GET", "/v1/tables/{table}", table="public.orders")
        valid("DELETE", "/v1/tables/{table}", table="public.plans")
        valid("POST", "/v1/tables", {"name": "public.plans", "replicated": True})
        job = valid("POST", "/v1/jobs", {"type": "split", "shardlet": "a", "at": [500], "into": ["l", "r"]})
        wait_until("the split", lambda: house.rest("GET", f"/v1/jobs/{job['id']}").json["state"] == "done", 60)
        valid("GET", "/v1/jobs")
        valid("GET", "/v1/jobs/{id}", id=job["id"])
        self.assertIn("event: job", valid("GET", "/v1/jobs/{id}/events", id=job["id"]))
        with house.shard(1) as shard:
            shard.autocommit = False
            shard.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
            job = valid("POST", "/v1/jobs", {"type": "move", "shardlet": "r", "to": "s2"})
            valid("POST", "/v1/jobs/{id}/cancel", id=job["id"])
            wait_until("the end of the move", lambda: house.rest("GET", f"/v1/jobs/{job['id']}").json["state"] == "canceled", 60)
            shard.rollback()
        valid("POST", "/v1/jobs/{id}/resume", id=job["id"])
        wait_until("the move", lambda: house.rest("GET", f"/v1/jobs/{job['id']}").json["state"] == "done", 90)
        valid("POST", "/v1/maps", {"name": "regions", "kind": "list", "key": ["text"]})
        valid("POST", shardlets, {"name": "eu", "values": ["de"], "shard": "s1"}, map="regions")
        valid("DELETE", one, map="regions", shardlet="eu")
        for path in ("routers", "stats", "slow", "pools", "audit", "epoch"):
            valid("GET", "/v1/" + path)
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/"):
            valid("GET", path)
        tag = house.rest("GET", "/v1/maps").headers["ETag"]
        for path, methods in document["paths"].items():
            if "304" in methods.get("get", {}).get("responses", {}) and "{" not in path:
                self.assertEqual(house.rest("GET", path, headers={"If-None-Match": tag}).status, 304, path)
        self.assertTrue(any("s1" in line for line in valid("POST", "/v1/explain", {"statement": "SELECT 1 FROM orders WHERE tenant = 7"})["lines"]))
        valid("POST", "/v1/recovery/check", {"rows": True})
        valid("POST", "/v1/recovery/resolve", {"from": "store", "dry_run": True})
        for role in ("viewer", "operator"):
            tokens[role] = valid("POST", "/v1/users", {"name": role, "role": role})["token"]
        valid("POST", "/v1/users", {"name": "gone", "role": "admin"})
        self.assertEqual([u["name"] for u in valid("GET", "/v1/users")["items"]], ["viewer", "operator", "gone"])
        valid("DELETE", "/v1/users/{user}", user="gone")
        valid("POST", "/v1/shards", {"name": "s3", "dsn": house.dsn(3)})
        wait_until("the new shard", lambda: house.rest("GET", "/v1/shards/s3").json["state"] == "online", 60)
        valid("DELETE", "/v1/shards/{shard}", shard="s3")
        exported = valid("GET", "/v1/export")
        # An import and a rebuild want an empty store: refused here, done in tests/admin/faces_test.py.
        self.assertEqual(house.rest("POST", "/v1/import", raw=exported.encode(), headers={"Content-Type": "text/plain"}).status, 409)
        self.assertEqual(house.rest("POST", "/v1/recovery/rebuild", {"dsns": [house.dsn(1)]}).status, 409)
        Operations.called |= {("POST", "/v1/import"), ("POST", "/v1/recovery/rebuild")}
        self.assertEqual(Operations.called, {(method, path) for method, path, _ in operations()})

    def test_2_tokens_are_kept_as_hashes(self):
        path = pathlib.Path(house.data, "admin.users")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        text = path.read_text()
        for role in ("viewer", "operator"):
            self.assertIn(role, text)
            self.assertNotIn(tokens[role], text)
            self.assertNotIn(tokens[role], pathlib.Path(house.log).read_text())
        self.assertEqual(house.rest("POST", "/v1/users", {"name": "viewer", "role": "admin"}).status, 409)
        # By the command line, and good at once; then removed, and good for nothing at once.
        code, out, _ = house.cli("user", "add", "ann", "--role", "operator")
        self.assertEqual((code, len(out.strip())), (0, 64))
        self.assertEqual(house.rest("GET", "/v1/epoch", token=out.strip()).status, 200)
        self.assertEqual([(u["name"], u["role"]) for u in house.cli_json("user", "list")][-1], ("ann", "operator"))
        self.assertEqual(house.cli("user", "remove", "ann")[0], 2)  # it asks, and nobody is there
        self.assertEqual(house.cli("user", "remove", "ann", "--yes")[0], 0)
        self.assertEqual(house.rest("GET", "/v1/epoch", token=out.strip()).status, 401)
        self.assertEqual(house.cli("user", "remove", "ann", "--yes")[0], 1)
        self.assertEqual(house.cli("user", "add", "a b")[0], 1)
        # A file that others may read lets nobody in.
        path.chmod(0o644)
        path.write_text(path.read_text() + "\n")
        self.assertEqual(house.rest("GET", "/v1/epoch", token=tokens["viewer"]).status, 401)
        self.assertEqual(house.rest("GET", "/v1/epoch").status, 200)
        path.chmod(0o600)
        path.write_text(text)
        self.assertEqual(house.rest("GET", "/v1/epoch", token=tokens["viewer"]).status, 200)
        # The audit trail has the name.
        house.rest("PATCH", "/v1/maps/tenants/shardlets/b", {"state": "online"}, token=tokens["operator"])
        self.assertIn("operator", [e["who"] for e in house.rest("GET", "/v1/audit").json["items"]])

    def test_2b_the_token_file_may_hold_a_hash(self):
        path, token = pathlib.Path(house.token_file), house.token
        hashed = "sha256:" + hashlib.sha256(token.encode()).hexdigest()
        house.stop()
        try:
            path.write_text("sha256:" + "0" * 63)
            run = subprocess.run([PROGRAM, "serve", "--data", house.data], capture_output=True, text=True, timeout=180)
            self.assertEqual(run.returncode, 1)
            self.assertIn("holds no SHA-256", run.stdout + run.stderr)
            path.write_text(hashed + "\n")
            house.start()
            self.assertEqual(house.rest("GET", "/v1/epoch", token=token).status, 200)
            for wrong in (hashed, hashed[7:], token[:-1], "x" * 64):
                self.assertEqual(house.rest("GET", "/v1/epoch", token=wrong).status, 401)
            self.assertEqual(house.cli("map", "list", environment={"KINTSUGI_TOKEN": token})[0], 0)
            code, _, err = house.cli("map", "list", "--token-file", str(path))
            self.assertEqual(code, 1)
            self.assertIn("holds the hash of a token", err)
            self.assertFalse([p.name for p in pathlib.Path(house.data).iterdir() if p.is_file() and token.encode() in p.read_bytes()])
            house.stop()
        finally:
            path.write_text(token + "\n")
            house.start()

    def test_3_every_operation_with_every_role(self):
        ghosts = {"shard": "ghost", "map": "ghost", "shardlet": "ghost", "table": "ghost", "id": "999999", "user": "ghost"}
        for method, path, operation in operations():
            if operation.get("security") == []:
                self.assertEqual(house.rest(method, path, token=None).status, 200, path)
                continue
            at = re.sub(r"\{(\w+)\}", lambda m: ghosts[m[1]], path)
            if at.endswith("/lookup"):
                at += "?key=1"
            needed = ROLES.index(operation["x-role"])
            body = {} if "requestBody" in operation else None
            with self.subTest(f"{method} {path}"):
                answer = house.rest(method, at, body, token=None)
                self.assertEqual(answer.status, 401)
                self.problem(answer, path)
                for role in ROLES:
                    answer = house.rest(method, at, body, token=tokens[role])
                    if ROLES.index(role) < needed:
                        self.assertEqual(answer.status, 403, (role, answer.text))
                        self.assertEqual(answer.json["sqlstate"], "42501")
                        self.problem(answer, path)
                    else:
                        self.assertNotIn(answer.status, (401, 403), (role, answer.text))
                        self.assertLess(answer.status, 500, answer.text)

    def test_4_hostile_bodies(self):
        def mutations(schema):
            good = {"name": "x", "dsn": "colour=red", "kind": "range", "key": ["bigint"], "type": "move", "statement": "SELECT 1",
                    "from": "store", "shard": "s1", "role": "viewer", "dsns": ["colour=red"], "state": "online"}
            names = list(schema.get("properties", {}))
            base = {n: good[n] for n in schema.get("required", []) if n in good}
            odd = [None, True, -1, 0, 1 << 70, 1.5, "", "x" * 70000, "\u0000", "\ud83d\udca9", "'; DROP TABLE orders; --", "../../etc",
                   [], {}, [[]], [None], [{"value": []}], {"a": {}}, ["x"] * 2000]
            for name in names:
                for value in odd:
                    yield json.dumps({**base, name: value}).encode()
            for name in schema.get("required", []):
                yield json.dumps({n: v for n, v in base.items() if n != name}).encode()
            yield json.dumps({**base, "unknown": 1}).encode()

        raw = [b"", b"{", b"[]", b"null", b"\"x\"", b"1e999", b"\xff\xfe", b"{\"a\":\xff}", b"[" * 100000, b"{\"a\":" * 50000, b"{}{}", b"\0"]
        count = 0
        for method, path, operation in operations():
            schema = schema_of(operation)
            if schema is None:
                continue
            at = re.sub(r"\{(\w+)\}", lambda m: {"shard": "ghost", "map": "tenants", "shardlet": "ghost"}.get(m[1], "1"), path)
            for body in raw + list(mutations(schema)):
                if operation["operationId"] in ("check", "resolve") and body in (b"", b"{}"):
                    continue
                try:
                    answer = house.rest(method, at, raw=body or b" ", headers={"Content-Type": "application/json"})
                except OSError as error:
                    self.fail(f"{method} {path} {body[:200]}: {error}, {house.process.poll()}\n"
                              + pathlib.Path(house.log).read_text()[-2000:])
                count += 1
                with self.subTest(f"{method} {path}", body=body[:100]):
                    # A DSN may lead nowhere; all else is the asker's fault, or was no fault.
                    self.assertTrue(answer.status < 500 or (answer.status in (502, 503) and "dsn" in str(schema)), answer.text[:300])
                    if answer.status >= 400:
                        self.problem(answer, path)
            # Not JSON at all.
            self.assertEqual(house.rest(method, at, raw=b"{}", headers={"Content-Type": "text/xml"}).status, 415)
        self.assertGreater(count, 500)
        said = house.talk(f"POST /v1/maps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n"
                          "Content-Type: application/json\r\nContent-Length: 2097152\r\n\r\n")
        self.assertIn(" 413 ", said.splitlines()[0])
        for path in ("/v1/shards/%00", "/v1/shards/" + "x" * 5000, "/v1/shards?limit=-1", "/v1/shards?limit=x", "/v1/shards?after=%ff",
                     "/v1/maps/tenants/lookup", "/v1/maps/tenants/lookup?key=", "/v1/jobs/99999999999999999999", "/v1/..%2f..%2fetc/passwd"):
            answer = house.rest("GET", path)
            self.assertLess(answer.status, 500, path)
            if answer.status >= 400:
                self.problem(answer, path)
        # Nothing of it has changed what there is.
        self.assertEqual(house.rest("GET", "/readyz").status, 200)

    def test_5_alive_ready_and_counted(self):
        self.assertEqual(house.rest("GET", "/healthz").json["status"], "alive")
        ready = house.rest("GET", "/readyz").json
        self.assertTrue(ready["ready"] and ready["serving"])
        with house.sql() as sql:
            sql.execute("INSERT INTO orders SELECT 7, 1")
            for _ in range(64):
                sql.execute("SELECT id FROM orders WHERE tenant = 7")
            sql.execute("SELECT count(*) FROM orders")
            for bad in ("SELECT 1 / 0 FROM orders WHERE tenant = 7", "INSERT INTO orders (id) VALUES (1)"):
                with self.assertRaises(Exception):
                    sql.execute(bad)
            sql.execute("SELECT pg_sleep(1.2), 'hidden', 4711 FROM orders WHERE tenant = 7 /* hidden */")
            stats = dict(sql.execute("SHOW STATS").fetchall())
        self.assertGreaterEqual(stats['statements{tier="route",outcome="ok"}'], 65)
        self.assertGreaterEqual(stats['statements{tier="route",outcome="failed"}'], 1)
        self.assertGreaterEqual(stats['statements{tier="fan-out",outcome="ok"}'], 1)
        self.assertGreaterEqual(stats["statements_refused"], 1)
        self.assertGreaterEqual(stats["statement_cache_hits"], 4)  # from the sixth on it is a prepared statement
        self.assertGreater(stats['latency_us{tier="route",quantile="0.99"}'], 0)
        self.assertGreaterEqual(max(v for k, v in stats.items() if k.startswith("shardlet_statements{")), 16)
        self.assertEqual({s["name"] for s in house.rest("GET", "/v1/stats?limit=1000").json["items"]}, set(stats))
        slow = house.rest("GET", "/v1/slow").json["items"][0]
        self.assertEqual((slow["tier"], slow["failed"], len(slow["shards"])), ("route", False, 1))
        self.assertGreaterEqual(slow["ms"], 1200)
        self.assertEqual(slow["statement"], "SELECT pg_sleep(?), ?, ? FROM orders WHERE tenant = ?")
        log = pathlib.Path(house.log).read_text()
        self.assertIn("slow statement", log)
        self.assertNotIn("hidden", log)
        self.assertNotIn("4711", log)
        metrics = house.rest("GET", "/metrics").text
        for name in ('kintsugi_statements_total{tier="route",outcome="ok"}', "kintsugi_statement_seconds_bucket{", "kintsugi_statement_seconds_sum{",
                     "kintsugi_statement_cache_hits_total", "kintsugi_statements_held ", 'kintsugi_jobs{state="done"}', "kintsugi_router_alive{",
                     "kintsugi_router_epochs_behind{", "kintsugi_shardlet_statements_total{", "kintsugi_epoch_of_threads", "kintsugi_pool_connections{"):
            self.assertIn(name, metrics)
        # As Prometheus reads it: each family announced once, a value a line, buckets that only rise.
        families = re.findall(r"^# TYPE (\S+) (\S+)$", metrics, re.M)
        self.assertEqual(len(families), len(set(families)))
        for line in metrics.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) .+|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.]+)$')
        rising = [int(v) for v in re.findall(r'^kintsugi_statement_seconds_bucket\{tier="route",le="[^"]+"\} (\d+)', metrics, re.M)]
        self.assertEqual(rising, sorted(rising))
        self.assertEqual(rising[-1], int(re.search(r'statement_seconds_count\{tier="route"\} (\d+)', metrics)[1]))

    def test_5b_unhealthy_while_a_thread_does_not_do_what_it_is_asked(self):
        """One of the threads that serve clients stands still, as a debugger stops it; then it goes on."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes, libc.ptrace.restype = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_long
        seize, interrupt, detach, every_thread = 0x4206, 0x4207, 17, 0x40000000
        tasks = pathlib.Path(f"/proc/{house.process.pid}/task")
        worker = next(int(task.name) for task in tasks.iterdir() if (task / "wchan").read_text() == "do_epoll_wait")
        self.assertEqual(libc.ptrace(seize, worker, None, None), 0, os.strerror(ctypes.get_errno()))
        try:
            self.assertEqual(libc.ptrace(interrupt, worker, None, None), 0)
            os.waitpid(worker, every_thread)
            ill = house.rest("GET", "/healthz")
            self.assertEqual((ill.status, ill.json["status"]), (503, "a thread does not answer"))
            self.assertEqual(house.rest("GET", "/v1/stats").status, 503)
            self.assertEqual(house.rest("GET", "/metrics").status, 200)
        finally:
            libc.ptrace(detach, worker, None, None)
        wait_until("well again", lambda: house.rest("GET", "/healthz").status == 200, 10)

    def test_6_not_ready_while_it_shuts_down(self):
        with house.sql() as sql:
            sql.execute("BEGIN")
            sql.execute("SELECT 1 FROM orders WHERE tenant = 7")
            house.process.send_signal(signal.SIGTERM)
            wait_until("not ready", lambda: house.rest("GET", "/readyz", fails=None).status == 503, 10)
            self.assertIn("shuts down", house.rest("GET", "/readyz").json["why"])
            self.assertEqual(house.rest("GET", "/healthz").status, 200)
            sql.execute("COMMIT")
        self.assertEqual(house.process.wait(45), 0)

    def test_7_tls_with_a_certificate_that_is_exchanged(self):
        folder = pathlib.Path(house.root)

        def certificate(name):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "admin.key",
                            "-out", folder / "admin.crt"], check=True, capture_output=True)

        certificate("first")
        config = pathlib.Path(house.data, "kintsugi.toml")
        config.write_text(config.read_text().replace("[admin]\n", f'[admin]\ntls_cert = "{folder}/admin.crt"\ntls_key = "{folder}/admin.key"\n'))
        with open(house.log, "ab") as log:
            house.process = subprocess.Popen([PROGRAM, "serve", "--data", house.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def subject():
            context = ssl.create_default_context(cafile=str(folder / "admin.crt"))
            try:
                import socket
                with socket.create_connection(("127.0.0.1", house.admin_port), 5) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost") as secure:
                    return dict(pair[0] for pair in secure.getpeercert()["subject"])["commonName"]
            except OSError as error:
                return str(error)

        wait_until("the router", lambda: subject() == "first", 30)
        address = f"https://127.0.0.1:{house.admin_port}"
        code, out, err = house.cli("shard", "list", "--admin", address, "--ca", str(folder / "admin.crt"))
        self.assertEqual(code, 0, err)
        self.assertIn("s1", out)
        self.assertEqual(house.cli("shard", "list", "--admin", address)[0], 4)  # nobody vouches for it
        self.assertEqual(house.cli("shard", "list", "--admin", address.replace("https", "http"))[0], 4)
        certificate("second")
        house.process.send_signal(signal.SIGHUP)
        wait_until("the second certificate", lambda: subject() == "second", 10)
        # One that cannot be used changes nothing.
        (folder / "admin.key").write_text("nonsense")
        house.process.send_signal(signal.SIGHUP)
        wait_until("a line in the log", lambda: "the old one stays" in pathlib.Path(house.log).read_text(), 10)
        self.assertEqual(subject(), "second")
        house.process.send_signal(signal.SIGTERM)
        self.assertEqual(house.process.wait(45), 0)
        self.assertEqual(subprocess.run([PROGRAM, "serve", "--data", house.data], capture_output=True, timeout=180).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
