#!/usr/bin/python3
"""The outside of the program to the letter of its contract: bodies and answers of REST, forms and exit codes of the command
line, every key of the configuration. argv[1] is the program."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys
import threading
import time
import tomllib
import unittest
import urllib.parse

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, psycopg, wait_until  # noqa: E402

house = None
S = "/v1/shards"
M = "/v1/maps"
JOB_STATES = ("queued", "preparing", "copying", "catching_up", "fenced", "committed", "cleaning", "done", "failed", "canceled")


def setUpModule():
    global house
    house = House(PROGRAM, shards=3)


def tearDownModule():
    house.close()


class Contract(unittest.TestCase):
    maxDiff = None

    def ask(self, method, path, body=None, status=200, **more):
        answer = house.rest(method, path, body, **more)
        self.assertEqual(answer.status, status, f"{method} {path}: {answer.text}")
        if status >= 400:
            self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
            self.assertLessEqual({"type", "title", "status", "detail", "sqlstate", "hint"}, set(answer.json))
            self.assertTrue(answer.json["hint"])
            self.assertEqual(answer.json["status"], status)
        elif status != 204:
            self.assertEqual(answer.headers["Content-Type"], "application/json")
        return answer

    def has(self, answer, **members):
        self.assertEqual({name: answer.json.get(name) for name in members}, members)

    def ended(self, job):
        wait_until("the job's end", lambda: house.rest("GET", f"/v1/jobs/{job}").json["state"] in ("done", "failed", "canceled"), 60)
        return house.rest("GET", f"/v1/jobs/{job}").json

    # The tests are one story, told in the order of their names.

    def test_01_shards(self):
        made = self.ask("POST", S, {"name": "s1", "dsn": house.dsn(1), "state": "online"}, 201)
        self.has(made, name="s1", state="online")
        self.assertEqual(made.headers["Location"], "/v1/shards/s1")
        self.assertTrue(made.json["dsn"].startswith("host=127.0.0.1 "))
        for n in (2, 3):
            self.ask("POST", S, {"name": f"s{n}", "dsn": house.dsn(n)}, 201)
        self.ask("POST", S, {"name": "s2", "dsn": house.dsn(2)}, 200)  # again, just as it is
        self.ask("POST", S, {"name": "s2", "dsn": house.dsn(3)}, 409)
        listed = self.ask("GET", S).json
        self.assertEqual((set(listed), listed["next"]), ({"items", "next"}, None))
        self.has(self.ask("PATCH", S + "/s3", {"dsn": house.dsn(3) + " connect_timeout=7"}), name="s3", state="online")
        self.ask("GET", S + "/nowhere", status=404)
        self.ask("DELETE", S + "/nowhere", status=404)
        self.ask("PATCH", S + "/s3", {}, status=400)
        # As it was read, the password hidden, it is the same; with another address nobody knows the password.
        shown = {name: self.ask("GET", S + "/s3").json[name] for name in ("name", "dsn", "state")}
        self.assertIn("password=***", shown["dsn"])
        self.has(self.ask("PATCH", S + "/s3", shown), **shown)
        self.ask("POST", S, shown, 200)
        self.assertIn(house.dsn(3), house.rest("GET", "/v1/export").text)
        other = self.ask("PATCH", S + "/s3", {"dsn": shown["dsn"] + " connect_timeout=8"}, 400)
        self.assertIn("***", other.json["hint"])
        self.ask("POST", S, {"name": "s4"}, status=400)
        self.ask("POST", S, {"name": "s4", "dsn": "host=127.0.0.1 port=1 dbname=x"}, status=502)

    def test_02_maps_and_shardlets(self):
        self.has(self.ask("POST", M, {"name": "tenants", "kind": "range", "key": ["bigint"]}, 201), name="tenants", kind="range", key=["bigint"])
        self.ask("POST", M, {"name": "tenants", "kind": "range", "key": ["bigint"]}, 200)
        self.ask("POST", M, {"name": "tenants", "kind": "range", "key": ["int"]}, 409)
        self.ask("POST", M, {"name": "regions", "kind": "list", "key": ["text"]}, 201)
        hashed = {"name": "docs", "kind": "hash", "key": ["uuid"], "shardlets": 64, "shards": ["s1", "s2"]}
        self.has(self.ask("POST", M, hashed, 201), **hashed)
        self.has(self.ask("POST", M, hashed, 200), **hashed)
        self.ask("POST", M, {**hashed, "shardlets": 32}, 409)
        self.ask("POST", M, {"name": "x", "kind": "ring", "key": ["uuid"]}, 400)
        self.ask("POST", M, {"name": "x", "kind": "range", "key": ["money"]}, 400)
        first = {"name": "a", "from": ["MINVALUE"], "to": [1000], "shard": "s1", "state": "online"}
        made = self.ask("POST", M + "/tenants/shardlets", first, 201)
        self.assertEqual({k: v for k, v in made.json.items() if k != "map"}, first)
        self.assertEqual(made.headers["Location"], "/v1/maps/tenants/shardlets/a")
        self.ask("POST", M + "/tenants/shardlets", first, 200)
        self.ask("POST", M + "/tenants/shardlets", {"name": "b", "from": [1000], "to": ["MAXVALUE"], "shard": "s2"}, 201)
        overlap = self.ask("POST", M + "/tenants/shardlets", {"name": "c", "from": [10], "to": [20], "shard": "s2"}, 409)
        self.assertIn('"a"', overlap.json["detail"])
        europe = {"name": "eu", "values": ["de", "fr"], "shard": "s2", "state": "online"}
        self.assertEqual({k: v for k, v in self.ask("POST", M + "/regions/shardlets", europe, 201).json.items() if k != "map"}, europe)
        self.has(self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "read only"}), state="read only", name="a")
        for query, found in (("?state=read%20only", ["a"]), ("?state=online", ["b"]), ("?state=online&shard=s1", []), ("?state=offline", [])):
            self.assertEqual([s["name"] for s in self.ask("GET", M + "/tenants/shardlets" + query).json["items"]], found)
        self.assertEqual([s["name"] for s in self.ask("GET", S + "?state=online").json["items"]], ["s1", "s2", "s3"])
        self.assertEqual(self.ask("GET", S + "?state=draining").json["items"], [])
        self.assertIn("read only", self.ask("GET", M + "/tenants/shardlets?state=closed", status=400).json["hint"])
        self.ask("GET", S + "?state=closed", status=400)
        self.has(self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "online"}), state="online")
        self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "held"}, status=400)
        # What was read may be sent back whole; what is no matter of PATCH says how it is done.
        whole = self.ask("GET", M + "/tenants/shardlets/a").json
        self.assertEqual(self.ask("PATCH", M + "/tenants/shardlets/a", {**whole, "state": "offline"}).json, {**whole, "state": "offline"})
        self.assertEqual(self.ask("PATCH", M + "/tenants/shardlets/a", raw=json.dumps(whole).encode(),
                                  headers={"Content-Type": "Application/Merge-Patch+JSON; charset=utf-8"}).json, whole)
        for member, value in (("shard", "s2"), ("to", [2000]), ("map", "regions"), ("values", ["de"])):
            self.assertIn("/v1/jobs", self.ask("PATCH", M + "/tenants/shardlets/a", {member: value}, status=400).json["hint"])
        self.ask("PATCH", M + "/tenants/shardlets/a", raw=b"{}", headers={"Content-Type": "application/jsonish"}, status=415)
        self.has(self.ask("GET", M + "/tenants/lookup?key=42"), shardlet="a", shard="s1", key=[42])
        self.ask("GET", M + "/regions/lookup?key=jp", status=404)
        self.ask("GET", M + "/nowhere/lookup?key=42", status=404)
        self.ask("DELETE", S + "/s2", status=409)
        self.ask("GET", M + "/tenants/shardlets/eu", status=404)  # it is of another map

    def test_02a_any_name_that_can_be_made_has_an_address(self):
        for name in ("My Map", "a/b", 'a"b', "select", "Straße 漢", "a+b&c=d?e#f%41", "two\nlines"):
            where = M + "/" + urllib.parse.quote(name, safe="")
            made = self.ask("POST", M, {"name": name, "kind": "list", "key": ["text"]}, 201)
            self.assertEqual(made.headers["Location"], where)
            self.has(self.ask("GET", where), name=name)
            with house.sql() as sql:
                sql.execute('CREATE SHARDLET "odd one" OF "{}" FOR VALUES IN (\'o\'\'k, "x"\') ON SHARD s1'.format(name.replace('"', '""')))
            self.assertEqual(json.loads(house.cli("lookup", name, "o'k, \"x\"", "--json")[1])["shardlet"], "odd one")
            self.ask("DELETE", where + "/shardlets/odd%20one", status=204)
            self.assertEqual(house.cli("map", "drop", name, "--yes")[0], 0)
            self.ask("GET", where, status=404)

    def test_02b_keys_of_several_columns_and_numbers_of_any_length(self):
        self.ask("POST", M, {"name": "two", "kind": "range", "key": ["text", "numeric"]}, 201)
        long = "123456789012345678901234567890.1234567890"
        raw = '{"name": "t1", "from": ["MINVALUE", "MINVALUE"], "to": ["m", %s], "shard": "s1"}' % long
        made = self.ask("POST", M + "/two/shardlets", raw=raw.encode(), status=201).json
        self.assertEqual(made["to"], ["m", long.rstrip("0")])
        self.ask("POST", M + "/two/shardlets", raw=raw.encode(), status=200)
        self.ask("POST", M + "/two/shardlets", {**json.loads(raw), "to": ["m", long]}, 200)
        for key in ("key=de&key=7.5", "key=de,7.5"):
            self.has(self.ask("GET", M + "/two/lookup?" + key), shardlet="t1", key=["de", "7.5"])
        self.ask("GET", M + "/two/lookup?key=de", status=400)
        self.assertEqual(house.cli_json("lookup", "two", "de,7.5"), house.cli_json("lookup", "two", "de", "7.5"))
        # Bounds of a split are written as those of a shardlet.
        job = self.ask("POST", "/v1/jobs", {"type": "split", "shardlet": "t1", "at": ["k", "MINVALUE"], "into": ["t2", "t3"]}, 202).json
        self.assertEqual(self.ended(job["id"])["state"], "done")
        self.has(self.ask("GET", M + "/two/shardlets/t3"), **{"from": ["k", "MINVALUE"], "to": ["m", long.rstrip("0")]})
        job = self.ask("POST", "/v1/jobs", raw=b'{"type": "split", "shardlet": "t3", "at": ["l", 0.10000000000000000001], "into": ["t4", "t5"]}', status=202).json
        self.assertEqual(self.ended(job["id"])["at"], ["l", "0.10000000000000000001"])
        for shardlet in ("t2", "t4", "t5"):
            self.ask("DELETE", M + "/two/shardlets/" + shardlet, status=204)
        self.ask("DELETE", M + "/two", status=204)

    def test_03_tables(self):
        for n in (1, 2, 3):
            with house.shard(n) as shard:
                shard.execute("CREATE TABLE orders (tenant_id bigint, id int, note text, PRIMARY KEY (tenant_id, id)); CREATE TABLE plans (id int PRIMARY KEY)")
        orders = {"name": "public.orders", "map": "tenants", "key": ["tenant_id"]}
        self.assertEqual(self.ask("POST", "/v1/tables", orders, 201).json, orders)
        self.assertEqual(self.ask("POST", "/v1/tables", orders, 200).json, orders)
        plans = {"name": "public.plans", "replicated": True}
        self.assertEqual(self.ask("POST", "/v1/tables", plans, 201).json, plans)
        self.assertEqual(self.ask("GET", "/v1/tables").json["items"], [orders, plans])
        self.assertEqual(self.ask("GET", "/v1/tables/public.orders").json, orders)
        self.assertEqual(self.ask("GET", "/v1/tables?map=tenants").json["items"], [orders])
        self.ask("POST", "/v1/tables", {"name": "public.nothing", "map": "tenants", "key": ["tenant_id"]}, status=409)
        self.ask("POST", "/v1/tables", {"name": "public.orders", "map": "nowhere", "key": ["tenant_id"]}, status=404)
        self.ask("DELETE", M + "/tenants", status=409)
        self.ask("DELETE", "/v1/tables/public.plans", status=204)
        self.ask("GET", "/v1/tables/public.plans", status=404)
        self.ask("POST", "/v1/tables", plans, 201)

    def test_04_jobs(self):
        with house.sql() as sql:
            sql.execute("INSERT INTO orders SELECT 700, g, 'x' FROM generate_series(1, 1000) g")
        answer = self.ask("POST", "/v1/jobs", {"type": "split", "shardlet": "a", "at": [500], "into": ["l", "r"], "move": "r", "to": "s2"}, 202)
        job = answer.json
        self.assertEqual(answer.headers["Location"], f"/v1/jobs/{job['id']}")
        self.assertLessEqual({"type", "shardlet", "at", "into", "move", "to", "id", "state", "progress", "error", "started", "ended"}, set(job))
        self.assertEqual(set(job["progress"]), {"rows", "bytes", "total", "eta_s"})
        self.assertIn(job["state"], JOB_STATES)
        self.assertEqual((job["at"], job["into"], job["move"], job["to"], job["shardlet"]), ([500], ["l", "r"], "r", "s2", "a"))
        done = self.ended(job["id"])
        self.assertEqual((done["state"], done["error"], done["progress"]["rows"], done["progress"]["total"]), ("done", None, 1000, 1000))
        for member in ("started", "ended"):
            self.assertRegex(done[member], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
        self.has(self.ask("GET", M + "/tenants/shardlets/r"), shard="s2", **{"from": [500], "to": [1000]})
        moved = self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "r", "to": "s3", "mode": "online"}, 202).json
        # Its story as server-sent events, from beginning to end.
        events = house.rest("GET", f"/v1/jobs/{moved['id']}/events")
        self.assertTrue(events.headers["Content-Type"].startswith("text/event-stream"))
        states = [json.loads(data)["state"] for data in re.findall(r"^data: (.*)$", events.text, re.M)]
        self.assertEqual(states[-1], "done")
        self.assertEqual(states, sorted(states, key=JOB_STATES.index))
        self.assertEqual(self.ended(self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "r", "to": "s1", "mode": "offline"}, 202).json["id"])["state"], "done")
        merged = self.ask("POST", "/v1/jobs", {"type": "merge", "shardlets": ["l", "r"], "into": "a"}, 202).json
        self.assertEqual((merged["shardlets"], merged["into"]), (["l", "r"], "a"))
        self.assertEqual(self.ended(merged["id"])["state"], "done")
        self.assertEqual([j["type"] for j in self.ask("GET", "/v1/jobs?type=merge").json["items"]], ["merge"])
        self.assertEqual({j["state"] for j in self.ask("GET", "/v1/jobs?state=done").json["items"]}, {"done"})
        newest = [j["id"] for j in self.ask("GET", "/v1/jobs?order=newest&limit=2").json["items"]]
        self.assertEqual(newest, sorted(newest, reverse=True))
        self.ask("GET", "/v1/jobs?state=lost", status=400)
        self.ask("GET", "/v1/jobs?limt=5", status=400)
        self.ask("GET", "/v1/jobs/4711", status=404)
        self.ask("GET", "/v1/jobs/4711/events", status=404)
        self.ask("POST", "/v1/jobs/4711/cancel", status=404)
        self.ask("POST", f"/v1/jobs/{merged['id']}/cancel", status=409)
        self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "nothing", "to": "s1"}, status=404)
        self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "a", "to": "nowhere"}, status=404)
        self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "a"}, status=400)
        self.ask("POST", "/v1/jobs", {"type": "fly"}, status=400)
        for rate in ("99999999999999GB/s", "18014398509481984kB", -1, 1.5):
            self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "a", "to": "s2", "max_rate": rate}, status=400)
            with house.sql() as sql, self.assertRaises(psycopg.Error) as refused:
                sql.execute(f"MOVE SHARDLET a TO SHARD s2 WITH (max_rate = '{rate}')")
            self.assertEqual(refused.exception.diag.sqlstate, "22023")
        for wrong in ({"now": True}, []):
            self.ask("POST", f"/v1/jobs/{merged['id']}/cancel", wrong, status=400)

    def test_05_a_job_that_is_cancelled_and_resumed(self):
        with house.shard(1) as holder:
            holder.autocommit = False
            holder.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
            job = self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "a", "to": "s3"}, 202).json["id"]
            other = self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": "a", "to": "s2"}, 409)
            self.assertIn(str(job), other.json["detail"])
            self.ask("POST", f"/v1/jobs/{job}/cancel", status=202)
            self.assertEqual(self.ended(job)["state"], "canceled")
            holder.rollback()
        self.ask("POST", f"/v1/jobs/{job}/resume", status=202)
        self.assertEqual(self.ended(job)["state"], "done")

    def test_05b_a_job_that_a_precondition_ends(self):
        """Found by the job or before it, the command line says 3; and a shard that is not ready is not said to be."""
        with house.cluster.admin("postgres") as root:
            root.execute("CREATE DATABASE occupied")
        dsn = house.dsn(1).replace("dbname=d1", "dbname=occupied")
        with psycopg.connect(dsn, autocommit=True) as there:
            there.execute("CREATE TABLE orders (id text)")
        self.has(self.ask("POST", S, {"name": "s9", "dsn": dsn}, 201), state="preparing")
        job = self.ask("GET", "/v1/jobs?order=newest&limit=1").json["items"][0]
        self.assertEqual((self.ended(job["id"])["state"], job["type"]), ("failed", "provision"))
        code, _, err = house.cli("job", "watch", str(job["id"]))
        self.assertEqual(code, 3, err)
        self.assertRegex(err, r"(?s)has failed\n  .*already exists\n  .*RESUME JOB")
        for state in ("online", "draining", "offline"):
            self.ask("PATCH", S + "/s9", {"state": state}, 409)
        self.ask("DELETE", S + "/s9", status=204)

    def test_06_the_epoch_guards_edits(self):
        answer = self.ask("GET", M + "/tenants/shardlets/a")
        tag = answer.headers["ETag"]
        self.assertEqual(tag, f'"{self.ask("GET", "/v1/epoch").json["epoch"]}"')
        self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "read only"}, headers={"If-Match": tag})
        self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "online"}, 412, headers={"If-Match": tag})
        self.ask("PATCH", M + "/tenants/shardlets/a", {"state": "online"}, headers={"If-Match": "*"})

    def test_06b_conditions_as_http_has_them(self):
        # RFC 9110, 13: lists, weak tags, which If-None-Match takes and If-Match does not, and *.
        path = M + "/tenants/shardlets/a"
        epoch = self.ask("GET", path).headers["ETag"].strip('"')
        now, old = f'"{epoch}"', f'"{int(epoch) - 1}"'
        for tags in (now, "W/" + now, f"{old}, {now}", f'{old},W/{now}', f' "x,y" ,, {now}', "*"):
            for each in (path, M, "/v1/epoch"):
                answer = house.rest("GET", each, headers={"If-None-Match": tags})
                self.assertEqual((answer.status, answer.headers["ETag"], answer.text), (304, now, ""), tags)
        for tags in (old, "W/" + old, f'"0{epoch}"', epoch, f"{old}, W/{old}"):
            self.assertEqual(self.ask("GET", path, headers={"If-None-Match": tags}).headers["ETag"], now)
        for tags in (now, f"{old}, {now}", "*"):
            self.ask("GET", path, headers={"If-Match": tags})
        for tags in (old, "W/" + now, epoch, "'", f"{now} {old}", "*, " + now):
            self.ask("GET", path, status=412, headers={"If-Match": tags})
            self.ask("PATCH", path, {"state": "offline"}, 412, headers={"If-Match": tags})
        for tags in (now, "W/" + now, "*", f"{old}, {now}"):
            self.ask("PATCH", path, {"state": "offline"}, 412, headers={"If-None-Match": tags})
            self.ask("DELETE", path, None, 412, headers={"If-None-Match": tags})
        self.has(self.ask("GET", path), state="online")
        again = self.ask("PATCH", path, {"state": "read only"}, headers={"If-Match": f"{old}, {now}"}).headers["ETag"]
        self.ask("PATCH", path, {"state": "online"}, headers={"If-Match": f"W/{again}, {again}", "If-None-Match": now})
        made = {"name": "conditions", "kind": "range", "key": ["bigint"]}
        self.ask("POST", M, made, 201, headers={"If-None-Match": "*"})
        self.ask("POST", M, made, 412, headers={"If-None-Match": "*"})
        self.ask("POST", M, made, 200)
        self.ask("DELETE", M + "/conditions", status=204)

    def test_07_what_is_open_and_what_there_is(self):
        for path, type in (("/healthz", "application/json"), ("/readyz", "application/json"), ("/metrics", "text/plain; version=0.0.4"),
                           ("/openapi.json", "application/json"), ("/", "text/html; charset=utf-8")):
            answer = house.rest("GET", path, token=None)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, type))
        for path in ("/v1/routers", "/v1/stats", "/v1/epoch", "/v1/pools", "/v1/slow", "/v1/audit", "/v1/users"):
            self.ask("GET", path)
            self.ask("GET", path, token="wrong", status=401)
        seen, after = [], ""
        while after is not None:
            page = self.ask("GET", f"/v1/stats?limit=7&after={after}").json
            self.assertLessEqual(len(page["items"]), 7)
            seen += [item["name"] for item in page["items"]]
            after = page["next"]
        self.assertEqual((len(seen), len(set(seen)) > 20), (len(set(seen)), True))
        self.assertEqual(self.ask("POST", "/v1/recovery/check", {}).json["items"], [])
        self.ask("POST", "/v1/recovery/resolve", {"from": "store", "dry_run": True})
        self.ask("POST", "/v1/recovery/resolve", {"from": "somewhere"}, status=400)
        self.ask("GET", "/v1/nothing", status=404)
        self.ask("DELETE", "/v1/jobs", status=405)
        self.assertEqual(self.ask("POST", "/readyz", {}, status=405).headers["Allow"], "GET, HEAD, OPTIONS")
        for path, methods in (("/v1/shards", "GET, HEAD, POST, OPTIONS"), ("/v1/import", "POST, OPTIONS"), ("/healthz", "GET, HEAD, OPTIONS")):
            answer = house.rest("OPTIONS", path)
            self.assertEqual((answer.status, answer.headers["Allow"], answer.text), (204, methods, ""))
        self.ask("OPTIONS", "/v1/nothing", status=404)
        # A scheme and a type are words in any case (RFC 9110).
        for scheme in ("bearer", "BEARER "):
            self.ask("GET", "/v1/epoch", token=None, headers={"Authorization": f"{scheme} {house.token}"})
        for scheme in ("Basic", "Bearer" + house.token, ""):
            self.ask("GET", "/v1/epoch", token=None, status=401, headers={"Authorization": f"{scheme} {house.token}"})
        for path in ("/v1/jobs", "/v1/stats", "/v1/routers", "/v1/pools", "/v1/maps/tenants/shardlets"):
            self.assertIn("next", self.ask("GET", path + "?after=nowhere", status=400).json["hint"])

    def test_08_each_command_is_audited_also_when_it_was_refused(self):
        token = self.ask("POST", "/v1/users", {"name": "looker", "role": "viewer"}, 201).json["token"]
        self.ask("DELETE", S + "/s1", token=token, status=403)
        with house.sql("reader", "reader-secret") as reader, self.assertRaises(Exception):
            reader.execute("DROP SHARD s1")
        self.ask("DELETE", "/v1/users/looker", status=204)
        self.assertEqual(house.rest("GET", "/v1/export").status, 200)  # it holds passwords
        trail = {(e["who"], e["what"]): e["result"] for e in self.ask("GET", "/v1/audit?limit=1000").json["items"]}
        self.assertEqual(trail["admin token", "user add looker --role viewer"], "done")
        self.assertEqual(trail["admin token", "user remove looker"], "done")
        self.assertEqual(trail["admin token", "map export"], "done")
        self.assertIn("42501", trail["looker", "DELETE /v1/shards/s1"])
        self.assertIn("42501", trail["reader", "DROP SHARD s1"])
        self.assertNotIn(token, str(trail))
        self.assertEqual({e["who"] for e in self.ask("GET", "/v1/audit?who=looker").json["items"]}, {"looker"})

    def test_09_every_command_of_the_program(self):
        def cli(*words, code=0, **more):
            done = house.cli(*words, **more)
            self.assertEqual(done[0], code, (words, done[1], done[2]))
            return done[1]

        def objects(*words):
            return json.loads(cli(*words, "--json"))

        self.assertEqual([s["name"] for s in objects("shard", "list")], ["s1", "s2", "s3"])
        cli("shard", "set", "s3", "--dsn", house.dsn(3))
        self.assertEqual([m["name"] for m in objects("map", "list")], ["docs", "regions", "tenants"])
        self.assertEqual(objects("map", "show", "regions")["shardlets"][0]["values"], ["de", "fr"])
        self.assertEqual([t["name"] for t in objects("table", "list")], ["public.orders", "public.plans"])
        place = objects("lookup", "tenants", "700")
        self.assertEqual((place["shardlet"], place["key"]), ("a", [700]))
        # What every command takes may stand before it.
        self.assertEqual(json.loads(cli("--json", "lookup", "tenants", "700")), place)
        self.assertEqual(json.loads(cli("--admin", f"127.0.0.1:{house.admin_port}", "lookup", "--json", "tenants", "--", "-700"))["shardlet"], "a")
        self.assertEqual(objects("split", "a", "--at", "500")["state"], "done")
        left, right = [s["name"] for s in objects("map", "show", "tenants")["shardlets"]][:2]
        self.assertIn("is done", cli("merge", left, right, "--on", "s1"))
        name = objects("map", "show", "tenants")["shardlets"][0]["name"]
        self.assertEqual(objects("split", name, "--at", "500", "--to", "s2")["type"], "split")
        left, right = [s["name"] for s in objects("map", "show", "tenants")["shardlets"]][:2]
        self.assertEqual(objects("map", "show", "tenants")["shardlets"][1]["shard"], "s2")
        detached = objects("move", right, "--to", "s1", "--detach")
        self.assertIn("id", detached)
        self.assertIn("is done", cli("job", "watch", str(detached["id"])))
        self.assertEqual(objects("job", "show", str(detached["id"]))["state"], "done")
        self.assertRegex(cli("job", "list"), rf"(?m)^{detached['id']} +move +{right} to s1 +done +\d+ of \d+ rows$")
        cli("job", "cancel", str(detached["id"]), code=3)
        cli("job", "resume", str(detached["id"]), code=3)
        cli("rebalance", "--map", "tenants", "--dry-run")
        cli("drain", "s2")
        self.assertNotIn("s2", [s["shard"] for s in objects("map", "show", "tenants")["shardlets"]])
        self.assertEqual(objects("shard", "set", "s2", "--state", "online")["state"], "online")
        for words in (("shard", "set", "s2"), ("shard", "set", "s2", "--state", "closed"), ("shardlet", "set", "tenants", "low"),
                      ("shardlet", "set", "tenants", "low", "--state", "closed"), ("shardlet", "add", "tenants", "x", "--on", "s1")):
            self.assertEqual(house.cli(*words)[0], 2, words)
        exported = cli("map", "export")
        self.assertEqual(exported, house.rest("GET", "/v1/export").text)
        self.assertEqual(cli("recover", "check"), "Store, shards and rows agree.\n")
        self.assertEqual(objects("recover", "check"), [])
        self.assertEqual(objects("recover", "resolve", "--from", "store", "--dry-run"), [])
        cli("table", "unshard", "plans", "--yes")
        cli("table", "replicate", "plans")
        cli("table", "shard", "orders", "--map", "tenants", "--key", "tenant_id")
        cli("map", "drop", "docs", "--yes")
        token = cli("user", "add", "ann", "--role", "operator").strip()
        self.assertEqual(objects("user", "list")[-1]["name"], "ann")
        cli("shard", "remove", "s3", "--yes", code=1, environment={"KINTSUGI_TOKEN": token})
        path = pathlib.Path(house.root, "ann.token")
        path.write_text(token + "\n")
        cli("shard", "list", "--token-file", str(path), environment={"KINTSUGI_TOKEN": "wrong"})
        cli("user", "remove", "ann", "--yes")
        cli("shard", "list", "--token-file", str(path), code=1)
        # Exit codes, and errors as objects.
        cli("shard", "add", "s9", code=2)
        cli("lookup", "tenants", "many", code=1)
        # What is said is about the command line, not about REST.
        said = lambda *words, **environment: house.cli(*words, environment=environment)[2]  # noqa: E731
        self.assertEqual(said("lookup", "tenants", "many"), 'kintsugi: invalid input syntax for type bigint: "many"\n')
        self.assertIn("A key is smallint, integer", said("map", "create", "x", "--by", "range", "--key", "money"))
        for token in ("wrong", ""):
            self.assertIn("--token-file", said("shard", "list", KINTSUGI_TOKEN=token))
            self.assertNotIn("Bearer", said("shard", "list", KINTSUGI_TOKEN=token))
        self.assertEqual(cli("recover", "resolve", "--from", "store", "--dry-run"), "Nothing is to be done.\n")
        cli("shard", "remove", "s1", "--yes", code=3)
        code, out, err = house.cli("shard", "remove", "s1", "--yes", "--json")
        self.assertEqual((code, out, set(json.loads(err)["error"]) >= {"sqlstate", "message"}), (3, "", True))
        for words in (("shard", "remove", "s1"), ("shard", "add", "s9"), ("shard", "gone"), ("shard", "set", "s1"), ("shard", "list", "--nothing")):
            code, out, err = house.cli(*words, "--json")
            self.assertEqual((code, out, json.loads(err)["error"]["sqlstate"]), (2, "", "22023"), words)
        code, out, err = house.cli("shard", "list", "--json", "--admin", "http://127.0.0.1:1")
        self.assertEqual((code, out, json.loads(err)["error"]["sqlstate"]), (4, "", "08006"))

    def test_09b_a_progress_bar_on_a_terminal_and_a_line_a_change_elsewhere(self):
        with house.sql() as sql:
            sql.execute("INSERT INTO orders SELECT 700, g, repeat('x', 300) FROM generate_series(2000, 22000) g")
            here, there = ("s1", "s2") if house.cli_json("lookup", "tenants", "700")["shard"] == "s1" else ("s2", "s1")
        shardlet = house.cli_json("lookup", "tenants", "700")["shardlet"]
        master, slave = pty.openpty()
        clean = {key: value for key, value in os.environ.items() if not key.startswith("KINTSUGI_")}
        program = subprocess.Popen([PROGRAM, "move", shardlet, "--to", there, "--max-rate", "3MB/s"], stdout=slave, stderr=slave, stdin=slave,
                                   env={**clean, "KINTSUGI_ADMIN": f"http://127.0.0.1:{house.admin_port}", "KINTSUGI_TOKEN": house.token})
        os.close(slave)
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(master, 4096):
                seen += piece
        os.close(master)
        self.assertEqual(program.wait(240), 0, seen)
        self.assertRegex(seen.decode(), r"\r\x1b\[Kcopying +\[#* *\] \d+ %  [\d,]+ of 21,001 rows  \d+ [kM]B/s  \d+ s left")
        # At this rate no state that it looks for is over between two looks.
        code, out, err = house.cli("move", shardlet, "--to", here, "--max-rate", "3MB/s")
        self.assertEqual(code, 0, err)
        self.assertNotIn("\x1b", err)
        self.assertRegex(err, r"(?s)^job \d+: move .*\ncopying .*\ndone ")

    def test_09c_requests_are_limited(self):
        def wrong(_):
            answer = house.rest("GET", "/v1/epoch", token="wrong")
            return answer.status, answer.headers.get("Retry-After")

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = set(pool.map(wrong, range(150)))
        self.assertEqual(answers, {(401, None), (429, "1")})
        self.ask("GET", "/v1/epoch")  # who has a token is not kept out by those who guess

    def test_09c2_all_requests_together_are_limited(self):
        """A thousand at once, and then five hundred a second: on connections that stay, nobody has to be fast for that."""
        request = f"GET /v1/epoch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n\r\n".encode()
        answers, good = b"", 0
        with contextlib.ExitStack() as stack:
            lines = []
            for _ in range(20_000):
                if len(lines) < 4:
                    connection = stack.enter_context(socket.create_connection(("127.0.0.1", house.admin_port), 20))
                    lines.append((connection, connection.makefile("rb")))
                connection, answer = lines.pop(0)
                connection.sendall(request)
                head = b""
                while (line := answer.readline()) not in (b"\r\n", b""):
                    head += line
                body = answer.read(int(re.search(rb"Content-Length: (\d+)", head).group(1)))
                if b"Connection: close" not in head:
                    lines.append((connection, answer))
                if head.startswith(b"HTTP/1.1 200"):
                    good += 1
                    continue
                answers = head + body
                break
        self.assertGreaterEqual(good, 900)
        self.assertTrue(answers.startswith(b"HTTP/1.1 429"), answers)
        self.assertIn(b"Retry-After: 1\r\n", answers)
        self.assertIn(b"application/problem+json", answers)
        self.assertIn(b"too many requests", answers)
        time.sleep(1.1)  # as it says
        self.ask("GET", "/v1/epoch")

    def test_09d_readers_of_a_job_who_go_away_leave_room_for_others(self):
        """A job that waits says nothing for long: who has gone is noticed all the same."""
        here, there = ("s1", "s2") if house.cli_json("lookup", "tenants", "700")["shard"] == "s1" else ("s2", "s1")
        with house.shard(int(here[1])) as holder:
            holder.autocommit = False
            holder.execute("LOCK TABLE orders IN ROW EXCLUSIVE MODE")
            shardlet = house.cli_json("lookup", "tenants", "700")["shardlet"]
            job = self.ask("POST", "/v1/jobs", {"type": "move", "shardlet": shardlet, "to": there}, 202).json["id"]

            def reader():
                connection = socket.create_connection(("127.0.0.1", house.admin_port), 10)
                connection.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.token}\r\n\r\n".encode())
                return connection, connection.recv(12)

            readers = [reader() for _ in range(9)]
            self.assertEqual([status for _, status in readers], [b"HTTP/1.1 200"] * 8 + [b"HTTP/1.1 429"])
            for connection, _ in readers:
                connection.close()

            def answered():
                connection, status = reader()
                connection.close()
                return status == b"HTTP/1.1 200"

            wait_until("room for another reader", answered, 5)
            self.ask("POST", f"/v1/jobs/{job}/cancel", status=202)
            self.assertEqual(self.ended(job)["state"], "canceled")
            holder.rollback()

    CONTRACT_TOML = """
