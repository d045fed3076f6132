#!/usr/bin/python3
"""Tokens of several routers on one store: made at one and good at all, removed at one and good for nothing at all, also when
the store was away meanwhile. argv[1] is the program."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "clients"))
from postgres import Cluster, PASSWORD, USER, die_with_parent, free_port, scratch_directory, wait_until  # noqa: E402


class Router:
    def __init__(self, name, store):
        self.data = pathlib.Path(root, name)
        self.data.mkdir()
        self.store, self.admin = store, free_port()
        self.port = free_port()
        self.users = self.data / "admin.users"
        self.start()

    def start(self):
        with open(self.data / "log", "ab") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port}", "--admin",
                                             f"127.0.0.1:{self.admin}", "--set", f"map.store={self.store}"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=die_with_parent)
        wait_until("the router", lambda: self.process.poll() is not None or self.ask("/healthz", "")[0] == 200, 30)
        assert self.process.poll() is None, (self.data / "log").read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(45) == 0

    def ask(self, path, token):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", headers={"Authorization": "Bearer " + token})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def good(self, token):
        status = self.ask("/v1/epoch", token)[0]
        assert status in (200, 401), status
        return status == 200

    def cli(self, *arguments):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("KINTSUGI_")}
        run = subprocess.run([PROGRAM, *arguments, "--admin", f"http://127.0.0.1:{self.admin}", "--token-file", self.data / "admin.token"],
                             capture_output=True, text=True, timeout=400, env=clean, stdin=subprocess.DEVNULL)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    def names(self):
        return sorted(user["name"] for user in json.loads(self.cli("user", "list", "--json")))


def setUpModule():
    global root, cluster, store, one, other
    root = scratch_directory("kintsugi-tokens-")
    cluster = Cluster(root)
    with cluster.admin("postgres") as connection:
        connection.execute(f"CREATE DATABASE map OWNER {USER}")
    store = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{cluster.port}/map"
    one, other = Router("one", store), Router("other", store)
    one.cli("map", "create", "tenants", "--by", "range", "--key", "bigint")  # of an empty store there is no replica


def tearDownModule():
    for router in (one, other):
        if router.process.poll() is None:
            router.stop()
    cluster.stop()


class Tokens(unittest.TestCase):
    """One story, told in the order of the names."""

    def test_1_made_at_one_and_good_at_all_at_once(self):
        for i in range(10):
            self.assertTrue(other.good(one.cli("user", "add", f"n{i}", "--role", "operator")))
        self.assertEqual(other.names(), [f"n{i}" for i in range(10)])
        with self.assertRaisesRegex(AssertionError, "already exists"):
            other.cli("user", "add", "n1")
        for i in range(10):
            other.cli("user", "remove", f"n{i}", "--yes")
        self.assertEqual(one.names(), [])

    def test_2_removed_at_one_and_good_for_nothing_within_a_second(self):
        token = one.cli("user", "add", "ann", "--role", "admin")
        self.assertTrue(other.good(token))
        other.cli("user", "remove", "ann", "--yes")
        self.assertFalse(other.good(token))
        wait_until("the news at the other router", lambda: not one.good(token), 10)
        self.assertEqual(one.names(), [])

    def test_3_hashes_only(self):
        token = one.cli("user", "add", "bob")
        with cluster.admin("map") as connection:
            rows = connection.execute("SELECT * FROM kintsugi_map.note").fetchall()
            self.assertIn("bob", str(rows))
            self.assertNotIn(token, str(rows))
        wait_until("bob at the other router", lambda: "bob" in other.users.read_text(), 10)
        self.assertNotIn(token, other.users.read_text())
        self.assertEqual(other.users.stat().st_mode & 0o777, 0o600)

    def test_4_the_store_is_away(self):
        kept, gone = one.cli("user", "add", "kept"), one.cli("user", "add", "gone")
        wait_until("both at the other router", lambda: {"kept", "gone"} <= set(other.names()), 10)
        cluster.stop("immediate")
        try:
            wait_until("it is noticed", lambda: all('"away"' in router.ask("/readyz", "")[1] for router in (one, other)), 30)
            for router in (one, other):
                self.assertTrue(router.good(kept))
                self.assertTrue(router.good(gone))
            one.cli("user", "remove", "gone", "--yes")
            self.assertFalse(one.good(gone))
            late = one.cli("user", "add", "late")
            self.assertTrue(one.good(late))
            self.assertEqual(one.names(), ["bob", "kept", "late"])
        finally:
            cluster.start()
        wait_until("the removal at the other router", lambda: not other.good(gone), 30)
        wait_until("the new one at the other router", lambda: other.good(late), 30)
        self.assertEqual(one.names(), ["bob", "kept", "late"])
        self.assertEqual(other.names(), ["bob", "kept", "late"])
        # Who starts without the store knows them from its own copy.
        other.stop()
        cluster.stop("immediate")
        try:
            other.start()
            self.assertTrue(other.good(late))
            self.assertFalse(other.good(gone))
        finally:
            cluster.start()

    def test_5_what_an_older_program_has_left_is_told_to_the_store(self):
        """Names that two routers had each for itself keep both their tokens, and are removed together."""
        mine, theirs = one.cli("user", "add", "mine"), other.cli("user", "add", "theirs")
        wait_until("theirs here", lambda: "theirs" in one.names(), 10)
        files = {}
        for router, rename in ((one, "mine"), (other, "theirs")):
            users = [user for user in json.loads(router.users.read_text()) if user["name"] == rename]
            files[router] = [{**{key: user[key] for key in ("created", "role", "sha256")}, "name": "same"} for user in users]
        for router in (one, other):
            router.stop()
        with cluster.admin("map") as connection:
            connection.execute("DELETE FROM kintsugi_map.note WHERE kind = 'token'")
        for router, users in files.items():
            router.users.write_text(json.dumps(users))
        for router in (one, other):
            router.start()
        self.assertTrue(one.good(mine))
        self.assertTrue(other.good(theirs))
        wait_until("one of them everywhere", lambda: (one.good(mine) and other.good(mine)) or (one.good(theirs) and other.good(theirs)), 10)
        self.assertEqual((one.good(mine), other.good(theirs)), (True, True))
        for router in (one, other):
            wait_until("it is gone", lambda: "same" not in router.names() or router.cli("user", "remove", "same", "--yes") is None, 10)
        wait_until("none is good", lambda: not any(router.good(token) for router in (one, other) for token in (mine, theirs)), 10)


if __name__ == "__main__":
    unittest.main(verbosity=1)
