#!/usr/bin/python3
"""The admin listener and those who are slow, many, or never content: health and metrics answer all the same. argv[1] is
the program."""
import concurrent.futures
import contextlib
import gzip
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

PROGRAM = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from house import House, PASSWORD, USER, die_with_parent, free_port, wait_until  # noqa: E402

MANY = 300  # more than there is room for
SOON = 5    # seconds: far less than a slow one may take, far more than an answer takes
house = None


def setUpModule():
    global house
    house = House(PROGRAM, shards=2)


def tearDownModule():
    house.close()


def connect(**more):
    return socket.create_connection(("127.0.0.1", house.admin_port), 20, **more)


def all_of(connection):
    said = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            said += piece
    return said


class Slow(unittest.TestCase):
    def answers(self, *paths):
        for path in paths or ("/healthz", "/readyz", "/metrics"):
            begun = time.monotonic()
            answer = house.rest("GET", path)
            self.assertEqual(answer.status, 200, answer.text)
            self.assertLess(time.monotonic() - begun, SOON, path)

    @contextlib.contextmanager
    def many(self, first, drop=b"", count=MANY):
        """So many connections that send `first` and then, until the end, `drop` after `drop`."""
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(connect()) for _ in range(count)]
            ended = threading.Event()

            def drip():
                while not ended.is_set():
                    for each in crowd:
                        with contextlib.suppress(OSError):
                            each.send(drop)
                    ended.wait(0.2)

            for each in crowd:
                with contextlib.suppress(OSError):
                    each.sendall(first)
            thread = threading.Thread(target=drip)
            thread.start()
            try:
                yield crowd
            finally:
                ended.set()
                thread.join()

    def head(self, method, path, **headers):
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {house.token}"]
        return ("\r\n".join(lines + [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]) + "\r\n").encode()

    def test_00_nobody_is_sent_away_while_there_is_room(self):
        """Many at once, as a browser comes, who stay and ask again."""
        for _ in range(5):
            with contextlib.ExitStack() as stack:
                crowd = [stack.enter_context(connect()) for _ in range(40)]
                for _ in range(2):
                    for each in crowd:
                        each.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertEqual([each.recv(12) for each in crowd], [b"HTTP/1.1 404"] * len(crowd))
                    for each in crowd:
                        while not each.recv(65536).endswith(b"}\n"):
                            pass

    def test_001_a_body_that_is_refused_is_no_request(self):
        """Whatever is not read of a request must not be taken for another one."""
        inner = self.head("GET", "/v1/shards") + b"\r\n"
        with connect() as connection:
            connection.sendall(f"POST /v1/shards HTTP/1.1\r\nHost: x\r\nContent-Length: {len(inner)}\r\n\r\n".encode() + inner)
            said = b""
            while piece := connection.recv(65536):
                said += piece
        self.assertTrue(said.startswith(b"HTTP/1.1 401 "), said)
        self.assertIn(b"Connection: close", said)
        self.assertEqual(said.count(b"HTTP/1.1"), 1, said)

    def test_01_who_says_nothing(self):
        with self.many(b""):
            self.answers("/healthz", "/readyz", "/metrics", "/v1/shards")

    def test_02_heads_that_drip(self):
        with self.many(b"GET /healthz HTTP/1.1\r\nX: ", b"x"):
            self.answers("/healthz", "/readyz", "/metrics", "/v1/shards")

    def test_03_bodies_that_drip(self):
        head = self.head("POST", "/v1/maps", Content_Type="application/json", Content_Length=100000)
        with self.many(head + b"\r\n{", b" "):
            self.answers("/healthz", "/readyz", "/metrics", "/v1/shards")

    def test_04_readers_that_do_not_read(self):
        request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        with contextlib.ExitStack() as stack:
            for _ in range(64):
                reader = stack.enter_context(socket.socket())
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.settimeout(20)
                reader.connect(("127.0.0.1", house.admin_port))
                with contextlib.suppress(OSError):
                    for _ in range(15):
                        reader.sendall(request)
            self.answers()

    def test_05_who_drips_is_cut_off(self):
        """A byte every 200 ms would have kept its place for as long as it liked."""
        begun = time.monotonic()
        with connect() as one:
            one.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
            one.settimeout(0.2)
            said = None
            while said is None and time.monotonic() - begun < 60:
                with contextlib.suppress(TimeoutError):
                    try:
                        said = one.recv(100)
                    except ConnectionError:
                        said = b""
                with contextlib.suppress(OSError):
                    one.send(b"x")
        self.assertIsNotNone(said, "it is served still")
        self.assertGreater(time.monotonic() - begun, 8)
        self.assertLess(time.monotonic() - begun, 20)

    def test_06_a_head_without_an_end(self):
        with connect() as one:
            with self.assertRaises(ConnectionError):
                one.sendall(b"GET /healthz HTTP/1.1\r\n")
                for _ in range(1000):
                    one.sendall(b"X: " + b"x" * 1000 + b"\r\n")
                self.assertEqual(one.recv(1), b"", "it is read still")
                raise ConnectionResetError

    def test_07_a_packed_body_is_not_unpacked(self):
        packed = gzip.compress(b'{"name": "' + b"x" * 200_000_000 + b'"}')
        self.assertLess(len(packed), 1 << 20)
        with connect() as one:
            one.sendall(self.head("POST", "/v1/maps", Content_Type="application/json", Content_Encoding="gzip", Content_Length=len(packed))
                        + b"\r\n" + packed)
            said = all_of(one).decode()
        self.assertTrue(said.startswith("HTTP/1.1 415"), said[:200])
        self.assertEqual(json.loads(said.split("\r\n\r\n", 1)[1])["detail"], "the body is packed with gzip")
        peak = next(line for line in pathlib.Path(f"/proc/{house.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        self.assertLess(int(peak.split()[1]), 150_000, peak)

    def test_08_an_answer_is_heard_by_who_still_sends(self):
        """Closed at once it would be lost with what was not read of the body."""
        with connect() as one:
            one.sendall(self.head("POST", "/v1/maps", Content_Type="application/json", Content_Length=2 << 20) + b"\r\n")
            one.sendall(b" " * (2 << 20))
            self.assertTrue(all_of(one).startswith(b"HTTP/1.1 413"))

    def test_09_one_who_asks_too_much_is_no_matter_of_others(self):
        with self.assertRaises(StopIteration), concurrent.futures.ThreadPoolExecutor(8) as pool:
            def ask(_):
                with connect(source_address=("127.0.0.2", 0)) as one:
                    one.sendall(self.head("GET", "/v1/epoch") + b"\r\n" + (self.head("GET", "/v1/epoch") + b"\r\n") * 50 +
                                self.head("GET", "/v1/epoch", Connection="close") + b"\r\n")
                    return b"HTTP/1.1 429" in all_of(one)

            next(x for x in pool.map(ask, range(400)) if x)
            self.answers("/v1/shards", "/healthz")
            with connect(source_address=("127.0.0.2", 0)) as one:  # and its own health is not either
                one.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
                self.assertTrue(all_of(one).startswith(b"HTTP/1.1 200"))
            raise StopIteration

    def test_10_commands_that_wait_leave_room(self):
        """An adoption waits for a lock on the shard, and forty come; health, metrics and the others' turn do not."""
        dsn = house.dsn(1)
        self.assertEqual(house.rest("POST", "/v1/shards", {"name": "s1", "dsn": dsn}).status, 201)
        wait_until("the shard", lambda: house.rest("GET", "/v1/shards/s1").json["state"] == "online", 30)
        self.assertEqual(house.rest("POST", "/v1/maps", {"name": "m", "kind": "range", "key": ["bigint"]}).status, 201)
        self.assertEqual(house.rest("POST", "/v1/maps/m/shardlets", {"name": "a", "from": ["MINVALUE"], "to": ["MAXVALUE"], "shard": "s1"}).status, 201)
        with house.shard(1) as shard:
            shard.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
            with shard.transaction():
                shard.execute("LOCK TABLE t")
                with concurrent.futures.ThreadPoolExecutor(40) as pool:
                    asked = [pool.submit(house.rest, "POST", "/v1/tables", {"name": "t", "map": "m", "key": ["k"]}) for _ in range(40)]
                    wait_until("one who was told to come again", lambda: any(each.done() for each in asked), 30)
                    self.answers()
                    self.assertFalse(all(each.done() for each in asked))
                    shard.execute("COMMIT")
                    states = sorted(each.result().status for each in asked)
        self.assertEqual(set(states) - {200, 201, 409}, {429}, states)
        self.assertIn(201, states)
        self.assertEqual(house.rest("GET", "/v1/tables/public.t").status, 200)

    def test_10b_a_map_store_that_hangs_does_not_keep_metrics(self):
        """The store's connections stand still, as with a frozen server; what is scraped has what was last known of it."""
        with house.cluster.admin("postgres") as connection:
            connection.execute(f"CREATE DATABASE map OWNER {USER}")
        data, admin, client = pathlib.Path(house.root, "beside"), free_port(), free_port()
        data.mkdir()
        store = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{house.cluster.port}/map"

        def scrape():
            begun = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics", timeout=120) as reply:
                return time.monotonic() - begun, reply.read().decode()

        def knows():
            with contextlib.suppress(OSError):
                return "\nkintsugi_router_alive{" in scrape()[1]

        with open(data / "log", "wb") as log:
            router = subprocess.Popen([PROGRAM, "serve", "--data", data, "--listen", f"127.0.0.1:{client}", "--admin", f"127.0.0.1:{admin}",
                                       "--set", f"map.store={store}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)
        try:
            wait_until("the router", lambda: router.poll() is not None or knows(), 30)
            with house.cluster.admin("map") as other, other.transaction():
                other.execute("LOCK TABLE kintsugi_map.note")
                for nth in range(3):
                    took, text = scrape()
                    if nth == 0:
                        self.assertIn("\nkintsugi_router_alive{", text, "what was last known")
                    self.assertLess(took, 1.9, "the store is asked for two seconds")
                    self.assertIn("\nkintsugi_epoch ", text)
            wait_until("the store again", knows, 30)
        finally:
            router.terminate()
            self.assertEqual(router.wait(45), 0)

    def test_11_tls_hands_that_are_not_shaken(self):
        folder = pathlib.Path(house.root)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", folder / "admin.key", "-out", folder / "admin.crt"], check=True, capture_output=True)
        config = pathlib.Path(house.data, "kintsugi.toml")
        house.stop()
        config.write_text(config.read_text().replace("[admin]\n", f'[admin]\ntls_cert = "{folder}/admin.crt"\ntls_key = "{folder}/admin.key"\n'))
        with open(house.log, "ab") as log:
            house.process = subprocess.Popen([PROGRAM, "serve", "--data", house.data], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        context = ssl.create_default_context(cafile=str(folder / "admin.crt"))

        def ask(path):
            try:
                with socket.create_connection(("127.0.0.1", house.admin_port), 20) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost") as secure:
                    secure.sendall(b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
                    return all_of(secure)
            except ConnectionRefusedError:
                return b""

        wait_until("the router", lambda: ask(b"/readyz").startswith(b"HTTP/1.1 200"), 30)
        with self.many(b"\x16\x03\x01\x02\x00"):  # a handshake that has begun, and no more of it
            begun = time.monotonic()
            for path in (b"/healthz", b"/readyz", b"/metrics"):
                self.assertTrue(ask(path).startswith(b"HTTP/1.1 200"))
            self.assertLess(time.monotonic() - begun, SOON)
        whole = ask(b"/openapi.json")
        self.assertEqual(len(whole.split(b"\r\n\r\n", 1)[1]), int(whole.split(b"Content-Length: ")[1].split(b"\r\n")[0]))


if __name__ == "__main__":
    unittest.main(verbosity=1)