[server]
listen = "127.0.0.1:6432"
threads = 0
tls_cert = ""
tls_key = ""
max_clients = 10000
[admin]
listen = "127.0.0.1:8432"
token_file = ""
[database]
name = "app"
[map]
store = "sqlite:map.db"
replica = "replica.db"
[pool]
mode = "transaction"
size = 20
[limits]
statement_timeout = "0"
hold_timeout = "10s"
gather_bytes = "1GB"
max_message = "256MB"
[[user]]
name = "app"
password = "p"
admin = false
tenant_map = ""
tenant_key = ""
"""

    def config(self, text, **environment):
        path = pathlib.Path(house.root, "checked.toml")
        path.write_text(text)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("KINTSUGI_")}
        run = subprocess.run([PROGRAM, "check-config", str(path)], capture_output=True, text=True, timeout=120, env={**clean, **environment})
        return run.returncode, run.stdout, run.stderr, str(path)

    def test_10_the_configuration(self):
        defaults = tomllib.loads(self.config("")[1])
        contract = tomllib.loads(self.CONTRACT_TOML)
        code, out, err, _ = self.config(self.CONTRACT_TOML)
        self.assertEqual((code, err), (0, ""))
        for section, keys in contract.items():
            if section == "user":
                continue
            for key, value in keys.items():
                self.assertEqual(defaults[section][key], value, f"{section}.{key}: the default of the contract")
                other = {"listen": "127.0.0.1:7000", "threads": 3, "max_clients": 77, "mode": "session", "size": 7, "store": "postgresql://u@h1,h2/k?target_session_attrs=read-write"}.get(
                    key, {"statement_timeout": "5s", "hold_timeout": "3s", "gather_bytes": "2MB", "max_message": "1MB"}.get(key, "other"))
                if key.startswith("tls_"):
                    continue
                code, out, err, _ = self.config("", **{f"KINTSUGI_{section}_{key}".upper(): str(other)})
                self.assertEqual((code, err), (0, ""), key)
                self.assertEqual(tomllib.loads(out)[section][key], other, key)
                # The file is above the default, and the environment above the file.
                code, out, err, _ = self.config(f"[{section}]\n{key} = {json.dumps(other)}\n", **{f"KINTSUGI_{section}_{key}".upper(): str(value)})
                self.assertEqual(tomllib.loads(out)[section][key], value, key)

    def test_11_what_is_wrong_in_the_configuration_is_told_with_its_line(self):
        for text, line, words in (
            ("[pool]\nsize = 0\n", 2, ["pool.size", "0", "1 to 10000"]),
            ("[pool]\nsize = \"many\"\n", 2, ["pool.size", "many", "whole number"]),
            ("[pool]\n\nmode = \"transation\"\n", 3, ["transation", "transaction, session"]),
            ("[server]\nlisten = \"nowhere\"\n", 2, ["server.listen", "nowhere", "host:port"]),
            ("[limits]\nhold_timeout = \"10 parsecs\"\n", 2, ["hold_timeout", "10 parsecs", "duration"]),
            ("[limits]\nmax_message = \"1kB\"\n", 2, ["max_message", "1kB", "64kB"]),
            ("[map]\nstore = \"mysql://x\"\n", 2, ["map.store", "mysql", "postgresql://"]),
            ("[database]\nnme = \"x\"\n", 2, ["database.nme", "name"]),
            ("[databse]\nname = \"x\"\n", 1, ["databse", "database"]),
            ("[[user]]\nname = \"a\"\nadmin = \"yes\"\n", 3, ["admin", "yes", "true or false"]),
            ("[[user]]\npassword = \"a\"\n", 1, ["name"]),
            ("[[user]]\nname = \"a\"\nscram = \"md5abc\"\n", 3, ["scram", "SCRAM-SHA-256$"]),
            ("[[user]]\nname = \"a\"\ntenant_map = \"t\"\n", 1, ["tenant_key"]),
            ("[[user]]\nname = \"a\"\ntenant_map = \"t\"\ntenant_key = 42\n", 4, ["tenant_key", "42", "any text, in quotes"]),
            ("[pool\n", 1, []),
        ):
            with self.subTest(text):
                code, out, err, path = self.config(text)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(f"{path}:{line}", err)
                for word in words:
                    self.assertIn(word, err)
                run = subprocess.run([PROGRAM, "serve", "--config", path, "--data", house.root], capture_output=True, text=True, timeout=120)
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertIn(f"{path}:{line}", run.stderr)
        code, _, err, _ = self.config("", KINTSUGI_POOL_SIZE="many")
        self.assertEqual(code, 1)
        self.assertIn("KINTSUGI_POOL_SIZE", err)
        self.assertIn("many", err)
        code, _, err, _ = self.config("", KINTSUGI_POOL_SIZ="9")
        self.assertEqual((code, "KINTSUGI_POOL_SIZE" in err), (1, True), err)

    def test_11b_a_router_whose_shards_are_fixed(self):
        """By [[shard]] in its configuration: nothing of the map can be changed, everything can be looked at."""
        fixed = House(PROGRAM, shards=2)
        try:
            fixed.stop()
            with open(os.path.join(fixed.data, "kintsugi.toml"), "a") as file:
                file.write("".join(f'[[shard]]\nname = "s{n}"\ndsn = "{fixed.dsn(n)}"\n' for n in (1, 2)))
            fixed.start()
            self.assertEqual([s["name"] for s in fixed.rest("GET", "/v1/shards").json["items"]], ["s1", "s2"])
            for method, path, body in (("POST", S, {"name": "x", "dsn": fixed.dsn(1)}), ("POST", "/v1/jobs", {"type": "rebalance"}),
                                       ("POST", M, {"name": "m", "kind": "range", "key": ["int"]}), ("POST", "/v1/recovery/check", {})):
                answer = fixed.rest(method, path, body)
                self.assertEqual((answer.status, answer.json["sqlstate"]), (409, "55000"), path)
                self.assertIn("[[shard]]", answer.json["hint"])
            self.assertEqual(fixed.rest("GET", "/v1/jobs").json, {"items": [], "next": None})
            self.assertEqual(fixed.rest("GET", "/v1/jobs/1").status, 404)
            self.assertEqual(fixed.rest("GET", "/v1/jobs/1/events").status, 404)
            self.assertEqual(fixed.cli("shard", "remove", "s2", "--yes")[0], 3)
        finally:
            fixed.close()

    def test_11c_a_setting_holds_on_each_connection_that_a_client_keeps(self):
        """In session pooling all are kept; in transaction pooling those on which it holds something, as a lock is."""
        keeping = House(PROGRAM, shards=3)
        try:
            for mode in ("transaction", "session"):
                keeping.stop()
                path = pathlib.Path(keeping.data, "kintsugi.toml")
                path.write_text(re.sub(r"\[pool\]\n.*\n", "", path.read_text()) + f'[pool]\nmode = "{mode}"\n')
                keeping.start()
                with keeping.sql() as admin:
                    if mode == "transaction":
                        for n in (1, 2, 3):
                            admin.execute(f"CREATE SHARD s{n} DSN '{keeping.dsn(n)}'")
                        admin.execute("CREATE SHARD MAP tenants BY RANGE (bigint)")
                        for n, low, high in ((1, "MINVALUE", 1000), (2, 1000, 2000), (3, 2000, "MAXVALUE")):
                            admin.execute(f"CREATE SHARDLET t{n} OF tenants FOR VALUES FROM ({low}) TO ({high}) ON SHARD s{n}")
                        admin.execute("CREATE TABLE seen (tenant_id bigint PRIMARY KEY, at timestamptz) SHARD BY tenants (tenant_id)")
                        admin.execute("INSERT INTO seen SELECT unnest(ARRAY[1, 1500, 2500]), '2024-01-01 00:00+00'")
                with keeping.sql() as c, self.subTest(mode):
                    for tenant in (1, 1500, 2500):
                        c.execute(f"SELECT pg_advisory_lock({tenant}) FROM seen WHERE tenant_id = {tenant}")

                    def told():
                        one = "SELECT current_setting('my.own', true), at::text FROM seen WHERE tenant_id = %s"
                        by_key = {c.execute(one, [tenant]).fetchone() for tenant in (1, 1500, 2500)}
                        return by_key | set(c.execute("SELECT current_setting('my.own', true), at::text FROM seen WHERE at IS NOT NULL").fetchall())

                    c.execute("SET timezone = 'Asia/Tokyo'")
                    c.execute("SET my.own = 'x'")
                    self.assertEqual(c.execute("SHOW my.own").fetchone(), ("x",))
                    self.assertEqual(told(), {("x", "2024-01-01 09:00:00+09")})
                    c.execute("SELECT 1 FROM seen WHERE tenant_id = 2500")
                    c.execute("SET my.own = 'y'")
                    self.assertEqual(told(), {("y", "2024-01-01 09:00:00+09")})
                    with c.transaction():
                        c.execute("SELECT 1 FROM seen WHERE tenant_id = 1500")
                        c.execute("SET timezone = 'UTC'")
                        self.assertEqual(told(), {("y", "2024-01-01 00:00:00+00")})
                    self.assertEqual(told(), {("y", "2024-01-01 00:00:00+00")})
                    c.execute("SET search_path = nowhere")
                    for where in ("", " WHERE tenant_id = 1", " WHERE tenant_id = 2500"):
                        with self.assertRaises(psycopg.errors.UndefinedTable):
                            c.execute("SELECT count(*) FROM seen" + where)
                    c.execute("RESET search_path")
                    self.assertEqual(len(told()), 1)
                    # The locks are where they were.
                    for n, tenant in ((1, 1), (2, 1500), (3, 2500)):
                        with keeping.shard(n) as shard:
                            self.assertEqual(shard.execute("SELECT pg_try_advisory_lock(%s)", [tenant]).fetchone(), (False,))
        finally:
            keeping.close()

    def test_12_each_command_has_a_help_page(self):
        for words in ("serve", "demo", "version", "check-config", "shard list", "shard add", "shard set", "shard remove", "map list", "map create",
                      "map drop", "map show", "map export", "map import", "table list", "table shard", "table replicate", "table unshard", "lookup",
                      "split", "merge", "move", "drain", "rebalance", "job list", "job show", "job watch", "job cancel", "job resume",
                      "recover check", "recover resolve", "user add", "user list", "user remove"):
            code, out, err = house.cli(*words.split(), "--help")
            self.assertEqual((code, err), (0, ""), words)
            self.assertIn(f"Usage: kintsugi {words}", out)
            self.assertEqual(house.cli("help", *words.split())[1], out)


if __name__ == "__main__":
    unittest.main(verbosity=1)
